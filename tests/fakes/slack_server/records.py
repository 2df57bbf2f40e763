"""What the control object hands back besides the records of ``state``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.fakes.slack_server.state import Json


@dataclass(frozen=True)
class Acknowledgement:
    """What the app answered to a command, click, shortcut, modal or challenge.

    ``status`` is 0 if it did not answer in time; ``body`` is its text.
    """

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
