"""CompleteInstall: an installed app and its workspace, ready for its first event."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recall.error.v1 import error_pb2
from services.corpus import Source
from services.ingest.backfill_jobs import ask_for_listing
from services.ingest.begin_install import INSTALLING, state_sha256
from services.ingest.chunkers import newest
from services.ingest.generations import (
    NewGeneration,
    create_generation,
    following,
    in_state,
    set_filled,
)
from services.ingest.import_target import Target, check_same
from services.ingest.promote_generation import serve_first
from services.ingest.purges import open_workspace_purge
from services.ingest.resources import Resources
from services.ingest.teams import installed_for
from services.ingest.workspaces import (
    Workspace,
    changing,
    create_workspace,
    workspaces_of_team,
)
from services.runtime import db, sql
from services.runtime.callers import Caller, require_whole_workspace
from services.runtime.errors import invalid, unavailable

PURGE_RETRY_SECONDS = 10.0
_DOMAIN = re.compile(r"https://([\w-]+)(?:\.enterprise)?\.slack\.com/?")

_STATEMENTS = sql.load("services.ingest", "installations.sql")


@dataclass(frozen=True)
class Install:
    """What oauth.v2.access and auth.test told. ``team_id`` is empty for an organisation's app."""

    team_id: str
    enterprise_id: str
    is_enterprise_install: bool
    app_id: str
    bot_user_id: str
    bot_id: str
    url: str
    scopes: Sequence[str]
    bot_token: str
    refresh_token: str
    token_expires_at: datetime | None
    installed_by: str

    @property
    def own_id(self) -> str:
        """The team in its message ids: an organisation's channel ids are unique in all of it."""
        return self.team_id or self.enterprise_id


async def complete_install(
    resources: Resources, caller: Caller, state: str, install: Install
) -> str:
    """Check the state and store the installation in place of a former one; the workspace's id.

    Its people and channels are listed and its history read by jobs of their own.

    The workspace is the one that the app had, else the one that an archive of the team made, else
    a new one. It gets a serving generation, so that the first message is found. Raises CallError
    INVALID_ARGUMENT for a state that is unknown, used or too old and for missing fields,
    UNAVAILABLE while a purge of the workspace is under way.
    """
    _check(install)
    workspace_id = await _workspace_id(resources, install)
    require_whole_workspace(caller, workspace_id)
    sealed = _sealed(resources, install)
    await _use_state(resources, state)
    async with changing(resources.pool, workspace_id) as connection:
        await _refuse_during_purge(connection, workspace_id)
        workspace = await create_workspace(connection, workspace_id, Source.SLACK, install.own_id)
        check_same(Target(workspace_id, Source.SLACK, install.own_id), workspace)
        await _save(connection, workspace, install, sealed)
        await _ensure_serving(connection, workspace, resources)
        await ask_for_listing(connection, workspace_id)
    return workspace_id


def _check(install: Install) -> None:
    if not install.own_id:
        raise invalid("team_id", "is missing; an org-wide install needs its enterprise_id")
    for name in ("bot_user_id", "bot_token"):
        if not getattr(install, name):
            raise invalid(name, "is missing: ask Slack's auth.test and oauth.v2.access for it")
    if install.refresh_token and install.token_expires_at is None:
        raise invalid("token_expires_at", "is missing for a token that rotates")


async def _workspace_id(resources: Resources, install: Install) -> str:
    enterprise_id = install.enterprise_id if install.is_enterprise_install else ""
    installed = await installed_for(resources.queue_pool, install.team_id, enterprise_id)
    if installed is not None and installed.team_id == install.own_id:
        return installed.workspace_id
    imported = await workspaces_of_team(resources.queue_pool, install.own_id)
    return install.own_id if install.own_id in imported or not imported else imported[0]


def _sealed(resources: Resources, install: Install) -> dict[str, bytes | None]:
    return {
        "bot_token": resources.tokens.encrypt(install.bot_token),
        "refresh_token": (
            resources.tokens.encrypt(install.refresh_token) if install.refresh_token else None
        ),
    }


async def _use_state(resources: Resources, state: str) -> None:
    parameters = {"workspace_id": INSTALLING, "state_sha256": state_sha256(state)}
    async with db.writing(resources.pool, INSTALLING) as connection:
        used = await db.fetch_one(connection, _STATEMENTS["use_state"], parameters)
    if used is None:
        raise invalid(
            "state", "is unknown, was used or is older than ten minutes: begin the install again"
        )


async def _refuse_during_purge(connection: db.Connection, workspace_id: str) -> None:
    if await open_workspace_purge(connection, workspace_id):
        raise unavailable(
            error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
            "What was stored of this workspace is being deleted. Install the app again once the "
            "purge has ended.",
            PURGE_RETRY_SECONDS,
        )


async def _save(
    connection: db.Connection,
    workspace: Workspace,
    install: Install,
    sealed: dict[str, bytes | None],
) -> None:
    key = {"workspace_id": workspace.workspace_id}
    domain = _DOMAIN.fullmatch(install.url)
    await connection.execute(
        _STATEMENTS["set_domain"], {**key, "domain": domain[1] if domain else ""}
    )
    await connection.execute(_STATEMENTS["forget_installations"], key)
    await connection.execute(
        _STATEMENTS["save_installation"],
        {
            **key,
            **vars(install),
            **sealed,
            "scopes": list(install.scopes),
            "installation_id": f"{install.enterprise_id}:{install.team_id}",
        },
    )


async def _ensure_serving(
    connection: db.Connection, workspace: Workspace, resources: Resources
) -> None:
    """A workspace without messages serves an empty generation; an import's own is left to it."""
    if await following(connection, workspace.workspace_id):
        return
    embedders = resources.embedders
    new = NewGeneration(
        workspace.workspace_id,
        resources.new_generation_id(),
        workspace.source,
        embedders.by_name(embedders.default_name()).identity,
        chunker_version=newest(resources.chunkers),
    )
    await create_generation(connection, new)
    await set_filled(connection, new.workspace_id, new.generation_id)
    created = in_state(await following(connection, workspace.workspace_id), "building")
    assert created is not None
    await serve_first(connection, resources, created)
