"""What the environment says about Slack to the processes of ingest."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.ingest.pacing import Pace
from services.runtime.config import Settings

API_URL = "https://slack.com/api/"


@dataclass(frozen=True)
class SlackSettings:
    """Where Slack's Web API is, the app's own credentials (only rotation of tokens needs them),
    and the pace of reading history where a workspace sets none."""

    api_url: str = API_URL
    client_id: str = ""
    client_secret: str = ""
    pace: Pace = field(default_factory=Pace)

    @property
    def can_rotate(self) -> bool:
        """Whether tokens can be rotated here."""
        return bool(self.client_id and self.client_secret)


def read_slack_settings(settings: Settings) -> SlackSettings:
    """The settings of Slack; the pace by default is Slack's slowest."""
    default = Pace()
    return SlackSettings(
        api_url=settings.text("RECALL_SLACK_API_URL", API_URL),
        client_id=settings.text("RECALL_SLACK_CLIENT_ID"),
        client_secret=settings.text("RECALL_SLACK_CLIENT_SECRET"),
        pace=Pace(
            settings.number(
                "RECALL_SLACK_HISTORY_INTERVAL_SECONDS",
                default.interval_seconds,
                low=0.01,
                high=3600.0,
            ),
            settings.integer("RECALL_SLACK_HISTORY_PAGE_SIZE", default.page_size, low=1, high=999),
        ),
    )
