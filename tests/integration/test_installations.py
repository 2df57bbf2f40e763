"""Installed apps: how they begin, their tokens at rest, who rotates them, how they end."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from recall.ingest.v1 import ingest_pb2, slack_pb2
from services.ingest.lease_token import lease_token
from services.ingest.resources import Resources
from services.ingest.token_cipher import TokenCipher
from services.runtime.errors import CallError
from tests import builders as b
from tests import slack_events as s
from tests.integration.app_fixtures import App, limit_callers
from tests.integration.ingest_fixtures import TOKEN_KEY, Ingest, Rows, call_fails

OTHER_KEY = base64.urlsafe_b64encode(bytes(range(32, 64))).decode()


def stamp(hours: float) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(datetime.now(UTC) + timedelta(hours=hours))
    return made


async def begun(ingest: Ingest) -> str:
    return (await ingest.installations.BeginInstall(slack_pb2.BeginInstallRequest())).state


async def installed(ingest: Ingest, **fields: Any) -> str:
    """Install the app of the builders' team; the workspace's id."""
    given: dict[str, Any] = {
        "team_id": b.TEAM,
        "bot_user_id": s.BOT_USER,
        "bot_id": s.BOT,
        "url": "https://harbour.slack.com/",
        "scopes": ["channels:history"],
        "bot_token": "xoxb-the-token",
        **fields,
    }
    if "state" not in given:
        given["state"] = await begun(ingest)
    request = slack_pb2.CompleteInstallRequest(**given)
    return (await ingest.installations.CompleteInstall(request)).workspace_id


async def leased(ingest: Ingest, workspace_id: str = b.TEAM) -> slack_pb2.LeaseTokenResponse:
    request = slack_pb2.LeaseTokenRequest(workspace_id=workspace_id)
    return await ingest.installations.LeaseToken(request)


async def save(ingest: Ingest, bot_token: str, refresh_token: str) -> None:
    await ingest.installations.SaveRotatedToken(
        slack_pb2.SaveRotatedTokenRequest(
            workspace_id=b.TEAM,
            bot_token=bot_token,
            refresh_token=refresh_token,
            token_expires_at=stamp(12),
        )
    )


# Installing ------------------------------------------------------------------------------------


async def test_an_installed_app_s_first_message_is_found(app: App, ingest: Ingest) -> None:
    app.rows.execute("DELETE FROM workspaces")
    assert await installed(ingest) == b.TEAM
    await app.happen(s.posted("hello"))
    assert app.rows.found("hello") == ["message"]
    assert app.rows.all("SELECT team_id, domain, source FROM workspaces") == [
        (b.TEAM, "harbour", "slack")
    ]
    assert app.rows.all("SELECT state FROM generations") == [("active",)]


async def test_a_team_that_was_imported_keeps_its_workspace(ingest: Ingest, rows: Rows) -> None:
    await ingest.load(b.slack_import(b.slack_record("imported", 0, team=b.TEAM), team_id=b.TEAM))
    assert await installed(ingest) == "W"
    assert rows.one("SELECT count(*) FROM generations") == 1
    assert rows.found("imported") == ["message"]


async def test_an_organisation_s_app_has_the_organisation_s_workspace(
    ingest: Ingest, rows: Rows
) -> None:
    fields = {"team_id": "", "enterprise_id": "E0ORG", "is_enterprise_install": True}
    assert await installed(ingest, **fields) == "E0ORG"
    assert (await leased(ingest, "E0ORG")).enterprise_id == "E0ORG"


async def test_an_app_installed_again_has_its_new_token_only(ingest: Ingest, rows: Rows) -> None:
    await installed(ingest)
    await installed(ingest, bot_token="xoxb-newer", enterprise_id="E0ORG")
    assert (await leased(ingest)).bot_token == "xoxb-newer"
    assert rows.one("SELECT count(*) FROM installations") == 1


async def test_a_state_works_once(ingest: Ingest, rows: Rows) -> None:
    state = await begun(ingest)
    assert state not in str(rows.all("SELECT * FROM install_states"))
    await installed(ingest, state=state)
    with call_fails() as errors:
        await installed(ingest, state=state)
    assert errors[0].message.startswith("state: ")


async def test_a_state_ends_after_ten_minutes(ingest: Ingest, rows: Rows) -> None:
    state = await begun(ingest)
    lasts = "SELECT expires_at - now() BETWEEN '9 minutes' AND '10 minutes' FROM install_states"
    assert rows.one(lasts) is True
    rows.execute("UPDATE install_states SET expires_at = now() - interval '1 second'")
    with call_fails() as errors:
        await installed(ingest, state=state)
    assert errors[0].code.name == "INVALID_ARGUMENT"
    await begun(ingest)
    assert rows.one("SELECT count(*) FROM install_states") == 1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"team_id": ""}, "team_id"),
        ({"bot_token": ""}, "bot_token"),
        ({"bot_user_id": ""}, "bot_user_id"),
        ({"refresh_token": "xoxe-1"}, "token_expires_at"),
        ({"state": "invented"}, "state"),
    ],
)
async def test_what_slack_should_have_told_is_named(
    ingest: Ingest, rows: Rows, fields: dict[str, Any], named: str
) -> None:
    with call_fails() as errors:
        await installed(ingest, **fields)
    assert errors[0].message.startswith(f"{named}: ")
    assert rows.one("SELECT count(*) FROM installations") == 0


async def test_an_app_is_not_installed_while_its_workspace_is_purged(
    app: App, ingest: Ingest, rows: Rows
) -> None:
    await app.tell({"type": "app_uninstalled"})
    with call_fails() as errors:
        await installed(ingest)
    assert errors[0].code.name == "UNAVAILABLE"
    await app.work()
    assert await installed(ingest) == b.TEAM


# Tokens ----------------------------------------------------------------------------------------


async def test_tokens_are_encrypted_at_rest(ingest: Ingest, rows: Rows) -> None:
    await installed(ingest, refresh_token="xoxe-1-refresh", token_expires_at=stamp(12))
    stored = b"".join(rows.all("SELECT bot_token, refresh_token FROM installations")[0])
    assert b"xox" not in stored and b"the-token" not in stored
    found = await leased(ingest)
    assert (found.bot_token, found.bot_user_id, found.team_id, found.url) == (
        "xoxb-the-token", s.BOT_USER, b.TEAM, "https://harbour.slack.com/"
    )  # fmt: skip
    assert found.refresh_token == ""


async def test_a_new_key_before_the_old_one_takes_over(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    await installed(ingest, refresh_token="xoxe-1-refresh", token_expires_at=stamp(12))

    async def read(*keys: str) -> str:
        changed = Resources(**{**vars(resources), "tokens": TokenCipher(keys)})
        return (await lease_token(changed, b.TEAM)).bot_token

    with pytest.raises(CallError, match="RECALL_TOKEN_KEY does not open"):
        await read(OTHER_KEY)
    assert await read(OTHER_KEY, TOKEN_KEY) == "xoxb-the-token"
    assert await read(OTHER_KEY) == "xoxb-the-token"
    with pytest.raises(CallError, match="RECALL_TOKEN_KEY does not open"):
        await read(TOKEN_KEY)


async def test_without_a_key_installing_says_what_to_set(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    object.__setattr__(resources, "tokens", TokenCipher(()))
    with call_fails() as errors:
        await installed(ingest)
    assert errors[0].reason_name == "SLACK_NOT_SET_UP"
    assert "RECALL_TOKEN_KEY is not set" in errors[0].message


@pytest.mark.parametrize("hours", [1.9, -1])
async def test_one_caller_at_a_time_is_to_rotate(ingest: Ingest, hours: float) -> None:
    await installed(ingest, refresh_token="xoxe-1-refresh", token_expires_at=stamp(hours))
    found = await asyncio.gather(*(leased(ingest) for _ in range(6)), return_exceptions=True)
    duties = [lease for lease in found if getattr(lease, "refresh_token", "")]
    assert [lease.refresh_token for lease in duties] == ["xoxe-1-refresh"]  # type: ignore[union-attr]
    refused = [lease for lease in found if isinstance(lease, Exception)]
    # An ended token helps nobody; one that lives still is used on.
    assert len(refused) == (5 if hours < 0 else 0)


async def test_a_rotation_ends_the_duty_and_gives_everybody_the_new_token(ingest: Ingest) -> None:
    await installed(ingest, refresh_token="xoxe-1-first", token_expires_at=stamp(1))
    assert (await leased(ingest)).refresh_token == "xoxe-1-first"
    await save(ingest, "xoxb-second", "xoxe-1-second")
    found = await leased(ingest)
    assert (found.bot_token, found.refresh_token) == ("xoxb-second", "")


async def test_the_duty_of_a_caller_that_died_falls_to_another(ingest: Ingest, rows: Rows) -> None:
    await installed(ingest, refresh_token="xoxe-1-refresh", token_expires_at=stamp(1))
    await leased(ingest)
    assert (await leased(ingest)).refresh_token == ""
    rows.execute("UPDATE installations SET refresh_leased_until = now() - interval '1 second'")
    assert (await leased(ingest)).refresh_token == "xoxe-1-refresh"


async def test_a_token_far_from_its_end_is_not_rotated(ingest: Ingest) -> None:
    await installed(ingest, refresh_token="xoxe-1-refresh", token_expires_at=stamp(2.1))
    assert (await leased(ingest)).refresh_token == ""


# The end ---------------------------------------------------------------------------------------


async def test_a_removed_app_s_token_is_gone_at_once_and_its_workspace_purged(
    app: App, ingest: Ingest, rows: Rows
) -> None:
    await app.happen(s.posted("hello"))
    request = slack_pb2.RemoveInstallationRequest(workspace_id="W")
    purge_id = (await ingest.installations.RemoveInstallation(request)).purge_id
    assert (await ingest.installations.RemoveInstallation(request)).purge_id == purge_id
    with call_fails() as errors:
        await leased(ingest, "W")
    assert errors[0].code.name == "NOT_FOUND"
    await app.work()
    assert rows.one("SELECT count(*) FROM workspaces") == 0
    report = ingest_pb2.GetPurgeRequest(workspace_id="W", purge_id=purge_id)
    assert (await ingest.ingest.GetPurge(report)).is_finished


async def test_an_imported_workspace_without_an_app_is_not_purged_by_removing_one(
    ingest: Ingest, rows: Rows
) -> None:
    await ingest.load(b.slack_import(b.slack_record("imported")))
    request = slack_pb2.RemoveInstallationRequest(workspace_id="W")
    with call_fails() as errors:
        await ingest.installations.RemoveInstallation(request)
    assert errors[0].code.name == "NOT_FOUND"
    assert rows.one("SELECT count(*) FROM purge_reports") == 0


async def test_a_caller_of_some_channels_gets_no_token(ingest: Ingest, tmp_path: Path) -> None:
    await installed(ingest)
    limit_callers(tmp_path / "home", b.GENERAL)
    with call_fails() as errors:
        await leased(ingest)
    assert errors[0].reason_name == "CALLER_NOT_ALLOWED"
    with call_fails() as errors:
        await begun(ingest)
    assert errors[0].reason_name == "CALLER_NOT_ALLOWED"


# Corrections -----------------------------------------------------------------------------------


def correcting(older: int, newer: int) -> ingest_pb2.CorrectMessageRequest:
    return ingest_pb2.CorrectMessageRequest(
        workspace_id="W",
        message_id=b.message_id(older),
        corrected_by_id=b.message_id(newer),
        person_id="U1",
    )


async def test_a_correction_is_stored_once(app: App, rows: Rows) -> None:
    await app.happen(s.posted("Tuesday"), s.posted("Thursday", 60))
    for _ in range(2):
        await app.ingest.ingest.CorrectMessage(correcting(0, 60))
    assert rows.all("SELECT message_id, corrected_by_id, declared_by FROM corrections") == [
        (b.message_id(0), b.message_id(60), "U1")
    ]


@pytest.mark.parametrize(("older", "newer"), [(60, 0), (0, 0), (0, 99), (99, 60), (0, 30)])
async def test_only_a_stored_newer_message_corrects_a_stored_one(
    app: App, rows: Rows, older: int, newer: int
) -> None:
    await app.happen(s.posted("Tuesday"), s.posted("Thursday", 60), s.posted("gone", 30))
    await app.tell(s.deleted(30))
    with call_fails() as errors:
        await app.ingest.ingest.CorrectMessage(correcting(older, newer))
    assert errors[0].code.name in ("INVALID_ARGUMENT", "NOT_FOUND")
    assert rows.one("SELECT count(*) FROM corrections") == 0


async def test_a_correction_by_a_message_of_a_channel_the_caller_may_not_read_is_not_found(
    app: App, tmp_path: Path
) -> None:
    await app.happen(s.posted("Tuesday"), s.posted("Thursday", 60))
    limit_callers(tmp_path / "home", "C0OTHER")
    with call_fails() as errors:
        await app.ingest.ingest.CorrectMessage(correcting(0, 60))
    assert errors[0].code.name == "NOT_FOUND"
