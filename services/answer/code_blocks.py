"""Code blocks made readable on one line: `` `first line second line …` ``."""

from __future__ import annotations

import re

# Of a longer block the beginning is shown.
MOST_CHARACTERS = 240
CUT_NOTE = "…"

# An opening fence with its language, the content, and a closing fence or the end of the text.
_FENCED = re.compile(r"```(?:[a-zA-Z+#-]{1,20}\n)?(.*?)(?:```|\Z)", re.DOTALL)


def on_one_line(text: str) -> str:
    """A text whose fenced code is inline code: even spaces, no inner backticks, shortened."""
    return _FENCED.sub(lambda found: _inline(found[1]), text)


def _inline(content: str) -> str:
    words = " ".join(content.replace("`", "'").split())
    if not words:
        return ""
    if len(words) > MOST_CHARACTERS:
        cut = words[:MOST_CHARACTERS]
        words = f"{cut.rsplit(' ', 1)[0]} {CUT_NOTE}"
    return f" `{words}` "
