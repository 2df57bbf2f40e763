"""Who is calling, and what that caller may read.

``callers.json`` under RECALL_HOME (mode 0600) lists the callers:

    {"callers": [{"name": "operator", "token": "…", "workspaces": ["*"], "channels": ["*"]}]}

``"*"`` stands for all. A caller presents its token as ``authorization: Bearer <token>``. An agent
that comes with a token may only read, unless its entry says ``"may_write": true``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import grpc

from recall.error.v1 import error_pb2
from services.runtime.errors import CallError, invalid

FILE_NAME = "callers.json"
EVERYTHING = "*"


class CallersFileError(Exception):
    """callers.json can not be trusted; the message says how to mend it."""


@dataclass(frozen=True)
class Caller:
    """A known caller: the workspaces and channels it may read; ``*`` is all of them."""

    name: str
    token: str
    workspaces: frozenset[str]
    channels: frozenset[str]
    may_write: bool = False

    @property
    def hashed(self) -> str:
        """What providers of models are told of the caller."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def may_read_workspace(self, workspace_id: str) -> bool:
        """Whether the caller is listed for the workspace."""
        return EVERYTHING in self.workspaces or workspace_id in self.workspaces

    def may_read_channel(self, channel_id: str) -> bool:
        """Whether the caller is listed for the channel."""
        return EVERYTHING in self.channels or channel_id in self.channels


class Callers:
    """The callers of one file. A changed file is read again; a broken one keeps nobody in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: tuple[int, tuple[Caller, ...]] | None = None

    def identify(self, authorization: str) -> Caller:
        """The caller of an ``authorization`` header. Raises CallError UNAUTHENTICATED."""
        token = authorization.removeprefix("Bearer ").strip()
        found = [caller for caller in self._current() if _same(caller.token, token)]
        if not token or not found:
            raise CallError(
                grpc.StatusCode.UNAUTHENTICATED,
                error_pb2.ERROR_REASON_CALLER_UNKNOWN,
                "This call needs a caller's token: send 'authorization: Bearer <token>' with a "
                "token of RECALL_HOME/callers.json (`recall token` prints the operator's).",
            )
        return found[0]

    def token_of(self, name: str) -> str:
        """The token of the caller called ``name``. Raises CallersFileError when not listed."""
        for caller in self._current():
            if caller.name == name:
                return caller.token
        raise CallersFileError(f"{self._path} lists no caller {name!r}; delete it and restart.")

    def _current(self) -> tuple[Caller, ...]:
        try:
            changed = self._path.stat().st_mtime_ns
        except OSError as error:
            raise CallersFileError(f"{self._path} can not be read: {error.strerror}.") from None
        if self._loaded is None or self._loaded[0] != changed:
            self._loaded = (changed, tuple(read_callers(self._path)))
        return self._loaded[1]


def read_callers(path: Path) -> list[Caller]:
    """The callers of a file. Raises CallersFileError when it is open to others or malformed."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise CallersFileError(f"{path} is readable by others: chmod 600 {path}.")
    try:
        entries = json.loads(path.read_text("utf-8"))["callers"]
        return [_caller(entry) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise CallersFileError(f"{path} is malformed ({error}); mend or delete it.") from None


def write_default_callers(home: Path, names: Iterable[str]) -> Path:
    """Create callers.json with a fresh token for each name, unless it exists. Returns its path."""
    path = home / FILE_NAME
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    entries = [
        {
            "name": name,
            "token": secrets.token_urlsafe(32),
            "workspaces": [EVERYTHING],
            "channels": [EVERYTHING],
        }
        for name in names
    ]
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"callers": entries}, file, indent=2)
    return path


def require_workspace(caller: Caller, workspace_id: str) -> None:
    """Raise PERMISSION_DENIED unless the caller is listed for the workspace."""
    if not workspace_id:
        raise invalid("workspace_id", "must name a workspace")
    if not caller.may_read_workspace(workspace_id):
        raise _not_allowed(caller, f"workspace {workspace_id!r}")


def require_whole_workspace(caller: Caller, workspace_id: str) -> None:
    """Raise PERMISSION_DENIED unless the caller may read every channel of the workspace.

    For what reaches beyond single channels: tokens, settings, purges, what Slack delivers.
    """
    require_workspace(caller, workspace_id)
    if EVERYTHING not in caller.channels:
        raise _not_allowed(caller, f"every channel of workspace {workspace_id!r}")


def require_channels(caller: Caller, channel_ids: Iterable[str]) -> None:
    """Raise PERMISSION_DENIED unless the caller is listed for every channel."""
    for channel_id in channel_ids:
        if not caller.may_read_channel(channel_id):
            raise _not_allowed(caller, f"channel {channel_id!r}")


def require_write(caller: Caller) -> None:
    """Raise PERMISSION_DENIED unless the caller's entry lets agents change something."""
    if not caller.may_write:
        raise CallError(
            grpc.StatusCode.PERMISSION_DENIED,
            error_pb2.ERROR_REASON_CALLER_NOT_ALLOWED,
            f'Caller {caller.name!r} may only read. Set "may_write": true for it in '
            "RECALL_HOME/callers.json to let it change things.",
        )


def _not_allowed(caller: Caller, what: str) -> CallError:
    return CallError(
        grpc.StatusCode.PERMISSION_DENIED,
        error_pb2.ERROR_REASON_CALLER_NOT_ALLOWED,
        f"Caller {caller.name!r} may not read {what}. List it in RECALL_HOME/callers.json.",
    )


def _caller(entry: dict[str, object]) -> Caller:
    name, token = entry["name"], entry["token"]
    if not isinstance(name, str) or not isinstance(token, str) or len(token) < 16:
        raise ValueError("each caller needs a name and a token of at least 16 characters")
    workspaces, channels = _names(entry["workspaces"]), _names(entry["channels"])
    may_write = entry.get("may_write", False)
    if not isinstance(may_write, bool):
        raise ValueError("may_write is true or false")
    return Caller(name, token, workspaces, channels, may_write)


def _names(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("workspaces and channels are lists of names")
    return frozenset(value)


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(), right.encode())
