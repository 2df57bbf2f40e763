"""LeaseToken: the bot token of a workspace, and to one caller at a time the duty to rotate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recall.error.v1 import error_pb2
from services.ingest.resources import Resources
from services.ingest.token_cipher import TokenCipher
from services.runtime import db, sql
from services.runtime.errors import CallError, not_found, unavailable

# A token lives 12 hours; it is rotated this long before its end.
MARGIN_SECONDS = 2 * 3600.0
# Whoever has the duty calls Slack and saves within this; then another caller gets it.
LEASE_SECONDS = 60.0

_STATEMENTS = sql.load("services.ingest", "installations.sql")


@dataclass(frozen=True)
class Lease:
    """What a Slack client needs. ``refresh_token`` is empty unless the caller is to rotate."""

    bot_token: str
    refresh_token: str
    bot_user_id: str
    team_id: str
    url: str
    enterprise_id: str


async def lease_token(resources: Resources, workspace_id: str, *, may_rotate: bool = True) -> Lease:
    """The token to use now. The others keep using the old one while one caller rotates it.

    ``may_rotate`` is false for a caller that could not: it never gets the duty. A token that an
    older key encrypted is stored again under the first one. Raises CallError NOT_FOUND without an
    installation, UNAVAILABLE when the token has ended and somebody else is rotating it.
    """
    key: dict[str, Any] = {"workspace_id": workspace_id}
    async with db.writing(resources.pool, workspace_id) as connection:
        row = await db.fetch_one(
            connection,
            _STATEMENTS["read_installation"],
            {**key, "margin_seconds": MARGIN_SECONDS},
        )
        if row is None:
            raise not_installed(workspace_id)
        stored, stored_refresh, bot_user_id, team_id, url, enterprise_id, due, over, leased = row
        bot_token = resources.tokens.decrypt(stored)
        await _encrypt_anew(connection, resources.tokens, key, (stored, stored_refresh))
        refresh_token = ""
        if may_rotate and due and stored_refresh and not leased:
            refresh_token = resources.tokens.decrypt(stored_refresh)
            await connection.execute(
                _STATEMENTS["lease_refresh"], {**key, "lease_seconds": LEASE_SECONDS}
            )
    if over and leased:
        raise unavailable(
            error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
            "The workspace's Slack token has ended and is being rotated. Try again.",
        )
    return Lease(bot_token, refresh_token, bot_user_id, team_id, url, enterprise_id)


def not_installed(workspace_id: str) -> CallError:
    """NOT_FOUND with the remedy."""
    return not_found(
        f"No Slack app is installed for workspace {workspace_id!r}. Install it (docs/slack.md)."
    )


async def _encrypt_anew(
    connection: db.Connection,
    tokens: TokenCipher,
    key: dict[str, Any],
    stored: tuple[bytes, bytes | None],
) -> None:
    """Store both tokens under the first key when another one encrypted them."""
    if all(token is None or tokens.is_current(token) for token in stored):
        return
    sealed = [token and tokens.encrypt(tokens.decrypt(token)) for token in stored]
    await connection.execute(
        _STATEMENTS["save_tokens"], {**key, "bot_token": sealed[0], "refresh_token": sealed[1]}
    )
