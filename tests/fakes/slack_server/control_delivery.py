"""How events travel, what goes wrong, and what time it is."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial

from tests.fakes.slack_server.control_base import ControlBase
from tests.fakes.slack_server.delivery_settings import DeliverySettings, Signature
from tests.fakes.slack_server.faults import Fault, FaultKind, Intervention, Tier
from tests.fakes.slack_server.records import Delivery
from tests.fakes.slack_server.state import ControlError, Json


class DeliveryControl(ControlBase):
    """Delivery, faults, paces and the clock."""

    def configure_delivery(
        self,
        *,
        timeout_seconds: float = 3.0,
        time_scale: float = 1.0,
        skew_seconds: float = 0.0,
        signature: Signature = "right",
        copies: int = 1,
        thread_parent_events: bool = True,
    ) -> None:
        """Set every knob of delivery; what is left out gets Slack's own value.

        Retries come at once, after 60 and after 300 seconds times ``time_scale``.
        ``copies`` > 1 delivers each event several times at once.
        """
        chosen = DeliverySettings(
            timeout_seconds, time_scale, skew_seconds, signature, copies, thread_parent_events
        )
        vars(self.world.delivery).update(vars(chosen))

    def hold_events(self) -> None:
        """Keep every event from now on."""
        self.sender.holding = True

    def release_events(self, order: Sequence[int] | None = None) -> None:
        """Deliver what was held, one after the other; ``order`` are positions, repeats allowed."""
        highest = len(self.sender.held) - 1
        if any(not 0 <= position <= highest for position in order or ()):
            raise ControlError(f"Positions go from 0 to {highest}.")
        self.sender.release(order)

    def deliver_again(self, event_id: str, *, retry_number: int = 1) -> None:
        """One more delivery of an event, marked as a retry (0: not marked)."""
        if event_id not in self.sender.deliveries:
            raise ControlError(f"No event {event_id!r} was sent; deliveries lists them.")
        self.sender.again(event_id, retry_number)

    def deliveries(self, event_type: str = "") -> list[Delivery]:
        """Events in the order they arose, of one type (``message``) or subtype if given."""
        return [
            delivery
            for delivery in self.sender.deliveries.values()
            if event_type
            in ("", delivery.envelope["event"]["type"], delivery.envelope["event"].get("subtype"))
        ]

    async def settle(self) -> None:
        """Wait until every delivery has ended, retries included."""
        await self.sender.settle()

    async def disconnect_sockets(self, *, reason: str = "refresh_requested") -> None:
        """Close every Socket Mode connection as Slack does from time to time."""
        await self.sockets.disconnect(reason)

    def add_fault(
        self,
        method: str,
        kind: FaultKind,
        *,
        team: str = "",
        channel: str = "",
        thread: str = "",
        times: int | None = 1,
        on_calls: Sequence[int] = (),
        error: str = "",
        status: int = 503,
        retry_after: int | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Make calls of a method (``*``: of any) fail, in a channel or about a thread if given.

        ``times`` first matching calls fail (None: all), or those numbered in ``on_calls`` from
        1. ``ratelimited`` without ``retry_after`` carries no header; ``error`` answers ok: false
        with that code; ``http`` is an HTML page with ``status``; ``reset`` breaks the
        connection; ``slow`` answers rightly after ``seconds``; ``malformed`` is cut JSON;
        ``reply_lost`` does what was asked and then breaks the connection.
        """
        team_id = self.find_team(team).team_id if team else ""
        channel_id = self.find_channel(channel, team).channel_id if channel else ""
        fault = Fault(method, kind, team_id, channel_id, thread, times, frozenset(on_calls))
        fault.error, fault.status = error, status
        fault.retry_after, fault.seconds = retry_after, seconds
        self.world.limits.faults.append(fault)

    def before_call(
        self, method: str, operation: str, parameters: Json, *, on_call: int = 1
    ) -> None:
        """Run an act right before the nth next call of a method is answered.

        So ``before_call("users.conversations", "leave", {...}, on_call=2)`` lets a person leave
        between the first and the second look at their channels.
        """
        act = getattr(self, operation, None)
        if operation.startswith("_") or act is None or inspect.iscoroutinefunction(act):
            raise ControlError(f"{operation!r} is no act; give one like leave, delete or edit.")
        inspect.signature(act).bind(**parameters)
        self.world.interventions.append(Intervention(method, on_call, partial(act, **parameters)))

    def clear_faults(self) -> None:
        """Nothing fails any more; paces and caps stay."""
        self.world.limits.faults.clear()

    def pace(self, method: str, calls: int, per_seconds: float, *, team: str = "") -> None:
        """Allow ``calls`` of a method per interval and workspace, in a bucket refilled evenly."""
        team_id = self.find_team(team).team_id if team else ""
        if calls < 1 or per_seconds <= 0:
            raise ControlError("pace needs calls >= 1 and per_seconds > 0.")
        self.world.limits.set_pace(method, team_id, calls, per_seconds)

    def set_page_cap(self, method: str, rows: int) -> None:
        """The most rows of a page, whatever limit is asked."""
        if rows < 1:
            raise ControlError("A page holds at least one row.")
        self.world.limits.caps[method] = rows

    def use_tier(self, tier: Tier) -> None:
        """Take all paces and caps of a class: ``strict`` is one call a minute, 15 rows."""
        self.world.limits.use_tier(tier)

    def expire_cursors(self) -> None:
        """Cursors given out so far answer ``invalid_cursor``."""
        self.world.limits.cursor_epoch += 1

    def expire_tokens(self, *, team: str = "") -> None:
        """Rotating access tokens given out so far answer ``token_expired``."""
        installation = self.find_installation(team)
        if not installation.rotating:
            raise ControlError("Only a rotating installation's tokens expire.")
        installation.tokens = dict.fromkeys(installation.tokens, self.world.now())

    def advance_clock(self, seconds: float) -> float:
        """Move Slack's clock; returns its new time. Retries still wait in real time."""
        self.world.offset_seconds += seconds
        return self.world.now()
