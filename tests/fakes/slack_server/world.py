"""Everything one running Slack shares: its records, limits, clock, chance and outbox."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tests.fakes.slack_server.delivery_settings import Addresses, DeliverySettings
from tests.fakes.slack_server.faults import Intervention, Limits
from tests.fakes.slack_server.identifiers import MICROSECONDS, derived_id, ts_of
from tests.fakes.slack_server.records import Call
from tests.fakes.slack_server.state import (
    Channel,
    Installation,
    Json,
    ResponseUrl,
    Slack,
    Trigger,
)

TRIGGER_SECONDS = 3.0
RESPONSE_URL_SECONDS = 1800.0
RESPONSE_URL_USES = 5


@dataclass(frozen=True)
class AppIdentity:
    """What the app is configured with."""

    app_id: str = "A0RECALL00"
    client_id: str = "1000000000.2000000000"
    client_secret: str = "fake-client-secret"
    signing_secret: str = "fake-signing-secret"
    app_token: str = "xapp-1-A0RECALL00-fake"
    verification_token: str = "fake-verification-token"
    bot_name: str = "Recall"


class Outbox(Protocol):
    """Takes envelopes and sees to their delivery."""

    def send(self, envelope: Json) -> None: ...


@dataclass
class World:
    """``origin`` is the server's own address; ``offset_seconds`` is added to the clock."""

    app: AppIdentity
    clock: Callable[[], float]
    random: Random
    outbox: Outbox
    origin: str = ""
    offset_seconds: float = 0.0
    slack: Slack = field(default_factory=Slack)
    limits: Limits = field(default_factory=Limits)
    addresses: Addresses = field(default_factory=Addresses)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    interventions: list[Intervention] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    event_contexts: dict[str, list[Installation]] = field(default_factory=dict)
    last_event: int = 0
    socket_tickets: set[str] = field(default_factory=set)

    def now(self) -> float:
        """Epoch seconds."""
        return self.clock() + self.offset_seconds

    def token(self, length: int = 16) -> str:
        """Fresh hexadecimal digits."""
        return f"{self.random.getrandbits(4 * length):0{length}x}"

    def message_ts(self, taken: Container[str]) -> str:
        """A timestamp of now, later than every event's, that a channel has not used."""
        ts = self.event_ts()
        while ts in taken:
            ts = self.event_ts()
        return ts

    def event_ts(self) -> str:
        """A timestamp of now, later than that of every event before."""
        self.last_event = max(int(self.now() * MICROSECONDS), self.last_event + 1)
        return ts_of(self.last_event)

    def publish(self, channel: Channel, event: Json, *, members_only: bool = True) -> None:
        """Send an event of a channel, once, if a bot of the app may see it."""
        teams = [channel.team_id, *channel.shared_with]
        found = (self.slack.installation_of(team_id) for team_id in teams)
        seeing = [
            installation
            for installation in found
            if installation
            and not installation.revoked
            and (installation.bot_user_id in channel.members or not members_only)
        ]
        if seeing:
            team_id = seeing[0].team_id or channel.team_id
            self.send(seeing, event, team_id, shared=bool(channel.shared_with))

    def publish_to_team(self, team_id: str, event: Json) -> None:
        """Send an event of a whole workspace."""
        installation = self.slack.installation_of(team_id)
        if installation and not installation.revoked:
            self.send([installation], event, team_id)

    def send(
        self, seeing: list[Installation], event: Json, team_id: str, *, shared: bool = False
    ) -> None:
        """Wrap an event and hand it to the outbox; ``authorizations`` names only the first."""
        first = seeing[0]
        context = f"4-{self.token(24)}"
        self.event_contexts[context] = seeing
        self.outbox.send(
            {
                "token": self.app.verification_token,
                "team_id": team_id,
                "context_team_id": team_id,
                "context_enterprise_id": first.enterprise_id or None,
                "api_app_id": self.app.app_id,
                "event": event,
                "type": "event_callback",
                "event_id": f"Ev{self.token(10).upper()}",
                "event_time": int(self.now()),
                "authorizations": [authorization(first, team_id)],
                "is_ext_shared_channel": shared,
                "event_context": context,
            }
        )

    def new_trigger(self, team_id: str, user_id: str) -> Trigger:
        """A trigger that opens one modal within three seconds."""
        key = f"{int(self.now() * 1000)}.{self.random.randrange(10**10)}.{self.token(32)}"
        trigger = Trigger(key, team_id, user_id, self.now() + TRIGGER_SECONDS)
        self.slack.triggers[key] = trigger
        return trigger

    def new_response_url(
        self, channel: Channel, team_id: str, user_id: str, *, thread: str = "", original: str = ""
    ) -> ResponseUrl:
        """A place to answer five times within thirty minutes."""
        key = f"{team_id}/{self.random.randrange(10**12)}/{self.token(24)}"
        expires_at = self.now() + RESPONSE_URL_SECONDS
        place = ResponseUrl(key, team_id, channel.channel_id, user_id, expires_at)
        place.uses_left, place.thread_ts, place.original_ts = RESPONSE_URL_USES, thread, original
        self.slack.response_urls[key] = place
        return place

    def bot_ids(self, team_id: str) -> tuple[str, str]:
        """The user id and the bot id of the app's bot in a workspace."""
        return derived_id("U", team_id, "bot"), derived_id("B", team_id, "bot")


def authorization(installation: Installation, team_id: str) -> Json:
    """An installation as events and ``apps.event.authorizations.list`` name it."""
    return {
        "enterprise_id": installation.enterprise_id or None,
        "team_id": installation.team_id or team_id,
        "user_id": installation.bot_user_id,
        "is_bot": True,
        "is_enterprise_install": not installation.team_id,
    }
