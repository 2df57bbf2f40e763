"""Named SQL statements kept in ``.sql`` files beside their owner.

A file holds statements that each begin with a line ``-- name: read_messages``. The word
``{width}`` may stand in a table's name; ``for_width`` replaces it by a checked constant. Nothing
else is ever put into a statement except bound parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

WIDTHS = (384, 1536)
_NAME = re.compile(r"^--\s*name:\s*(\w+)\s*$", re.MULTILINE)


class StatementError(Exception):
    """A ``.sql`` file or a use of it is malformed."""


class Statements(Mapping[str, bytes]):
    """The statements of one file by name, as psycopg takes them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, name: str) -> bytes:
        text = self._texts[name]
        if "{width}" in text:
            raise StatementError(f"statement {name} needs for_width()")
        return text.encode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def for_width(self, name: str, width: int) -> bytes:
        """The statement for vectors of one width; only widths that have a table are accepted."""
        if width not in WIDTHS:
            raise StatementError(f"no table holds vectors of width {width}")
        return self._texts[name].replace("{width}", str(width)).encode()


def parse(text: str) -> Statements:
    """The statements of a file's text."""
    pieces = _NAME.split(text)
    names, bodies = pieces[1::2], pieces[2::2]
    if len(set(names)) != len(names):
        raise StatementError("a statement's name stands twice")
    return Statements({name: body.strip() for name, body in zip(names, bodies, strict=True)})


def load(package: str, file_name: str) -> Statements:
    """The statements of ``sql/<file_name>`` in a package, such as ``services.retrieve``."""
    return parse((files(package) / "sql" / file_name).read_text("utf-8"))
