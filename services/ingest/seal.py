"""The seal on fixed content: a trigger refuses every change of it but an erasure."""

from __future__ import annotations

from services.runtime import db

_ALLOW_ERASURE = b"SELECT set_config('recall.erasure', 'on', true)"


async def allow_erasure(connection: db.Connection) -> None:
    """Let the rest of this transaction delete from sealed generations."""
    await connection.execute(_ALLOW_ERASURE)
