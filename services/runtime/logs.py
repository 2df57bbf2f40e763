"""structlog JSON lines on standard output. No line carries message text, e-mail or token."""

from __future__ import annotations

import logging
import re
import sys

import structlog
from structlog.typing import EventDict, WrappedLogger

# Slack tokens, bearer tokens, provider keys and e-mail addresses that slip into an exception's
# text. The first wall is that nobody logs them; this is the second.
_SECRETS = re.compile(
    r"xox[a-z]-[\w-]+|xapp-[\w-]+|sk-[\w-]{8,}|[Bb]earer\s+[\w.~+/-]+=*|[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)


def redact(text: str) -> str:
    """The text with tokens, credentials and e-mail addresses replaced."""
    return _SECRETS.sub("[redacted]", text)


def _redact_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {key: redact(value) if isinstance(value, str) else value for key, value in event.items()}


def configure(service: str, level: str = "INFO") -> None:
    """Send structlog and the standard library's log to stdout as JSON lines for ``service``."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact_values,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    logging.basicConfig(level=logging.WARNING, handlers=[_ToStructlog()], force=True)


class _ToStructlog(logging.Handler):
    """Libraries' warnings become lines of the same shape."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        logger.log(record.levelno, "library", detail=record.getMessage())
