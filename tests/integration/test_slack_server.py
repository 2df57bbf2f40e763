"""The Slack for tests answers the real slack-sdk as Slack does: reading, posting, refusing."""

from __future__ import annotations

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError

from tests.fakes.slack_server.faults import FaultKind
from tests.integration.slack_harbour import START_SECONDS, Harbour, error_of, harbour

__all__ = ["harbour"]


def fill(harbour: Harbour, count: int) -> list[str]:
    """Post messages without events; their ts, oldest first."""
    return [
        harbour.control.post("engineering", "Ines", f"message {n}", silent=True).ts
        for n in range(count)
    ]


async def read_all(harbour: Harbour, limit: int) -> list[list[str]]:
    """The ts of each page of #engineering's history."""
    pages, cursor = [], ""
    while True:
        page = await harbour.client.conversations_history(
            channel=harbour.channel_id("engineering"), limit=limit, cursor=cursor
        )
        pages.append([message["ts"] for message in page["messages"]])
        cursor = (page.get("response_metadata") or {}).get("next_cursor", "")
        assert page["has_more"] is bool(cursor)
        if not cursor:
            return pages


async def test_history_is_paged_newest_first_by_cursor(harbour: Harbour) -> None:
    stamps = fill(harbour, 5)

    pages = await read_all(harbour, 2)

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [ts for page in pages for ts in page] == stamps[::-1]
    served = harbour.control.times_served("conversations.history", "engineering")
    assert served == dict.fromkeys(stamps, 1)


async def test_a_page_never_exceeds_the_cap_whatever_limit_is_asked(harbour: Harbour) -> None:
    fill(harbour, 20)
    harbour.control.use_tier("strict")

    first = await harbour.client.conversations_history(
        channel=harbour.channel_id("engineering"), limit=200
    )

    assert (len(first["messages"]), first["has_more"]) == (15, True)


async def test_messages_deleted_between_pages_shift_no_page(harbour: Harbour) -> None:
    stamps = fill(harbour, 6)
    channel = harbour.channel_id("engineering")
    first = await harbour.client.conversations_history(channel=channel, limit=2)
    for ts in (stamps[-1], stamps[-2], stamps[-3]):
        harbour.control.delete("engineering", ts)

    second = await harbour.client.conversations_history(
        channel=channel, limit=2, cursor=first["response_metadata"]["next_cursor"]
    )

    assert [message["ts"] for message in second["messages"]] == [stamps[2], stamps[1]]


async def test_bounds_leave_out_their_own_message_unless_inclusive(harbour: Harbour) -> None:
    stamps = fill(harbour, 4)
    channel = harbour.channel_id("engineering")

    between = await harbour.client.conversations_history(
        channel=channel, oldest=stamps[0], latest=stamps[3]
    )
    inclusive = await harbour.client.conversations_history(
        channel=channel, oldest=stamps[0], latest=stamps[3], inclusive=True
    )

    assert [message["ts"] for message in between["messages"]] == [stamps[2], stamps[1]]
    assert [message["ts"] for message in inclusive["messages"]] == stamps[::-1]


async def test_a_thread_shows_its_root_first_on_each_page(harbour: Harbour) -> None:
    root = harbour.control.post("engineering", "Ines", "root").ts
    replies = [
        harbour.control.post("engineering", "Tomo", f"reply {n}", thread=root).ts for n in range(3)
    ]
    channel = harbour.channel_id("engineering")

    first = await harbour.client.conversations_replies(channel=channel, ts=root, limit=2)
    second = await harbour.client.conversations_replies(
        channel=channel, ts=root, limit=2, cursor=first["response_metadata"]["next_cursor"]
    )

    assert [message["ts"] for message in first["messages"]] == [root, *replies[:2]]
    assert [message["ts"] for message in second["messages"]] == [root, replies[2]]
    assert first["messages"][0]["reply_count"] == 3
    assert first["messages"][0]["latest_reply"] == replies[2]


async def test_history_lists_broadcasts_but_no_plain_replies(harbour: Harbour) -> None:
    root = harbour.control.post("engineering", "Ines", "root").ts
    harbour.control.post("engineering", "Tomo", "quiet", thread=root)
    loud = harbour.control.post("engineering", "Tomo", "loud", thread=root, broadcast=True).ts

    page = await harbour.client.conversations_history(channel=harbour.channel_id("engineering"))

    assert [message["ts"] for message in page["messages"]] == [loud, root]
    assert page["messages"][0]["subtype"] == "thread_broadcast"


async def test_an_expired_cursor_is_refused(harbour: Harbour) -> None:
    fill(harbour, 3)
    channel = harbour.channel_id("engineering")
    first = await harbour.client.conversations_history(channel=channel, limit=1)
    harbour.control.expire_cursors()

    again = harbour.client.conversations_history(
        channel=channel, limit=1, cursor=first["response_metadata"]["next_cursor"]
    )

    assert await error_of(again) == "invalid_cursor"


async def test_the_bot_reads_only_channels_it_is_in(harbour: Harbour) -> None:
    harbour.control.add_channel("sales", members=["Femi"])
    client = harbour.client

    public = client.conversations_history(channel=harbour.channel_id("sales"))
    private = client.conversations_history(channel=harbour.channel_id("leads"))

    assert await error_of(public) == "not_in_channel"
    assert await error_of(private) == "channel_not_found"
    await client.conversations_join(channel=harbour.channel_id("sales"))
    joined = await client.conversations_history(channel=harbour.channel_id("sales"))
    assert joined["messages"] == []


async def test_a_persons_channels_are_those_the_bot_can_see(harbour: Harbour) -> None:
    harbour.control.add_channel("sales", members=["Ines"])
    kinds = "public_channel,private_channel"

    before = await harbour.client.users_conversations(user=harbour.user_id("Ines"), types=kinds)
    harbour.control.join("leads", harbour.installation.bot_user_id)
    after = await harbour.client.users_conversations(user=harbour.user_id("Ines"), types=kinds)

    assert {channel["name"] for channel in before["channels"]} == {"engineering", "sales"}
    assert {channel["name"] for channel in after["channels"]} == {"engineering", "sales", "leads"}


async def test_conversations_are_listed_about_fifty_a_page_despite_the_limit(
    harbour: Harbour,
) -> None:
    for number in range(60):
        harbour.control.add_channel(f"room-{number}")

    names: list[str] = []
    sizes: list[int] = []
    cursor = ""
    while cursor or not sizes:
        page = await harbour.client.conversations_list(limit=1000, cursor=cursor)
        names += [channel["name"] for channel in page["channels"]]
        sizes.append(len(page["channels"]))
        cursor = page["response_metadata"]["next_cursor"]

    assert sizes == [50, 11]
    assert len(set(names)) == 61


async def test_directory_methods_show_people_and_the_workspace(harbour: Harbour) -> None:
    harbour.control.deactivate_user("Femi")
    client = harbour.client

    auth = await client.auth_test()
    team = await client.team_info()
    femi = await client.users_info(user=harbour.user_id("Femi"))
    members = await client.conversations_members(channel=harbour.channel_id("engineering"))
    people = await client.users_list(limit=2)

    assert auth["url"] == "https://harbour.slack.com/"
    assert auth["user_id"] == harbour.installation.bot_user_id
    assert team["team"]["id"] == auth["team_id"]
    assert (femi["user"]["deleted"], femi["user"]["real_name"]) == (True, "Femi")
    assert set(members["members"]) == {
        harbour.user_id("Ines"),
        harbour.user_id("Tomo"),
        auth["user_id"],
    }
    assert (len(people["members"]), bool(people["response_metadata"]["next_cursor"])) == (2, True)


async def test_a_pace_refuses_the_next_call_with_the_time_to_wait(harbour: Harbour) -> None:
    harbour.control.pace("conversations.history", 1, 60)
    channel = harbour.channel_id("engineering")
    await harbour.client.conversations_history(channel=channel)

    with pytest.raises(SlackApiError) as refused:
        await harbour.client.conversations_history(channel=channel)
    harbour.clock.now = START_SECONDS + 60
    await harbour.client.conversations_history(channel=channel)

    assert refused.value.response.status_code == 429
    assert refused.value.response["error"] == "ratelimited"
    assert refused.value.response.headers["Retry-After"] == "60"


async def test_paces_are_kept_per_method_and_workspace(harbour: Harbour) -> None:
    control = harbour.control
    control.add_team("Lighthouse")
    other = control.install(team="Lighthouse")
    control.add_channel("beams", team="Lighthouse", members=[other.bot_user_id])
    control.pace("conversations.history", 1, 60)
    client = harbour.client
    channel = control.find_channel("engineering", "Harbour").channel_id
    await client.conversations_history(channel=channel)

    await client.conversations_info(channel=channel)
    await client.conversations_history(
        channel=control.find_channel("beams", "Lighthouse").channel_id, token=other.access_token
    )

    assert await error_of(client.conversations_history(channel=channel)) == "ratelimited"


@pytest.mark.parametrize(("given", "header"), [(3, "3"), (0, "0"), (None, None)])
async def test_a_429_comes_with_any_or_no_retry_after(
    harbour: Harbour, given: int | None, header: str | None
) -> None:
    harbour.control.add_fault("team.info", "ratelimited", retry_after=given)

    with pytest.raises(SlackApiError) as refused:
        await harbour.client.team_info()
    await harbour.client.team_info()

    assert refused.value.response.status_code == 429
    assert refused.value.response.headers.get("Retry-After") == header


async def test_faults_strike_the_numbered_calls_of_one_channel(harbour: Harbour) -> None:
    bot = harbour.installation.bot_user_id
    harbour.control.add_channel("quiet", members=[bot])
    harbour.control.add_fault(
        "conversations.history", "error", channel="engineering", on_calls=[2], error="fatal_error"
    )
    client, channel = harbour.client, harbour.channel_id("engineering")

    await client.conversations_history(channel=channel)
    await client.conversations_history(channel=harbour.channel_id("quiet"))
    second = await error_of(client.conversations_history(channel=channel))
    await client.conversations_history(channel=channel)

    assert second == "fatal_error"
    calls = harbour.control.calls("conversations.history", channel="engineering")
    assert [call.error for call in calls] == ["", "fatal_error", ""]


async def test_an_answer_may_be_html_cut_json_or_no_answer(harbour: Harbour) -> None:
    kinds: tuple[FaultKind, ...] = ("http", "malformed", "reset")
    for kind in kinds:
        harbour.control.add_fault("auth.test", kind)

    for expected in (SlackApiError, SlackApiError, aiohttp.ClientError):
        with pytest.raises(expected):
            await harbour.client.auth_test()

    assert (await harbour.client.auth_test())["ok"]
    assert [call.status for call in harbour.control.calls("auth.test")] == [503, 200, 200, 200]


async def test_a_post_whose_answer_is_lost_is_still_posted(harbour: Harbour) -> None:
    harbour.control.add_fault("chat.postMessage", "reply_lost")
    channel = harbour.channel_id("engineering")
    metadata = {"event_type": "answer", "event_payload": {"command": "1"}}

    with pytest.raises(aiohttp.ClientError):
        await harbour.client.chat_postMessage(channel=channel, text="Hello", metadata=metadata)
    page = await harbour.client.conversations_history(channel=channel, include_all_metadata=True)

    assert [message["metadata"] for message in page["messages"]] == [metadata]
