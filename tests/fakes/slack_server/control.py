"""The control object: everything a test may do to a Slack, and see of it.

Parameters named ``channel``, ``user`` and ``team`` take an id or a name; ``team=""`` is the only
workspace. Every public operation is also ``POST /control/<name>``.
"""

from __future__ import annotations

from tests.fakes.slack_server.control_acts import ActsControl
from tests.fakes.slack_server.control_base import ControlBase
from tests.fakes.slack_server.control_delivery import DeliveryControl
from tests.fakes.slack_server.control_inspection import InspectionControl
from tests.fakes.slack_server.control_interactions import InteractionsControl
from tests.fakes.slack_server.control_setup import SetupControl


class SlackControl(
    SetupControl, ActsControl, InteractionsControl, DeliveryControl, InspectionControl
):
    """All operations; see the module of each base class."""


def operation_names() -> list[str]:
    """The operations, without what only looks things up by name."""
    found = {
        name
        for base in SlackControl.__mro__
        for name in vars(base)
        if issubclass(base, ControlBase) and base is not ControlBase and not name.startswith("_")
    }
    return sorted(found)
