"""The operations of the control object: what a test may do to the workspace, and see of it.

Parameters named ``channel``, ``user`` and ``team`` take an id or a name; ``team=""`` is the only
workspace. Times are epoch seconds. Every operation is also ``POST /control/<name>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tests.fakes.slack_server.state import (
    BOT_SCOPES,
    Channel,
    ChannelKind,
    Installation,
    Json,
    Message,
    Team,
    User,
    View,
)

FaultKind = Literal["ratelimited", "error", "http", "reset", "slow", "malformed"]
Signature = Literal["right", "wrong", "missing", "other_bytes"]
Transport = Literal["http", "socket"]


@dataclass(frozen=True)
class Acknowledgement:
    """What the app answered to a command, click, shortcut, modal or challenge."""

    status: int
    body: str
    trigger_id: str = ""
    response_url: str = ""


@dataclass
class Delivery:
    """One event on its way; ``attempts`` are the app's status codes, 0 where none came."""

    event_id: str
    envelope: Json
    attempts: list[int] = field(default_factory=list)
    state: Literal["held", "sending", "acknowledged", "given up"] = "sending"


@dataclass(frozen=True)
class Call:
    """One Web API call; ``arguments`` without the token; ``served`` are the ts of its rows."""

    method: str
    team_id: str
    arguments: Json
    status: int
    error: str
    served: tuple[str, ...]
    at: float


class SetupOperations(Protocol):
    """Build a workspace; nothing here sends an event."""

    def connect(
        self, *, app_url: str = "", events_url: str = "", transport: Transport = "http"
    ) -> None: ...
    def add_team(
        self, name: str, *, team_id: str = "", domain: str = "", enterprise_id: str = ""
    ) -> Team: ...
    def add_user(
        self,
        name: str,
        *,
        team: str = "",
        user_id: str = "",
        title: str = "",
        is_bot: bool = False,
        is_restricted: bool = False,
        announce: bool = False,
    ) -> User: ...
    def add_channel(
        self,
        name: str,
        *,
        team: str = "",
        channel_id: str = "",
        kind: ChannelKind = "public_channel",
        members: Sequence[str] = (),
        purpose: str = "",
    ) -> Channel: ...
    def install(
        self,
        *,
        team: str = "",
        installer: str = "",
        rotating: bool = False,
        enterprise: bool = False,
        scopes: Sequence[str] = BOT_SCOPES,
        access_token: str = "",
    ) -> Installation: ...
    def authorize(
        self,
        *,
        team: str = "",
        user: str = "",
        rotating: bool = False,
        enterprise: bool = False,
        redirect_uri: str = "",
    ) -> str: ...
    def load(
        self, folder: str | Path, *, team: str = "", bot_in: Sequence[str] | None = None
    ) -> dict[str, str]: ...


class ActOperations(Protocol):
    """What people and Slack do; each act sends the events that Slack would."""

    def post(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        thread: str = "",
        broadcast: bool = False,
        subtype: str = "",
        ts: str = "",
        team: str = "",
        files: Sequence[Json] = (),
        attachments: Sequence[Json] = (),
        silent: bool = False,
    ) -> Message: ...
    def edit(
        self, channel: str, ts: str, text: str, *, user: str = "", team: str = ""
    ) -> Message: ...
    def unfurl(self, channel: str, ts: str, url: str, text: str, *, team: str = "") -> Message: ...
    def delete(self, channel: str, ts: str, *, team: str = "") -> None: ...
    def join(self, channel: str, user: str, *, team: str = "") -> None: ...
    def leave(self, channel: str, user: str, *, team: str = "") -> None: ...
    def rename_channel(self, channel: str, name: str, *, team: str = "") -> Channel: ...
    def archive_channel(self, channel: str, *, team: str = "") -> None: ...
    def unarchive_channel(self, channel: str, *, team: str = "") -> None: ...
    def delete_channel(self, channel: str, *, team: str = "") -> None: ...
    def change_channel_id(self, channel: str, new_id: str = "", *, team: str = "") -> Channel: ...
    def share_channel(self, channel: str, with_team: str, *, team: str = "") -> None: ...
    def unshare_channel(self, channel: str, with_team: str, *, team: str = "") -> None: ...
    def change_user(
        self, user: str, *, name: str = "", title: str = "", team: str = ""
    ) -> User: ...
    def deactivate_user(self, user: str, *, team: str = "") -> User: ...
    def open_home(self, user: str, *, tab: str = "home", team: str = "") -> None: ...
    def direct_channel(self, user: str, *, team: str = "") -> Channel: ...
    def uninstall(self, *, team: str = "") -> None: ...
    def revoke_tokens(self, *, team: str = "") -> None: ...


class InteractionOperations(Protocol):
    """What people press and type; awaited, with the app's answer."""

    async def command(
        self, user: str, channel: str, text: str, *, command: str = "/recall", team: str = ""
    ) -> Acknowledgement: ...
    async def click(
        self, user: str, channel: str, ts: str, action_id: str, *, value: str = "", team: str = ""
    ) -> Acknowledgement: ...
    async def shortcut(
        self, user: str, channel: str, ts: str, callback_id: str, *, team: str = ""
    ) -> Acknowledgement: ...
    async def submit_view(
        self, user: str, view_id: str, values: Mapping[str, Json], *, team: str = ""
    ) -> Acknowledgement: ...
    async def verify_url(self, challenge: str = "") -> Acknowledgement: ...


class DeliveryOperations(Protocol):
    """How events travel."""

    def configure_delivery(
        self,
        *,
        timeout_seconds: float = 3.0,
        time_scale: float = 1.0,
        skew_seconds: float = 0.0,
        signature: Signature = "right",
        copies: int = 1,
        thread_parent_events: bool = True,
    ) -> None: ...
    def hold_events(self) -> None: ...
    def release_events(self, order: Sequence[int] | None = None) -> None: ...
    def deliver_again(self, event_id: str, *, retry_number: int = 1) -> None: ...
    def deliveries(self, event_type: str = "") -> list[Delivery]: ...
    async def settle(self) -> None: ...


class FaultOperations(Protocol):
    """What goes wrong. ``method`` is a Web API method, or ``*``."""

    def add_fault(
        self,
        method: str,
        kind: FaultKind,
        *,
        team: str = "",
        channel: str = "",
        times: int | None = 1,
        on_calls: Sequence[int] = (),
        error: str = "",
        status: int = 503,
        retry_after: int | None = None,
        seconds: float = 0.0,
    ) -> None: ...
    def clear_faults(self) -> None: ...
    def pace(self, method: str, calls: int, per_seconds: float, *, team: str = "") -> None: ...
    def set_page_cap(self, method: str, rows: int) -> None: ...
    def use_tier(self, tier: Literal["unlimited", "strict", "marketplace"]) -> None: ...
    def expire_cursors(self) -> None: ...
    def expire_tokens(self, *, team: str = "") -> None: ...
    def advance_clock(self, seconds: float) -> float: ...


class InspectionOperations(Protocol):
    """What is there to be seen."""

    def visible(
        self, user: str, channel: str, *, thread: str = "", team: str = ""
    ) -> list[Json]: ...
    def history(self, channel: str, *, team: str = "") -> list[Json]: ...
    def calls(self, method: str = "", *, team: str = "", channel: str = "") -> list[Call]: ...
    def times_served(self, method: str, channel: str, *, team: str = "") -> dict[str, int]: ...
    def statuses(self, channel: str = "", *, team: str = "") -> list[Json]: ...
    def views(self, user: str = "", *, team: str = "") -> list[View]: ...
    def response_uses(self, response_url: str) -> int: ...
    def directory(self, *, team: str = "") -> Json: ...


class SlackOperations(
    SetupOperations,
    ActOperations,
    InteractionOperations,
    DeliveryOperations,
    FaultOperations,
    InspectionOperations,
    Protocol,
):
    """Everything at once: the type of ``SlackServer.control``."""
