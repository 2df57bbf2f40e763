"""Cursors: opaque text that holds where to go on, for whom, and when it was given out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.fakes.slack_server.state import SlackError

Row = TypeVar("Row")
DOWN = "down"


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows of one page and the cursor of the next, "" at the end."""

    rows: list[Row]
    next_cursor: str


@dataclass(frozen=True)
class Cursor:
    """``scope`` says which listing it belongs to, ``epoch`` which cursors are still honoured."""

    scope: str
    after: str
    epoch: int

    def encode(self) -> str:
        """As the client sees it."""
        raw = json.dumps([self.scope, self.after, self.epoch])
        return base64.urlsafe_b64encode(raw.encode()).decode()

    @staticmethod
    def decode(text: str) -> Cursor:
        """Raise SlackError ``invalid_cursor`` on anything that ``encode`` did not make."""
        try:
            scope, after, epoch = json.loads(base64.urlsafe_b64decode(text.encode()))
        except (ValueError, TypeError):
            raise SlackError("invalid_cursor") from None
        return Cursor(scope, after, epoch)


def page_of(
    rows: Sequence[Row], key: Callable[[Row], str], limit: int, start: Cursor, text: str
) -> Page[Row]:
    """The page at cursor ``text`` ("" = first) of rows; ``start`` gives scope and epoch.

    Rows are sorted by key, downwards if ``start.after`` is "down". The cursor names the last
    row given, so rows that come or go meanwhile shift nothing.
    """
    position = 0
    if text:
        given = Cursor.decode(text)
        if (given.scope, given.epoch) != (start.scope, start.epoch):
            raise SlackError("invalid_cursor")
        position = _position_after(rows, key, given.after, start.after == DOWN)
    shown = list(rows[position : position + limit])
    more = position + limit < len(rows)
    following = Cursor(start.scope, key(shown[-1]), start.epoch).encode() if more else ""
    return Page(shown, following)


def _position_after(
    rows: Sequence[Row], key: Callable[[Row], str], last: str, descending: bool
) -> int:
    """Where rows go on after ``last``, which may be gone."""
    for position, row in enumerate(rows):
        if (key(row) < last) if descending else (key(row) > last):
            return position
    return len(rows)
