"""ListWorkspaces: the workspaces that a caller may read."""

from __future__ import annotations

from services.ingest.resources import Resources
from services.ingest.workspaces import Workspace, all_workspaces
from services.runtime.callers import Caller


async def list_workspaces(resources: Resources, caller: Caller) -> list[Workspace]:
    """Workspaces by id; those that the caller may not read are left out."""
    found = await all_workspaces(resources.queue_pool)
    return [workspace for workspace in found if caller.may_read_workspace(workspace.workspace_id)]
