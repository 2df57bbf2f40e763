"""What a question asks for, read from its wording alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from services.answer.sentences import is_stop_word, stems, words


class Wanted(StrEnum):
    """The kind of detail that answers a question."""

    DATE = "date"
    AMOUNT = "amount"
    PERSON = "person"
    COMMAND = "command"
    IDENTIFIER = "identifier"
    REASON = "reason"
    OTHER = "other"


@dataclass(frozen=True)
class Question:
    """A question: its meaning-carrying stems, exact identifiers, names, and what it wants.

    ``asks_for_detail``: one thing answers it (who, when, how much, which, what is), so that a
    message about something near does not.
    """

    text: str
    stems: frozenset[str]
    identifiers: frozenset[str]
    names: frozenset[str]
    wanted: Wanted
    asks_for_decision: bool
    asks_for_detail: bool


# The first match decides.
_WANTED = (
    (Wanted.COMMAND, r"\b(?:command|cli|invocation)\b|\bhow (?:do|can|should) (?:i|we|you) run\b"),
    (
        Wanted.DATE,
        r"\bwhen\b|\b(?:what|which) (?:date|day|evening|morning|time|week|month|year)\b|"
        r"\bon what date\b|\bdeadline\b|\bby when\b|\bhow soon\b|\bfirst day\b",
    ),
    (
        Wanted.AMOUNT,
        r"\bhow (?:many|much|long|often|fast|big|large|high|old|far)\b|\b(?:price|cost|percentage|"
        r"uptime|limit|number|rate|port)\b",
    ),
    (Wanted.PERSON, r"\bwho(?:se|m)?\b|\bwhich (?:person|colleague|customer|harbour)\b|\bowner\b"),
    (
        Wanted.IDENTIFIER,
        r"\b(?:which|what|what's|whats|name of the)\b.{0,30}\b(?:ticket|version|release|commit|"
        r"hash|error code|test|bucket|flag|setting|branch|host|key|id|file|runbook)\b",
    ),
    (Wanted.REASON, r"\bwhy\b|\bhow come\b|\bwhat (?:caused|causes|made|keeps|stops)\b|\breason\b"),
)
_DECISION = re.compile(
    r"\b(?:decid\w*|decisions?|agreed?|approved?|verdict|conclusion)\b", re.IGNORECASE
)
# Whether the team decided, not why or when one person made up their mind.
_ASKS_FOR_DECISION = re.compile(
    r"\b(?:we|was|were|been|is|are|it|team)\b.{0,30}\b(?:decided?|agreed?|approved?)\b|"
    r"\b(?:decisions?|verdict|conclusion)\b (?:on|about|regarding|for|in|after)\b",
    re.IGNORECASE,
)
# "What's keeping us" asks for a story, "what's the title" for one thing.
_WHAT_IS = re.compile(r"\s*what(?:['’]?s| is| are) (?!\w+ing\b)", re.IGNORECASE)
_NO_DETAIL = (Wanted.REASON, Wanted.OTHER)
_GREETING = re.compile(
    r"(?:hi|hey|hello|hallo|hola|howdy|yo|greetings|good|morning|afternoon|evening|day|night|there|"
    r"all|everyone|everybody|team|folks|guys|thanks|thank|you|thx|ty|cheers|please|ok|okay|yes|no|"
    r"bye|goodbye|test|testing|ping|recall)",
    re.IGNORECASE,
)
MIN_TOKEN_LETTERS = 3

_TOKEN = re.compile(r"[\w][\w./\-#@]*[\w]|\w")
_NO_IDENTIFIER = re.compile(
    r"\d+(?:st|nd|rd|th|am|pm|h|s|ms|min|m|k|gb|mb|kb|%|x|d|w)?|\d{4}-\d\d(?:-\d\d)?|"
    r"[\d.,:/\-]*\d{1,2}[:.]\d\d(?:am|pm)?|q[1-4]|\d+(?:-\w+)+|24/7",
    re.IGNORECASE,
)
_VERSION = re.compile(r"v?\d+(?:\.\d+){1,3}", re.IGNORECASE)
_CALENDAR = re.compile(
    r"january|february|march|april|may|june|july|august|september|october|november|december|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday"
)


def understand(text: str) -> Question:
    """What ``text`` asks for."""
    # "What was decided about dogs" is about dogs.
    matter = _DECISION.sub(" ", text)
    wanted = _wanted(text)
    return Question(
        text=text,
        stems=stems(matter),
        identifiers=identifiers(text),
        names=_names(text),
        wanted=wanted,
        asks_for_decision=wanted is Wanted.OTHER and bool(_ASKS_FOR_DECISION.search(text)),
        asks_for_detail=wanted not in _NO_DETAIL or bool(_WHAT_IS.match(text)),
    )


def asks_nothing(text: str) -> bool:
    """Whether a text is no question: a greeting, or one token of one or two ASCII characters."""
    told = words(text)
    if len(told) == 1 and told[0].isascii():
        return len(told[0]) < MIN_TOKEN_LETTERS or _GREETING.fullmatch(told[0]) is not None
    return all(_GREETING.fullmatch(word) for word in told)


def identifiers(text: str) -> frozenset[str]:
    """Tokens, lowercase, that name one exact thing: 28P01, BRT-409, 4.12.0, poll_seconds, /v1/x."""
    found = set()
    for match in _TOKEN.finditer(text):
        token = match.group().lower()
        mixed = re.search(r"\d", token) and re.search(r"[a-z]", token)
        named = (mixed or "_" in token) and not _NO_IDENTIFIER.fullmatch(token)
        if named or _VERSION.fullmatch(token):
            found.add(token)
    return frozenset(found)


def names_identifier(text: str, identifier: str) -> bool:
    """Whether ``identifier`` stands in ``text`` as a whole, in any case."""
    pattern = rf"(?<![\w]){re.escape(identifier)}(?![\w]|[.\-]\d)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _wanted(text: str) -> Wanted:
    for wanted, pattern in _WANTED:
        if re.search(pattern, text, re.IGNORECASE):
            return wanted
    return Wanted.OTHER


def _names(text: str) -> frozenset[str]:
    """Capitalised words inside the question, lowercase: people, products, places."""
    found = set()
    for match in re.finditer(r"(?<=[\w,;:'’)] )[A-Z][\w’'\-]+", text):
        word = words(match.group())[0].removesuffix("'s")
        if not is_stop_word(word) and not _CALENDAR.fullmatch(word) and not re.search(r"\d", word):
            found.add(word)
    return frozenset(found)
