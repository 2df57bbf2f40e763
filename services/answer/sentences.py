"""Sentences of chat text, and the words in them."""

from __future__ import annotations

import re

_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|nr|mr|mrs|ms|dr|st|fig|cf|ca|resp|incl|max|min|sec|dept)"
    r"|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?…][\"”’)\]]*(?=\s+\S)")
_EMPHASIS = re.compile(
    r"(?<![^\s(\"“])(?:\*{1,3}|_{1,2})(?=[^\s*_])|(?<=[^\s*_])(?:\*{1,3}|_{1,2})(?![^\s).,:;!?\"”])"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SUFFIXES = ("ations", "ation", "ingly", "ments", "ment", "ings", "ing", "edly", "ies", "ied")
_SHORT_SUFFIXES = ("ers", "er", "ed", "es", "ly", "s", "e")

# PostgreSQL's english.stop, plus the small words of chat.
_STOP_WORDS = re.compile(
    r"i|me|my|myself|we|our|ours|ourselves|you|your|yours|yourself|yourselves|he|him|his|himself|"
    r"she|her|hers|herself|it|its|itself|they|them|their|theirs|themselves|what|which|who|whom|"
    r"this|that|these|those|am|is|are|was|were|be|been|being|have|has|had|having|do|does|did|doing|"
    r"an?|the|and|but|if|or|because|as|until|while|of|at|by|for|with|about|against|between|into|"
    r"through|during|before|after|above|below|to|from|up|down|in|out|on|off|over|under|again|"
    r"further|then|once|here|there|when|where|why|how|all|any|both|each|few|more|most|other|some|"
    r"such|no|nor|not|only|own|same|so|than|too|very|s|t|can|will|just|don|should|now|would|could|"
    r"us|get|got|tell|any(?:one|body)|some(?:one|body)|please|also|still|ever|much|many|"
    r"(?:what|who|when|where|how|it|that|there|here)'s|i'm|(?:we|they|you)'(?:re|ve|ll)|"
    r"(?:do|does|did|is|are|was|were|has|have|had|ca|wo|would|could|should)n't"
)


def is_stop_word(word: str) -> bool:
    """Whether a lowercase word carries no meaning of its own."""
    return _STOP_WORDS.fullmatch(word) is not None


def sentences(text: str) -> list[str]:
    """The sentences and list items of a text: code whole, no emphasis marks, spaces even."""
    codes: list[str] = []

    def hide(found: re.Match[str]) -> str:
        codes.append(found.group())
        return f"\ue010{len(codes) - 1}\ue011"

    found = []
    for line in _CODE.sub(hide, text).split("\n"):
        found += _of_line(_EMPHASIS.sub("", _LIST_ITEM.sub("", line)))
    restored = (
        re.sub("\ue010(\\d+)\ue011", lambda code: codes[int(code[1])], part) for part in found
    )
    return [" ".join(part.split()) for part in restored if re.search(r"\w|\ue010", part)]


def _of_line(line: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for end in [*(found.end() for found in _END.finditer(line)), len(line)]:
        part = line[start:end].strip()
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part:
            parts.append(part)
        start = end
    return parts


def words(text: str) -> list[str]:
    """Lowercase words, apostrophe forms as one."""
    return [found.group().replace("’", "'").casefold() for found in _WORD.finditer(text)]


def stem(word: str) -> str:
    """A rough English stem: equal for the usual forms of one word. Words with digits stay."""
    word = word.removesuffix("'s")
    if re.search(r"\d", word) or len(word) < 4:
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return _undoubled(word[: -len(suffix)] + ("y" if suffix in ("ies", "ied") else ""))
    for suffix in _SHORT_SUFFIXES:
        if word.endswith(suffix) and not word.endswith("ss") and len(word) - len(suffix) >= 3:
            return _undoubled(word[: -len(suffix)])
    return word


def stems(text: str) -> frozenset[str]:
    """Stems of the words of a text that carry meaning."""
    return frozenset(stem(word) for word in words(text) if not is_stop_word(word))


def _undoubled(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word
