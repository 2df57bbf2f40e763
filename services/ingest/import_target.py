"""Which workspace and team an archive belongs to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.corpus import Source
from services.ingest.identifiers import storable_id
from services.ingest.import_parts import Header
from services.ingest.workspaces import Workspace, workspaces_of_team
from services.runtime import db
from services.runtime.callers import Caller, require_workspace
from services.runtime.errors import CallError, invalid

MAX_WORKSPACE_CHARACTERS = 200


@dataclass(frozen=True)
class Target:
    """Where to import. ``team_id`` is empty when neither the archive nor the header tells one."""

    workspace_id: str
    source: Source
    team_id: str

    def own_team(self) -> str:
        """The team of a new workspace: what is told, else one derived from the workspace's id."""
        if self.source is not Source.SLACK:
            return ""
        return self.team_id or derived_team(self.workspace_id)


def derived_team(workspace_id: str) -> str:
    """A stable team id for an archive without one. Slack's own begin with T or E."""
    return "X" + hashlib.sha256(workspace_id.encode()).hexdigest()[:10].upper()


async def find_target(
    queue_pool: db.Pool, caller: Caller, header: Header, records_team: str
) -> Target:
    """The workspace that the header names, else the one of the team, else the default.

    Raises CallError INVALID_ARGUMENT when none is named, PERMISSION_DENIED when the caller may
    not use it.
    """
    team_id = storable_id(records_team or header.team_id) if header.source is Source.SLACK else ""
    workspace_id = header.workspace_id
    if not workspace_id and team_id:
        workspace_id = await _workspace_of_team(queue_pool, caller, team_id) or team_id
    workspace_id = workspace_id or header.default_workspace_id
    _check_name(workspace_id)
    require_workspace(caller, workspace_id)
    return Target(workspace_id, header.source, team_id)


def check_same(target: Target, workspace: Workspace) -> None:
    """Raise WORKSPACE_CONFLICT unless the archive is of the workspace's source and team."""
    if workspace.source is not target.source:
        raise _conflict(
            workspace, f"of {workspace.source} messages", f"of {target.source} messages"
        )
    if target.team_id and target.team_id != workspace.team_id:
        raise _conflict(workspace, f"of team {workspace.team_id}", f"of team {target.team_id}")


def target_notes(target: Target, header: Header, workspace: Workspace) -> list[str]:
    """What a person should know about the choice of team."""
    if header.source is not Source.SLACK:
        return []
    if not target.team_id:
        return [
            f"The archive names no team, so message ids carry {workspace.team_id}. Give the real "
            "one with --team before the first import."
        ]
    if header.team_id and header.team_id != target.team_id:
        return [
            f"The records belong to team {target.team_id}; --team {header.team_id} was not used."
        ]
    return []


async def _workspace_of_team(queue_pool: db.Pool, caller: Caller, team_id: str) -> str:
    found = await workspaces_of_team(queue_pool, team_id)
    permitted = [name for name in found if caller.may_read_workspace(name)]
    if len(permitted) > 1:
        raise invalid(
            "workspace_id", f"team {team_id} is in {', '.join(permitted)}: name one (--workspace)"
        )
    return permitted[0] if permitted else ""


def _check_name(workspace_id: str) -> None:
    if not workspace_id:
        raise invalid("workspace_id", "name the workspace to import into (--workspace NAME)")
    if len(workspace_id) > MAX_WORKSPACE_CHARACTERS or not workspace_id.isprintable():
        raise invalid("workspace_id", "must be at most 200 printable characters")


def _conflict(workspace: Workspace, stored: str, given: str) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_WORKSPACE_CONFLICT,
        f"Workspace {workspace.workspace_id!r} is {stored}, this archive is {given}. Import it "
        "into another workspace (--workspace NAME).",
        metadata={"workspace_id": workspace.workspace_id},
    )
