"""Checks that quoted words stand verbatim in the message cited for them.

A quotation is what stands in ``"…"``, ``“…”``, ``„…“``, ``«…»``, or in a block of ``>`` lines. The
message meant is the one (or the list) cited next after the quotation; without one, the last cited
before it. Compared are words and punctuation in order, without regard to case, white space,
markdown emphasis and the shape of quotes and dashes; punctuation at the ends is ignored.

What fails:

- four words and more: the whole text is not faithful, because a reader takes the words as the
  author's. An omission mark inside a quotation fails too: it joins two places into one.
- up to three words: the quotation marks are removed; such words are often only set apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from services.answer.mentions import MARK

LONG_QUOTATION_WORDS = 4

_PAIRED = re.compile(
    r"“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»|(?<![\w\"])\"(?=\S)([^\"\n]+?)(?<=\S)\"(?!\w)"
)
_BLOCK = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|$))+", re.MULTILINE)
_GROUP = re.compile(rf"{MARK.pattern}(?:[\s,;]*{MARK.pattern})*")
# From the first to the last letter or digit; greedy, so that it takes linear time.
_CORE = re.compile(r"[^\W_].*[^\W_]|[^\W_]", re.DOTALL)
_SHAPES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"}
    | {"‑": "-", "…": "..."}
    | dict.fromkeys("*_`~>\\", "")
)


def faithful(text: str, texts: Mapping[int, str]) -> str | None:
    """The text with short false quotations unquoted, or None when a long one is false.

    ``text`` carries marks (see ``mentions``); ``texts`` gives for each mark the cited message.
    """
    for block in _BLOCK.finditer(text):
        if _is_long(block.group()) and not _stands(block.group(), block.span(), text, texts):
            return None
    pieces, position = [], 0
    for found in _PAIRED.finditer(text):
        words = next(group for group in found.groups() if group is not None)
        if _stands(words, found.span(), text, texts):
            continue
        if _is_long(words):
            return None
        pieces += [text[position : found.start()], words]
        position = found.end()
    return "".join([*pieces, text[position:]])


def plain(text: str) -> str:
    """A text as quotations are compared: case, white space, emphasis and shapes evened out."""
    return " ".join(MARK.sub("", text).translate(_SHAPES).casefold().split())


def _is_long(words: str) -> bool:
    return len(re.findall(r"\w[\w'’-]*", MARK.sub("", words))) >= LONG_QUOTATION_WORDS


def _stands(words: str, span: tuple[int, int], text: str, texts: Mapping[int, str]) -> bool:
    core = _CORE.search(plain(words))
    if core is None:
        return True
    verbatim = re.compile(rf"(?<!\w){re.escape(core.group())}(?!\w)")
    return any(verbatim.search(plain(texts[number])) for number in _cited_for(span, text))


def _cited_for(span: tuple[int, int], text: str) -> list[int]:
    """Marks that a quotation refers to: those inside it, else next after, else last before."""
    groups = list(_GROUP.finditer(text))
    inside = [group for group in groups if span[0] <= group.start() < span[1]]
    after = [group for group in groups if group.start() >= span[1]]
    before = [group for group in groups if group.end() <= span[0]]
    line_end = text.find("\n", span[1]) if "\n" in text[span[1] :] else len(text)
    line_start = text.rfind("\n", 0, span[0]) + 1
    same_line_after = [group for group in after if group.start() < line_end]
    same_line_before = [group for group in before if group.start() >= line_start]
    for candidates in (inside, same_line_after[:1], same_line_before[-1:], after[:1], before[-1:]):
        if candidates:
            return [int(number) for group in candidates for number in MARK.findall(group.group())]
    return []
