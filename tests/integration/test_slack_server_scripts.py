"""The Slack for tests: faults of one thread, acts at the moment of a call, control over HTTP."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.fakes.slack_server import ControlError
from tests.integration.slack_harbour import Harbour, error_of, harbour

__all__ = ["harbour"]


async def test_one_thread_can_fail_while_others_are_read(harbour: Harbour) -> None:
    roots = [harbour.control.post("engineering", "Ines", f"root {n}").ts for n in range(2)]
    harbour.control.add_fault(
        "conversations.replies", "error", thread=roots[0], times=2, error="internal_error"
    )
    client, channel = harbour.client, harbour.channel_id("engineering")

    failed = [
        await error_of(client.conversations_replies(channel=channel, ts=roots[0])) for _ in range(2)
    ]
    other = await client.conversations_replies(channel=channel, ts=roots[1])
    recovered = await client.conversations_replies(channel=channel, ts=roots[0])

    assert failed == ["internal_error"] * 2
    assert other["messages"][0]["text"] == "root 1"
    assert recovered["messages"][0]["text"] == "root 0"


async def test_a_person_can_leave_between_two_looks_at_their_channels(harbour: Harbour) -> None:
    harbour.control.before_call(
        "users.conversations", "leave", {"channel": "engineering", "user": "Ines"}, on_call=2
    )
    ines = harbour.user_id("Ines")

    looks = [
        [one["name"] for one in (await harbour.client.users_conversations(user=ines))["channels"]]
        for _ in range(3)
    ]

    assert looks == [["engineering"], [], []]


async def test_only_acts_can_be_planned(harbour: Harbour) -> None:
    for operation in ("command", "_publish", "explode"):
        with pytest.raises(ControlError, match="is no act"):
            harbour.control.before_call("team.info", operation, {})


async def ask(harbour: Harbour, operation: str, raw: bytes) -> tuple[int, Any]:
    """Status and body of one control request."""
    url = f"{harbour.slack.base_url}/control/{operation}"
    async with aiohttp.ClientSession() as session, session.post(url, data=raw) as response:
        return response.status, await response.json()


async def test_wrong_use_of_the_control_api_is_explained(harbour: Harbour) -> None:
    refused = [
        await ask(harbour, "explode", b"{}"),
        await ask(harbour, "post", b"not json"),
        await ask(harbour, "post", b'{"channel": "engineering"}'),
        await ask(harbour, "post", b'{"channel": "x", "user": "Ines", "text": "hello"}'),
        await ask(harbour, "delete", b'{"channel": "engineering", "ts": "1.000000"}'),
    ]

    assert [status for status, _ in refused] == [404, 400, 400, 400, 400]
    reasons = [body["error"] for _, body in refused]
    assert "There is no operation 'explode'" in reasons[0]
    assert "not JSON" in reasons[1]
    assert "missing a required argument: 'user'" in reasons[2]
    assert "Harbour has no channel 'x'" in reasons[3]
    assert reasons[4] == "delete: message_not_found"


async def test_every_operation_is_listed_with_its_parameters(harbour: Harbour) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{harbour.slack.base_url}/control") as response,
    ):
        listed = await response.json(content_type=None)

    assert listed["leave"]["parameters"][:2] == ["channel: 'str'", "user: 'str'"]
    assert all(entry["does"] for entry in listed.values())
    assert {"post", "command", "deliveries", "add_fault", "visible", "load"} <= set(listed)
