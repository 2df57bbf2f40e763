"""Settings of the answer process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.runtime.config import Settings

DEFAULT_MODEL = "gpt-5.4-mini"
DEFAULT_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class AnswerConfig:
    """``key`` is empty when answers are extracted instead of written by a model."""

    home: Path
    host: str
    port: int
    key: str
    base_url: str
    model: str


def read_config(settings: Settings) -> AnswerConfig:
    """The settings. Raises ConfigError with every fault at once."""
    config = AnswerConfig(
        home=settings.home(),
        host=settings.text("RECALL_ANSWER_HOST", "127.0.0.1"),
        port=settings.port("answer"),
        key=_key(settings),
        base_url=_base_url(settings),
        model=settings.text("RECALL_ANSWER_MODEL", DEFAULT_MODEL),
    )
    settings.done()
    return config


def _key(settings: Settings) -> str:
    key = settings.text("OPENAI_API_KEY")
    # It travels in a header. The value itself must not be repeated in the fault.
    if not all("!" <= letter <= "~" for letter in key):
        settings.fault("OPENAI_API_KEY: holds white space or non-ASCII characters. Copy it again.")
        return ""
    return key


def _base_url(settings: Settings) -> str:
    raw = settings.text("OPENAI_BASE_URL", DEFAULT_BASE_URL)
    if not _is_base_url(raw):
        settings.fault(
            "OPENAI_BASE_URL: must be http(s)://host[:port]/path without credentials or query. "
            f"Unset it to use {DEFAULT_BASE_URL}."
        )
    return raw


def _is_base_url(raw: str) -> bool:
    try:
        parts = urlsplit(raw)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain and port_is_valid
