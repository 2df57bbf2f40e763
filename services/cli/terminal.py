"""Text of strangers on a person's terminal."""

from __future__ import annotations

import re

# Everything a terminal obeys instead of showing, and marks that turn the reading direction.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with every control but line breaks and tabs replaced by ``\ufffd``."""
    return _OBEYED.sub("\ufffd", text)


def show(text: str) -> None:
    """Print text that may hold what others wrote."""
    print(printable(text))
