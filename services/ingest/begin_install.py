"""BeginInstall: a one-time state that ties the end of an OAuth flow to its beginning."""

from __future__ import annotations

import hashlib
import secrets

from services.ingest.resources import Resources
from services.runtime import db, sql

# The tenant of states whose workspace is not known yet.
INSTALLING = "installing"
STATE_SECONDS = 600.0

_STATEMENTS = sql.load("services.ingest", "installations.sql")


async def begin_install(resources: Resources) -> str:
    """A random state, valid for ten minutes, once. Only its hash is stored."""
    state = secrets.token_urlsafe(32)
    async with db.writing(resources.pool, INSTALLING) as connection:
        await connection.execute(_STATEMENTS["forget_old_states"], {"workspace_id": INSTALLING})
        await connection.execute(
            _STATEMENTS["begin_install"],
            {
                "workspace_id": INSTALLING,
                "state_sha256": state_sha256(state),
                "seconds": STATE_SECONDS,
            },
        )
    return state


def state_sha256(state: str) -> str:
    """The state as it is stored."""
    return hashlib.sha256(state.encode()).hexdigest()
