"""The Slack for tests sends the events that Slack would, in Slack's shapes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.slack_harbour import Harbour, harbour

__all__ = ["harbour"]


async def sent(harbour: Harbour) -> list[Any]:
    """The inner events the app has received once all deliveries have ended."""
    await harbour.control.settle()
    return harbour.app.events


async def test_a_message_comes_in_an_envelope_of_the_workspace(harbour: Harbour) -> None:
    message = harbour.control.post("engineering", "Ines", "hello <@U1> &amp; all")

    (event,) = await sent(harbour)

    envelope = harbour.app.received[0].json
    team = harbour.control.find_team().team_id
    assert (envelope["type"], envelope["team_id"], envelope["api_app_id"]) == (
        "event_callback",
        team,
        harbour.slack.app.app_id,
    )
    assert envelope["authorizations"][0]["user_id"] == harbour.installation.bot_user_id
    assert envelope["event_id"].startswith("Ev")
    assert (event["type"], event["ts"], event["event_ts"]) == ("message", message.ts, message.ts)
    assert (event["channel_type"], event["team"]) == ("channel", team)
    assert "subtype" not in event
    elements = event["blocks"][0]["elements"][0]["elements"]
    assert elements == [
        {"type": "text", "text": "hello "},
        {"type": "user", "user_id": "U1"},
        {"type": "text", "text": " & all"},
    ]


async def test_nothing_is_sent_from_channels_without_the_bot(harbour: Harbour) -> None:
    harbour.control.post("leads", "Ines", "secret")

    assert await sent(harbour) == []


async def test_each_kind_of_message_has_its_subtype(harbour: Harbour) -> None:
    control = harbour.control
    control.add_user("CI", is_bot=True)
    root = control.post("engineering", "Ines", "plain").ts
    control.post("engineering", "CI", "built", attachments=[{"fallback": "ok"}])
    control.post("engineering", "Ines", "", files=[{"id": "F1", "name": "plan.pdf"}])
    control.post("engineering", "Ines", "waves", subtype="me_message")
    control.post("engineering", "Tomo", "loud", thread=root, broadcast=True)

    events = {event.get("subtype", ""): event for event in await sent(harbour)}

    assert set(events) == {"", "bot_message", "file_share", "me_message", "thread_broadcast"}
    assert events["bot_message"]["username"] == "CI"
    assert events["file_share"]["files"][0]["name"] == "plan.pdf"
    assert events["thread_broadcast"]["root"]["ts"] == root
    assert events["thread_broadcast"]["parent_user_id"] == harbour.user_id("Ines")


async def test_an_edit_is_stamped_and_a_preview_is_not(harbour: Harbour) -> None:
    ts = harbour.control.post("engineering", "Ines", "see <https://ex.test>").ts
    harbour.control.unfurl("engineering", ts, "https://ex.test", "Example")
    harbour.control.edit("engineering", ts, "see elsewhere")
    await harbour.control.settle()

    preview, edit = harbour.app.of_type("message_changed")

    assert "edited" not in preview["message"]
    assert preview["message"]["text"] == preview["previous_message"]["text"]
    assert preview["message"]["attachments"][0]["from_url"] == "https://ex.test"
    assert edit["message"]["edited"]["user"] == harbour.user_id("Ines")
    assert (edit["message"]["ts"], edit["message"]["text"]) == (ts, "see elsewhere")
    assert edit["ts"] != ts


async def test_a_reply_changes_the_numbers_of_its_root_without_an_edit(harbour: Harbour) -> None:
    harbour.control.configure_delivery(time_scale=0.0)
    root = harbour.control.post("engineering", "Ines", "root").ts
    harbour.control.post("engineering", "Tomo", "reply", thread=root)
    await harbour.control.settle()

    (change,) = harbour.app.of_type("message_changed")

    assert (change["message"]["ts"], change["message"]["reply_count"]) == (root, 1)
    assert "reply_count" not in change["previous_message"]
    assert "edited" not in change["message"]


async def test_a_deletion_names_the_deleted_ts(harbour: Harbour) -> None:
    ts = harbour.control.post("engineering", "Ines", "oops").ts
    harbour.control.delete("engineering", ts)
    await harbour.control.settle()

    (deletion,) = harbour.app.of_type("message_deleted")

    assert (deletion["deleted_ts"], deletion["previous_message"]["text"]) == (ts, "oops")
    assert deletion["ts"] != ts


async def test_a_deleted_root_becomes_a_tombstone_and_goes_with_its_last_reply(
    harbour: Harbour,
) -> None:
    root = harbour.control.post("engineering", "Ines", "root").ts
    reply = harbour.control.post("engineering", "Tomo", "reply", thread=root).ts
    harbour.control.delete("engineering", root)
    page = await harbour.client.conversations_history(channel=harbour.channel_id("engineering"))
    harbour.control.delete("engineering", reply)
    await harbour.control.settle()

    (tombstone,) = harbour.app.of_type("message_changed")

    message = tombstone["message"]
    assert (message["subtype"], message["user"], message["hidden"]) == (
        "tombstone",
        "USLACKBOT",
        True,
    )
    assert (message["text"], message["reply_count"]) == ("This message was deleted.", 1)
    assert (message["ts"], message["thread_ts"]) == (root, root)
    assert [row["subtype"] for row in page["messages"]] == ["tombstone"]
    assert [event["deleted_ts"] for event in harbour.app.of_type("message_deleted")] == [
        reply,
        root,
    ]
    assert harbour.control.history("engineering") == []


async def test_a_mention_comes_a_second_time_as_app_mention(harbour: Harbour) -> None:
    text = f"<@{harbour.installation.bot_user_id}> which berth?"

    ts = harbour.control.post("engineering", "Ines", text).ts

    kinds = {event["type"]: event["ts"] for event in await sent(harbour)}
    assert kinds == {"message": ts, "app_mention": ts}


async def test_direct_messages_and_the_home_tab_reach_the_app(harbour: Harbour) -> None:
    direct = harbour.control.direct_channel("Ines")
    harbour.control.post(direct.channel_id, "Ines", "which berth?")
    await harbour.control.open_home("Ines", tab="messages")
    await harbour.control.settle()

    (message,), (opened,) = harbour.app.of_type("message"), harbour.app.of_type("app_home_opened")

    assert (message["channel_type"], message["channel"]) == ("im", direct.channel_id)
    assert (opened["tab"], opened["user"]) == ("messages", harbour.user_id("Ines"))


@pytest.mark.parametrize(("kind", "prefix"), [("engineering", "channel"), ("leads", "group")])
async def test_channels_have_a_fate(harbour: Harbour, kind: str, prefix: str) -> None:
    control, bot = harbour.control, harbour.installation.bot_user_id
    if kind == "leads":
        control.join(kind, bot)
    control.rename_channel(kind, "renamed")
    control.archive_channel("renamed")
    control.unarchive_channel("renamed")
    control.leave("renamed", "Tomo")
    control.leave("renamed", bot)
    control.join("renamed", bot)
    control.delete_channel("renamed")

    types = [event["type"] for event in await sent(harbour)]

    expected = ["rename", "archive", "unarchive", "left", "deleted"]
    assert [one for one in types if one.startswith(prefix)] == [
        f"{prefix}_{one}" for one in expected
    ]
    assert types.count("member_left_channel") == 2


async def test_channels_change_ids_and_are_shared_with_strangers(harbour: Harbour) -> None:
    control = harbour.control
    lighthouse = control.add_team("Lighthouse")
    eve = control.add_user("Eve", team="Lighthouse").user_id
    old = control.find_channel("engineering", "Harbour").channel_id
    new = control.change_channel_id("engineering", team="Harbour").channel_id
    control.share_channel(new, "Lighthouse")
    control.join(new, eve)
    control.post(new, eve, "hello from outside")
    control.unshare_channel(new, "Lighthouse")

    events = {event["type"]: event for event in await sent(harbour)}

    changed = events["channel_id_changed"]
    assert (changed["old_channel_id"], changed["new_channel_id"]) == (old, new)
    assert events["channel_shared"]["connected_team_id"] == lighthouse.team_id
    assert events["message"]["user_team"] == lighthouse.team_id
    assert events["message"]["user_profile"]["real_name"] == "Eve"
    assert events["channel_unshared"]["is_ext_shared"] is False
    assert eve not in control.find_channel(new).members


async def test_people_change_join_and_leave_the_workspace(harbour: Harbour) -> None:
    harbour.control.change_user("Ines", name="Inés")
    harbour.control.add_user("Nadia", announce=True)
    harbour.control.deactivate_user("Tomo")

    events = await sent(harbour)

    seen = [(one["type"], one["user"]["real_name"], one["user"]["deleted"]) for one in events]
    assert seen == [
        ("user_change", "Inés", False),
        ("team_join", "Nadia", False),
        ("user_change", "Tomo", True),
    ]


async def test_leaving_the_workspace_is_told_and_ends_all_events(harbour: Harbour) -> None:
    harbour.control.uninstall()
    harbour.control.post("engineering", "Ines", "unheard")

    events = await sent(harbour)

    assert [event["type"] for event in events] == ["tokens_revoked", "app_uninstalled"]
    assert events[0]["tokens"]["bot"] == [harbour.installation.bot_user_id]


async def test_a_channel_of_two_workspaces_with_the_app_brings_one_envelope(
    harbour: Harbour,
) -> None:
    control = harbour.control
    lighthouse = control.add_team("Lighthouse")
    other = control.install(team="Lighthouse")
    channel = control.find_channel("engineering", "Harbour").channel_id
    control.share_channel(channel, "Lighthouse")
    control.join(channel, other.bot_user_id)
    await control.settle()
    before = len(harbour.app.received)
    control.post(channel, "Ines", "hello")
    await control.settle()

    (envelope,) = [one.json for one in harbour.app.received[before:]]
    listed = await harbour.client.api_call(
        "apps.event.authorizations.list",
        params={"event_context": envelope["event_context"]},
        headers={"Authorization": f"Bearer {harbour.slack.app.app_token}"},
    )

    home = control.find_team("Harbour").team_id
    assert (envelope["team_id"], envelope["is_ext_shared_channel"]) == (home, True)
    assert [one["team_id"] for one in envelope["authorizations"]] == [home]
    assert [one["team_id"] for one in listed["authorizations"]] == [home, lighthouse.team_id]
