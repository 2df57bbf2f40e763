"""Finds message ids in written text, in whatever brackets a model put them.

Every id found is replaced by a *mark*, a pair of private-use characters around a number, so that
later steps can tell a checked citation from text. An id counts as written when it stands

- inside brackets of any kind (``[ ]``, ``( )``, ``【 】`` and other wide forms), alone, in a list,
  doubled, with spaces around its colons, with a prefix such as "source:", as label or target of
  a markdown link, in backticks; or
- bare, with all the parts of its kind.

The scheme may be in upper case; the rest must be exactly a known id. Ranges, shortened ids and
ids with anything attached are unknown. Numbers and footnotes are no citations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_MARK_OPEN, _MARK_CLOSE = "\ue000", "\ue001"
MARK = re.compile(f"{_MARK_OPEN}(\\d+){_MARK_CLOSE}")
_M = f"{_MARK_OPEN}\\d+{_MARK_CLOSE}"

_OPENING, _CLOSING = "[({【［〔（〖⟦", "])}】］〕）〗⟧"
_OPEN, _CLOSE = f"[{re.escape(_OPENING)}]", f"[{re.escape(_CLOSING)}]"

# Invisible characters that break an id without being seen, and our own private-use characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\ue000-\uf8ff]"
    # Emoji are joined by this one.
    "|(?<=[ -~])\u200d|\u200d(?=[ -~])"
)

_SCHEME = r"(?<![^\W_])(?<![/%])(?:slack|synthetic|document)"
_COLON = r"[:\uff1a]"
# Characters of one part as written: the id's own ASCII, or what turns it into something else.
_PART = r"[\w!-+\--/;-@\\^-`{-~‐‑–—…]+"
_START = re.compile(rf"{_SCHEME}\s*{_COLON}(?!//)", re.IGNORECASE)
_TIGHT = re.compile(rf"{_SCHEME}(?:{_COLON}(?:{_PART})?)+", re.IGNORECASE)
_SPACED = re.compile(rf"{_SCHEME}(?:\s*{_COLON}\s*{_PART})+", re.IGNORECASE)
_PARTS_OF = {"slack": 4, "synthetic": 3, "document": 3}

# After an id, these separate it from anything; the soft ones only when nothing is attached.
_HARD = set(");(\"'`<>|&{}†")
_SOFT = set(".:!?*\\")
_SOFT_TAIL = re.compile(r"(?!\.\.)[.:!?*\\)\"'`]+(?:\s|$)")

_LABELLED = re.compile(
    r"\[([^\[\]\n]*)\]\(\s*<?((?:slack|synthetic|document):(?!//)[^()\s<>]+)>?\s*\)",
    re.IGNORECASE,
)
_PREFIX = (
    r"(?:(?:sources?|src|ids?|see|refs?|references?|cited|citations?|messages?|from|via|cf\.?)"
    r"\s*[:=]?\s*)*"
)
_SEPARATOR = r"(?:\s|[,;|&/†·]|\band\b|\bor\b)*"
_WRAPPED = re.compile(
    rf"{_OPEN}\s*{_PREFIX}({_M}(?:{_SEPARATOR}{_M})*){_SEPARATOR}[.:]?\s*{_CLOSE}", re.IGNORECASE
)
_BACKTICKED = re.compile(rf"(?<!`)`+\s*({_M}(?:{_SEPARATOR}{_M})*)\s*`+")
_LINKED_MARK = re.compile(rf"({_M})\((?!\s*{_M})[^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)")

_RANGE_WORD = r"(?:[-‐‑–—~→]+|\.\.+|…|\bto\b|\bthrough\b|\bthru\b|\buntil\b)"
_RANGE = re.compile(rf"{_M}[ \t]*{_RANGE_WORD}[ \t]*{_M}", re.IGNORECASE)
_LIST = re.compile(rf"{_OPEN}\s*{_PREFIX}({_M}[^{re.escape(_OPENING + _CLOSING)}\n]*){_CLOSE}")
_RANGE_IN_LIST = re.compile(rf"{_M}\s*{_RANGE_WORD}\s*\S*\d", re.IGNORECASE)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?|\d{1,2}:\d\d(?::\d\d)?Z?")
_FOOTNOTE = re.compile(r"^\s*\[\^?\w+\]:.*$", re.MULTILINE)


@dataclass(frozen=True)
class Marked:
    """Text with marks in place of ids; mark ``n`` stands for ``ids[n]``."""

    text: str
    ids: tuple[str, ...]
    unknown: tuple[str, ...]

    def cited_ids(self) -> tuple[str, ...]:
        """Known ids in order of first citation; ids in footnote definitions are not cited."""
        body = _FOOTNOTE.sub("", self.text)
        return tuple(dict.fromkeys(self.ids[int(found[1])] for found in MARK.finditer(body)))

    def printed(self, text: str) -> str:
        """``text`` with every mark printed as ``[id]``, marks side by side apart by a space."""
        apart = re.sub(f"{_MARK_CLOSE}(?={_MARK_OPEN})", f"{_MARK_CLOSE} ", text)
        return MARK.sub(lambda found: f"[{self.ids[int(found[1])]}]", apart)


def clean(text: str) -> str:
    """Text without invisible and control characters; newline and tab stay."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def mark(text: str, known: Collection[str]) -> Marked:
    """Replace the ids in ``text`` by marks; ``unknown`` lists what is no id of ``known``."""
    text = _LABELLED.sub(r"\1 [\2]", clean(text))
    pieces: list[str] = []
    ids: list[str] = []
    unknown: list[str] = []
    position = 0
    for start, end, message_id in _mentions(text, frozenset(known)):
        if message_id is None:
            unknown.append(text[start:end])
            continue
        pieces += [text[position:start], f"{_MARK_OPEN}{len(ids)}{_MARK_CLOSE}"]
        ids.append(message_id)
        position = end
    marked = _unwrapped_lists("".join([*pieces, text[position:]]), known, unknown)
    return Marked(marked, tuple(ids), tuple(unknown))


def without_ids(text: str) -> str:
    """A message's text in which nothing reads as a citation: ids lose their scheme's colon."""
    return _START.sub(lambda found: re.sub(rf"\s*{_COLON}$", " ", found.group()), clean(text))


def _unwrapped_lists(text: str, known: Collection[str], unknown: list[str]) -> str:
    tails = {message_id.rsplit(":", 1)[-1].casefold() for message_id in known}
    while True:
        unknown += [found.group() for found in _RANGE.finditer(text)]
        unknown += [found[1] for found in _LIST.finditer(text) if _has_shorthand(found[1], tails)]
        unwrapped = _BACKTICKED.sub(_marks_only, _WRAPPED.sub(_marks_only, text))
        if unwrapped == text:
            return _LINKED_MARK.sub(r"\1", text)
        text = unwrapped


def _marks_only(found: re.Match[str]) -> str:
    return " ".join(re.findall(_M, found[1]))


def _has_shorthand(content: str, tails: Collection[str]) -> bool:
    """Whether a list that begins with an id goes on with a range or a shortened id."""
    if _RANGE_IN_LIST.search(content):
        return True
    for item in re.split(r"[,;|&/†·]|\band\b|\s(?=" + _MARK_OPEN + ")", MARK.sub(",", content)):
        word = item.strip()
        if word.casefold() in tails and word:
            return True
        if " " not in word and re.search(r"\d|…", word) and not _MOMENT.fullmatch(word):
            return True
    return False


def _mentions(text: str, known: frozenset[str]) -> Iterator[tuple[int, int, str | None]]:
    inside = _inside_brackets(text)
    position = 0
    while found := _START.search(text, position):
        start = found.start()
        mention = _known_at(text, start, known, inside[start]) or _unknown_at(
            text, start, inside[start]
        )
        position = found.end()
        if mention:
            position = mention[0]
            yield start, *mention


def _known_at(
    text: str, start: int, known: frozenset[str], bracketed: bool
) -> tuple[int, str] | None:
    for pattern in (_TIGHT, _SPACED) if bracketed else (_TIGHT,):
        written = pattern.match(text, start)
        for cut in _cuts(written.group()) if written else ():
            message_id = _exact(text[start : start + cut])
            if message_id in known:
                return start + cut, message_id
            if (message_id := message_id.replace("\\", "")) in known:
                return start + cut, message_id
    return None


def _unknown_at(text: str, start: int, bracketed: bool) -> tuple[int, None] | None:
    for pattern in (_TIGHT, _SPACED) if bracketed else (_TIGHT,):
        written = pattern.match(text, start)
        if written is None:
            continue
        raw = written.group()
        end = next((at for at, letter in enumerate(raw) if letter in _HARD), len(raw))
        parts = [part for part in _exact(raw).split(":") if part]
        complete = len(parts) >= _PARTS_OF[parts[0]]
        if complete or (bracketed and pattern is _TIGHT and len(parts) > 1):
            return start + end, None
    return None


def _cuts(written: str) -> Iterator[int]:
    """Lengths at which an id may end, longest first."""
    yield len(written)
    for cut in range(len(written) - 1, 0, -1):
        if written[cut] in _HARD or (written[cut] in _SOFT and _SOFT_TAIL.match(written, cut)):
            yield cut


def _exact(written: str) -> str:
    """The id as it would stand in the index: no spaces at colons, plain hyphens, lower scheme."""
    tight = re.sub(rf"\s*{_COLON}\s*", ":", written)
    scheme, _, rest = re.sub("[‐‑]", "-", tight).partition(":")
    return f"{scheme.lower()}:{rest}"


def _inside_brackets(text: str) -> list[bool]:
    """For each position, whether a bracket opened before it in its paragraph is still open."""
    inside, depth = [], 0
    for at, letter in enumerate(text):
        inside.append(depth > 0)
        if letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth = max(0, depth - 1)
        elif letter == "\n" and text[at + 1 : at + 2] == "\n":
            depth = 0
    return inside
