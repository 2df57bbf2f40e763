"""The Slack for tests: posting, ephemeral messages, response URLs, modals, status lines."""

from __future__ import annotations

import pytest
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.fakes.slack_app import AppAnswer
from tests.fakes.slack_server import ControlError
from tests.fakes.slack_server.state import Json
from tests.integration.slack_harbour import Harbour, error_of, harbour

__all__ = ["harbour"]

MODAL: Json = {
    "type": "modal",
    "callback_id": "correct",
    "title": {"type": "plain_text", "text": "Correct"},
    "blocks": [{"type": "section", "text": {"type": "plain_text", "text": "Which message?"}}],
}


def texts(harbour: Harbour, user: str, channel: str, thread: str = "") -> list[str]:
    """What a person reads in a channel or thread."""
    return [row["text"] for row in harbour.control.visible(user, channel, thread=thread)]


async def test_a_post_is_seen_linked_updated_and_deleted(harbour: Harbour) -> None:
    client, channel = harbour.client, harbour.channel_id("engineering")

    posted = await client.chat_postMessage(channel=channel, text="one")
    link = await client.chat_getPermalink(channel=channel, message_ts=posted["ts"])
    await client.chat_update(channel=channel, ts=posted["ts"], text="two")
    seen = texts(harbour, "Ines", "engineering")
    await client.chat_delete(channel=channel, ts=posted["ts"])

    assert link["permalink"] == (
        f"https://harbour.slack.com/archives/{channel}/p{posted['ts'].replace('.', '')}"
    )
    assert seen == ["two"]
    assert texts(harbour, "Ines", "engineering") == []


async def test_the_bot_changes_no_message_of_others(harbour: Harbour) -> None:
    ts = harbour.control.post("engineering", "Ines", "mine").ts
    channel = harbour.channel_id("engineering")

    update = harbour.client.chat_update(channel=channel, ts=ts, text="yours")
    delete = harbour.client.chat_delete(channel=channel, ts=ts)

    assert await error_of(update) == "cant_update_message"
    assert await error_of(delete) == "cant_delete_message"


async def test_an_ephemeral_message_is_seen_by_one_person_and_by_no_history(
    harbour: Harbour,
) -> None:
    client, channel = harbour.client, harbour.channel_id("engineering")

    await client.chat_postEphemeral(channel=channel, user=harbour.user_id("Ines"), text="psst")
    stranger = client.chat_postEphemeral(channel=channel, user=harbour.user_id("Femi"), text="psst")

    assert await error_of(stranger) == "user_not_in_channel"
    assert texts(harbour, "Ines", "engineering") == ["psst"]
    assert texts(harbour, "Tomo", "engineering") == []
    assert (await client.conversations_history(channel=channel))["messages"] == []


async def test_an_ephemeral_reply_is_seen_in_its_thread_alone(harbour: Harbour) -> None:
    root = harbour.control.post("engineering", "Ines", "root").ts

    await harbour.client.chat_postEphemeral(
        channel=harbour.channel_id("engineering"),
        user=harbour.user_id("Ines"),
        text="psst",
        thread_ts=root,
    )

    assert texts(harbour, "Ines", "engineering") == ["root"]
    assert texts(harbour, "Ines", "engineering", root) == ["root", "psst"]


async def test_nobody_looks_into_a_private_channel_they_are_not_in(harbour: Harbour) -> None:
    with pytest.raises(ControlError, match="Femi can not see leads"):
        harbour.control.visible("Femi", "leads")


async def test_messages_beyond_slacks_limits_are_refused(harbour: Harbour) -> None:
    channel = harbour.channel_id("engineering")
    section: Json = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3000}}
    long_section: Json = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    cases: list[tuple[Json, str]] = [
        ({"text": ""}, "no_text"),
        ({"text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"text": "x", "blocks": [long_section]}, "invalid_blocks"),
        ({"text": "x", "blocks": [section] * 5}, "msg_blocks_too_long"),
        ({"text": "x" * 40_001}, "msg_too_long"),
    ]

    refusals = [
        await error_of(
            harbour.client.api_call("chat.postMessage", json={"channel": channel, **body})
        )
        for body, _ in cases
    ]

    assert refusals == [error for _, error in cases]


async def test_a_response_url_takes_five_answers(harbour: Harbour) -> None:
    answer = await harbour.control.command("Ines", "engineering", "help")
    webhook = AsyncWebhookClient(answer.response_url)

    codes = [(await webhook.send(text=f"{n}")).status_code for n in range(6)]
    last = await webhook.send(text="more")

    assert codes == [200] * 5 + [404]
    assert "used_url" in last.body
    assert texts(harbour, "Ines", "engineering") == ["0", "1", "2", "3", "4"]
    assert texts(harbour, "Tomo", "engineering") == []
    assert harbour.control.response_uses(answer.response_url) == 5


async def test_a_response_url_ends_after_thirty_minutes(harbour: Harbour) -> None:
    answer = await harbour.control.command("Ines", "engineering", "help")
    webhook = AsyncWebhookClient(answer.response_url)

    harbour.control.advance_clock(1799)
    before = await webhook.send(text="in time", response_type="in_channel")
    harbour.control.advance_clock(1)
    after = await webhook.send(text="late")

    assert (before.status_code, after.status_code) == (200, 404)
    assert "expired_url" in after.body
    assert texts(harbour, "Tomo", "engineering") == ["in time"]


async def test_a_click_can_replace_and_delete_its_ephemeral_message(harbour: Harbour) -> None:
    button = {
        "type": "button",
        "action_id": "share",
        "text": {"type": "plain_text", "text": "Share"},
    }
    shown = await harbour.client.chat_postEphemeral(
        channel=harbour.channel_id("engineering"),
        user=harbour.user_id("Ines"),
        text="answer",
        blocks=[{"type": "actions", "block_id": "a", "elements": [button | {"value": "42"}]}],
    )

    click = await harbour.control.click("Ines", "engineering", shown["message_ts"], "share")
    await AsyncWebhookClient(click.response_url).send(text="shared", replace_original=True)
    replaced = texts(harbour, "Ines", "engineering")
    await AsyncWebhookClient(click.response_url).send(text="", delete_original=True)

    sent = harbour.app.received[-1]
    assert sent.path == "/slack/interactions"
    assert '"value": "42"' in sent.form["payload"]
    assert '"is_ephemeral": true' in sent.form["payload"]
    assert replaced == ["shared"]
    assert texts(harbour, "Ines", "engineering") == []


async def test_a_trigger_opens_one_modal_within_three_seconds(harbour: Harbour) -> None:
    client = harbour.client
    ts = harbour.control.post("engineering", "Ines", "old").ts
    first = await harbour.control.shortcut("Ines", "engineering", ts, "correct")
    late = await harbour.control.shortcut("Ines", "engineering", ts, "correct")

    await client.views_open(trigger_id=first.trigger_id, view=MODAL)
    twice = await error_of(client.views_open(trigger_id=first.trigger_id, view=MODAL))
    harbour.control.advance_clock(3)
    expired = await error_of(client.views_open(trigger_id=late.trigger_id, view=MODAL))

    assert (twice, expired) == ("exchanged_trigger_id", "expired_trigger_id")
    assert [view.body["callback_id"] for view in harbour.control.views("Ines")] == ["correct"]


async def test_a_modal_stays_open_while_the_app_reports_errors(harbour: Harbour) -> None:
    ts = harbour.control.post("engineering", "Ines", "old").ts
    chosen = await harbour.control.shortcut("Ines", "engineering", ts, "correct")
    opened = await harbour.client.views_open(trigger_id=chosen.trigger_id, view=MODAL)
    values: Json = {"link": {"url": {"type": "plain_text_input", "value": "x"}}}
    harbour.app.answers.append(
        AppAnswer(body='{"response_action": "errors", "errors": {"link": "No such message."}}')
    )

    await harbour.control.submit_view("Ines", opened["view"]["id"], values)
    kept = len(harbour.control.views("Ines"))
    await harbour.control.submit_view("Ines", opened["view"]["id"], values)

    assert (kept, harbour.control.views("Ines")) == (1, [])


async def test_a_status_line_stands_until_the_answer_is_posted(harbour: Harbour) -> None:
    direct = harbour.control.direct_channel("Ines")
    question = harbour.control.post(direct.channel_id, "Ines", "which berth?")
    client = harbour.client

    await client.assistant_threads_setStatus(
        channel_id=direct.channel_id, thread_ts=question.ts, status="is searching…"
    )
    shown = harbour.control.statuses(direct.channel_id)
    await client.chat_postMessage(channel=direct.channel_id, thread_ts=question.ts, text="Berth 4.")

    assert [status["status"] for status in shown] == ["is searching…"]
    assert "ended_at" not in shown[0]
    assert "ended_at" in harbour.control.statuses(direct.channel_id)[0]
