"""The gateway's settings. It has no database and reads no setting of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.runtime.config import Settings
from services.runtime.server import Listener

DEMO_WORKSPACE = "beacon"
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
CALLER_NAME = "gateway"
SLACK_API_URL = "https://slack.com/api/"


@dataclass(frozen=True)
class SlackSettings:
    """An installed Slack app. Without a signing secret Slack's doors are off.

    With an app token events come through Socket Mode; with a client id and secret people can
    install the app. ``api_url`` ends with a slash.
    """

    api_url: str
    signing_secret: str = field(default="", repr=False)
    app_token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    redirect_url: str = ""

    @property
    def is_on(self) -> bool:
        """Whether Slack can reach this installation at all."""
        return bool(self.signing_secret or self.app_token)


@dataclass(frozen=True)
class WorkerConfig:
    """What the worker needs to answer in Slack."""

    home: Path
    targets: dict[str, str]
    slack: SlackSettings


@dataclass(frozen=True)
class Config:
    """Where to listen, whom to call, what the page shows.

    ``allowed_hosts`` are the names under which the page may be asked for; empty allows every name.
    ``trusted_proxies`` are the addresses whose X-Forwarded-For is believed.
    """

    home: Path
    grpc: Listener
    http: Listener
    targets: dict[str, str]
    demo_workspace: str
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    asks_per_minute: int
    slack: SlackSettings


def read_config(settings: Settings) -> Config:
    """The configuration. Raises ConfigError with every fault at once."""
    http = Listener(
        settings.text("RECALL_GATEWAY_HTTP_HOST", "127.0.0.1"), settings.port("gateway_http")
    )
    config = Config(
        home=settings.home(),
        grpc=Listener(settings.text("RECALL_GATEWAY_HOST", "127.0.0.1"), settings.port("gateway")),
        http=http,
        targets=_targets(settings),
        demo_workspace=settings.text("RECALL_DEMO_WORKSPACE", DEMO_WORKSPACE),
        allowed_hosts=_allowed_hosts(settings, http.host),
        trusted_proxies=_names(settings.text("RECALL_GATEWAY_TRUSTED_PROXIES")),
        asks_per_minute=settings.integer("RECALL_GATEWAY_ASKS_PER_MINUTE", 20, low=1, high=100_000),
        slack=_slack(settings),
    )
    if config.demo_workspace != DEMO_WORKSPACE and http.host not in LOOPBACK_HOSTS:
        settings.fault(
            f"RECALL_DEMO_WORKSPACE={config.demo_workspace!r}: only {DEMO_WORKSPACE!r} is shown to "
            f"other machines. Unset RECALL_GATEWAY_HTTP_HOST={http.host!r} or this."
        )
    settings.done()
    return config


def read_worker_config(settings: Settings) -> WorkerConfig:
    """The worker's configuration. Raises ConfigError with every fault at once."""
    config = WorkerConfig(settings.home(), _targets(settings), _slack(settings))
    settings.done()
    return config


def _targets(settings: Settings) -> dict[str, str]:
    return {name: settings.target(name) for name in ("ingest", "retrieve", "rerank", "answer")}


def _slack(settings: Settings) -> SlackSettings:
    found = SlackSettings(
        api_url=settings.text("RECALL_SLACK_API_URL", SLACK_API_URL).rstrip("/") + "/",
        signing_secret=settings.text("RECALL_SLACK_SIGNING_SECRET"),
        app_token=settings.text("RECALL_SLACK_APP_TOKEN"),
        client_id=settings.text("RECALL_SLACK_CLIENT_ID"),
        client_secret=settings.text("RECALL_SLACK_CLIENT_SECRET"),
        redirect_url=settings.text("RECALL_SLACK_REDIRECT_URL"),
    )
    if bool(found.client_id) != bool(found.client_secret):
        settings.fault(
            "RECALL_SLACK_CLIENT_ID and RECALL_SLACK_CLIENT_SECRET: set both, or neither."
        )
    if found.app_token and not found.app_token.startswith("xapp-"):
        settings.fault("RECALL_SLACK_APP_TOKEN: must be an app-level token; it begins with xapp-.")
    return found


def _allowed_hosts(settings: Settings, host: str) -> tuple[str, ...]:
    # A page of another site could otherwise point its own name at this machine and read on.
    named = _names(settings.text("RECALL_GATEWAY_ALLOWED_HOSTS"))
    if named or host in LOOPBACK_HOSTS:
        return (*LOOPBACK_HOSTS, *named)
    return ()


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in listed.split(",") if name.strip())
