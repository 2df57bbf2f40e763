"""GetSettings and UpdateSettings: what a workspace's admins may turn."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from services.ingest.resources import Resources
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db, sql
from services.runtime.errors import invalid

# A hundred years; PostgreSQL's instants go further.
MAX_RETENTION_DAYS = 36_500
MIN_INTERVAL_SECONDS, MAX_INTERVAL_SECONDS = 0.01, 3_600.0
MAX_PAGE_SIZE = 999
# A looser target would certify a coin; a tighter one needs 3,000 labels without an error.
MIN_TARGET, MAX_TARGET = 0.001, 0.5

_STATEMENTS = sql.load("services.ingest", "settings.sql")


@dataclass(frozen=True)
class WorkspaceSettings:
    """None: the product's default. In an update None stays as it is, and 0 is the default."""

    index_bots: bool | None = None
    retention_days: int | None = None
    history_interval_seconds: float | None = None
    history_page_size: int | None = None
    # "strict" or "relaxed"; in an update also "default".
    trust: str | None = None
    false_confirm_target: float | None = None
    false_abstain_target: float | None = None


async def get_settings(resources: Resources, workspace_id: str) -> WorkspaceSettings:
    """The settings in force. Raises CallError WORKSPACE_NOT_FOUND."""
    async with db.reading(resources.pool, workspace_id) as connection:
        return await _read(connection, workspace_id)


async def update_settings(
    resources: Resources, workspace_id: str, wanted: WorkspaceSettings
) -> WorkspaceSettings:
    """Change what is given; the settings in force. Raises CallError INVALID_ARGUMENT,
    WORKSPACE_NOT_FOUND."""
    _check(wanted)
    async with changing(resources.pool, workspace_id) as connection:
        await connection.execute(
            _STATEMENTS["update_settings"], {"workspace_id": workspace_id, **asdict(wanted)}
        )
        if wanted.false_confirm_target is not None or wanted.false_abstain_target is not None:
            await connection.execute(
                _STATEMENTS["replay_after_targets"], {"workspace_id": workspace_id}
            )
        return await _read(connection, workspace_id)


async def _read(connection: db.Connection, workspace_id: str) -> WorkspaceSettings:
    await read_workspace(connection, workspace_id)
    row = await db.fetch_one(
        connection, _STATEMENTS["read_settings"], {"workspace_id": workspace_id}
    )
    return WorkspaceSettings(*row) if row else WorkspaceSettings()


def _check(wanted: WorkspaceSettings) -> None:
    _check_range("retention_days", wanted.retention_days, 1, MAX_RETENTION_DAYS)
    _check_range(
        "history_interval_seconds",
        wanted.history_interval_seconds,
        MIN_INTERVAL_SECONDS,
        MAX_INTERVAL_SECONDS,
    )
    _check_range("history_page_size", wanted.history_page_size, 1, MAX_PAGE_SIZE)
    _check_range("false_confirm_target", wanted.false_confirm_target, MIN_TARGET, MAX_TARGET)
    _check_range("false_abstain_target", wanted.false_abstain_target, MIN_TARGET, MAX_TARGET)


def _check_range(field: str, value: float | None, low: float, high: float) -> None:
    if value and not low <= value <= high:
        raise invalid(
            f"settings.{field}", f"must be between {low:g} and {high:g}, or 0 for the default"
        )
