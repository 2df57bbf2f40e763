"""Tells an author's words from what a link in their message shows (see ``services.corpus``)."""

from __future__ import annotations

import re

from services.corpus import LINKED_MESSAGE, LINKED_PAGE

# Quoted lines, the first of them with one of the marks.
_LINKED = re.compile(
    rf"^> (?P<label>{LINKED_PAGE}|{LINKED_MESSAGE}): (?P<words>.*(?:\n> (?!{LINKED_PAGE}: |"
    rf"{LINKED_MESSAGE}: ).*|\n>$)*)",
    re.MULTILINE,
)
_ADDRESS = re.compile(r"https?://\S+")


def split_linked(text: str) -> tuple[str, str, str]:
    """The text without what its links show, that text unquoted, and the first one's label.

    The last two are empty for a message whose links show nothing.
    """
    found = list(_LINKED.finditer(text))
    if not found:
        return text, "", ""
    shown = "\n".join(one["words"] for one in found)
    rest = _LINKED.sub("", text).strip("\n")
    return rest, re.sub(r"^> ?", "", shown, flags=re.MULTILINE), found[0]["label"].lower()


def without_addresses(text: str) -> str:
    """A text without its web addresses, whose parts are no words of the author."""
    return _ADDRESS.sub(" ", text)
