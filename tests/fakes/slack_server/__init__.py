"""A Slack for tests: see README.md in this folder."""

from tests.fakes.slack_server.control import SlackControl
from tests.fakes.slack_server.records import Acknowledgement, Call, Delivery
from tests.fakes.slack_server.remote import RemoteControl
from tests.fakes.slack_server.server import SlackServer
from tests.fakes.slack_server.state import ControlError, SlackError
from tests.fakes.slack_server.world import AppIdentity

__all__ = [
    "Acknowledgement",
    "AppIdentity",
    "Call",
    "ControlError",
    "Delivery",
    "RemoteControl",
    "SlackControl",
    "SlackError",
    "SlackServer",
]
