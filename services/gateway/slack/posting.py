"""Putting a reply where the person sees it: in the direct conversation, or only to them.

A post that Slack refused certainly did not happen, so the next place is tried. One without a
usable answer may have happened; then nothing else is tried, and whoever can looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.corpus import SLACK_POST_TYPE
from services.gateway.slack.web_api import SlackBusyError, SlackClient, SlackRefusedError

# Longer than this a person does not wait; the job is retried instead.
MOST_WAIT_SECONDS = 30.0
MOST_LOOKED_AT = 100
LOADING = ["Searching the messages you can read…", "Checking the sources…"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where somebody asked. ``thread_ts`` is the root to answer under, empty outside a thread."""

    channel_id: str
    person_id: str
    thread_ts: str = ""
    response_url: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether it is the conversation of the person with the app."""
        return self.channel_id.startswith("D") and not self.response_url


@dataclass(frozen=True)
class Post:
    """What is posted; ``delivery_id`` goes along where the post can be found again by it."""

    text: str
    blocks: list[Json]
    delivery_id: str

    def body(self) -> Json:
        """The fields that every way of posting takes."""
        return {"text": self.text, "blocks": self.blocks}

    def found_again(self) -> Json:
        """The fields of a post that stands in a conversation."""
        metadata = {
            "event_type": SLACK_POST_TYPE,
            "event_payload": {"delivery_id": self.delivery_id},
        }
        return {**self.body(), "metadata": metadata, **_QUIET}


_QUIET = {"unfurl_links": False, "unfurl_media": False}


async def post_to_person(client: SlackClient, place: Place, post: Post) -> str:
    """Show it to the person alone; ts of the post where it has one.

    Raises SlackError: SlackAwayError when it may have been posted.
    """
    if place.is_direct:
        return await post_to_conversation(client, place.channel_id, place.thread_ts, post)
    if place.response_url:
        body = {**post.body(), "response_type": "ephemeral", "replace_original": False}
        try:
            await _patiently(lambda: client.respond(place.response_url, body | _QUIET))
            return ""
        except SlackRefusedError:
            # Spent: five answers, or thirty minutes.
            pass
    if place.channel_id:
        try:
            return await _only_to_them(client, place, post)
        except SlackRefusedError as refused:
            if refused.code in _ENDED:
                raise
    opened = await client.call("conversations.open", users=place.person_id)
    return await post_to_conversation(client, str(opened["channel"]["id"]), "", post)


# No other place would do better.
_ENDED = frozenset({"token_revoked", "account_inactive", "invalid_auth", "not_authed"})


def is_over(refused: SlackRefusedError) -> bool:
    """Whether the installation no longer works at all."""
    return refused.code in _ENDED


async def post_to_conversation(
    client: SlackClient, channel_id: str, thread_ts: str, post: Post
) -> str:
    """Post where everybody in the conversation sees it; the post's ts. Raises SlackError."""
    posted = await _patiently(
        lambda: client.call(
            "chat.postMessage",
            channel=channel_id,
            thread_ts=thread_ts or None,
            **post.found_again(),
        )
    )
    return str(posted["ts"])


async def find_post(client: SlackClient, channel_id: str, thread_ts: str, delivery_id: str) -> str:
    """ts of the post of a delivery in a conversation; empty when it is not there."""
    method = "conversations.replies" if thread_ts else "conversations.history"
    found = await client.call(
        method,
        channel=channel_id,
        ts=thread_ts or None,
        limit=MOST_LOOKED_AT,
        include_all_metadata=True,
    )
    for message in found.get("messages") or ():
        if _delivery_of(message) == delivery_id:
            return str(message["ts"])
    return ""


async def show_status(client: SlackClient, place: Place) -> None:
    """A line in the direct conversation while the answer is being found. Raises SlackError."""
    await client.call(
        "assistant.threads.setStatus",
        channel_id=place.channel_id,
        thread_ts=place.thread_ts,
        status="is looking…",
        loading_messages=LOADING,
    )


async def _only_to_them(client: SlackClient, place: Place, post: Post) -> str:
    posted = await _patiently(
        lambda: client.call(
            "chat.postEphemeral",
            channel=place.channel_id,
            user=place.person_id,
            thread_ts=place.thread_ts or None,
            **post.body(),
        )
    )
    return str(posted.get("message_ts", ""))


async def _patiently(attempt: Any) -> Any:
    """The attempt's result; one more attempt after a short wait that Slack asked for."""
    try:
        return await attempt()
    except SlackBusyError as busy:
        if busy.retry_after_seconds > MOST_WAIT_SECONDS:
            raise
        await asyncio.sleep(busy.retry_after_seconds)
        return await attempt()


def _delivery_of(message: Mapping[str, Any]) -> str:
    payload = (message.get("metadata") or {}).get("event_payload") or {}
    return str(payload.get("delivery_id", ""))
