"""The gateway's settings. It has no database and reads no setting of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.runtime.config import Settings
from services.runtime.server import Listener

DEMO_WORKSPACE = "beacon"
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
CALLER_NAME = "gateway"


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


def read_config(settings: Settings) -> Config:
    """The configuration. Raises ConfigError with every fault at once."""
    http = Listener(
        settings.text("RECALL_GATEWAY_HTTP_HOST", "127.0.0.1"), settings.port("gateway_http")
    )
    config = Config(
        home=settings.home(),
        grpc=Listener(settings.text("RECALL_GATEWAY_HOST", "127.0.0.1"), settings.port("gateway")),
        http=http,
        targets={
            name: settings.target(name) for name in ("ingest", "retrieve", "rerank", "answer")
        },
        demo_workspace=settings.text("RECALL_DEMO_WORKSPACE", DEMO_WORKSPACE),
        allowed_hosts=_allowed_hosts(settings, http.host),
        trusted_proxies=_names(settings.text("RECALL_GATEWAY_TRUSTED_PROXIES")),
        asks_per_minute=settings.integer("RECALL_GATEWAY_ASKS_PER_MINUTE", 20, low=1, high=100_000),
    )
    if config.demo_workspace != DEMO_WORKSPACE and http.host not in LOOPBACK_HOSTS:
        settings.fault(
            f"RECALL_DEMO_WORKSPACE={config.demo_workspace!r}: only {DEMO_WORKSPACE!r} is shown to "
            f"other machines. Unset RECALL_GATEWAY_HTTP_HOST={http.host!r} or this."
        )
    settings.done()
    return config


def _allowed_hosts(settings: Settings, host: str) -> tuple[str, ...]:
    # A page of another site could otherwise point its own name at this machine and read on.
    named = _names(settings.text("RECALL_GATEWAY_ALLOWED_HOSTS"))
    if named or host in LOOPBACK_HOSTS:
        return (*LOOPBACK_HOSTS, *named)
    return ()


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in listed.split(",") if name.strip())
