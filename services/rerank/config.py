"""Settings of the rerank process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx

from services.rerank.scoring import Options
from services.runtime.config import Settings

DEFAULT_URL = "https://openrouter.ai"


@dataclass(frozen=True)
class RerankConfig:
    """``key`` is empty when no decision model is to be asked."""

    home: Path
    host: str
    port: int
    key: str
    decisions_url: str
    options: Options


def read_config(settings: Settings) -> RerankConfig:
    """The settings. Raises ConfigError with every fault at once."""
    config = RerankConfig(
        home=settings.home(),
        host=settings.text("RECALL_RERANK_HOST", "127.0.0.1"),
        port=settings.port("rerank"),
        key=_key(settings),
        decisions_url=_url(settings),
        options=Options(
            private=settings.choice("RECALL_DECISIONS_PRIVACY", "deny", ("deny", "allow"))
            == "deny",
            ask_answerable=settings.flag("RECALL_DECISIONS_ANSWERABLE", False),
        ),
    )
    settings.done()
    return config


def _key(settings: Settings) -> str:
    key = settings.text("OPEN_ROUTER")
    # It travels in a header. The value itself must not be repeated in the fault.
    if not all("!" <= letter <= "~" for letter in key):
        settings.fault("OPEN_ROUTER: holds white space or non-ASCII characters. Copy it again.")
        return ""
    return key


def _url(settings: Settings) -> str:
    raw = settings.text("RECALL_DECISIONS_URL", DEFAULT_URL)
    try:
        url = httpx.URL(raw)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.query or url.userinfo:
        settings.fault(
            "RECALL_DECISIONS_URL: must be http(s)://host[:port] without credentials. "
            f"Unset it to use {DEFAULT_URL}."
        )
    return raw
