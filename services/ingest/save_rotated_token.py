"""SaveRotatedToken: the tokens of a rotation, and the end of the duty to rotate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from services.ingest.lease_token import not_installed
from services.ingest.resources import Resources
from services.runtime import db, sql
from services.runtime.errors import invalid

_STATEMENTS = sql.load("services.ingest", "installations.sql")


@dataclass(frozen=True)
class RotatedToken:
    """What oauth.v2.access answered. The refresh token works once."""

    bot_token: str
    refresh_token: str
    token_expires_at: datetime | None


async def save_rotated_token(
    resources: Resources, workspace_id: str, rotated: RotatedToken
) -> None:
    """Store new tokens. Raises CallError INVALID_ARGUMENT, or NOT_FOUND without an installation."""
    if not rotated.bot_token or not rotated.refresh_token or rotated.token_expires_at is None:
        raise invalid("bot_token", "needs its refresh_token and token_expires_at beside it")
    async with db.writing(resources.pool, workspace_id) as connection:
        cursor = await connection.execute(
            _STATEMENTS["save_rotated_tokens"],
            {
                "workspace_id": workspace_id,
                "bot_token": resources.tokens.encrypt(rotated.bot_token),
                "refresh_token": resources.tokens.encrypt(rotated.refresh_token),
                "token_expires_at": rotated.token_expires_at,
            },
        )
        if not cursor.rowcount:
            raise not_installed(workspace_id)
