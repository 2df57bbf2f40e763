"""Catch-up, summary and decisions without a model: salient messages in time order, in own words.

Salience is a sum of plain signs (``SALIENCE``): a decision, a change, an open question, a message
that many answered, a named date. Outdated messages give way to what corrects them; messages that
give orders to an assistant are never used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from services.answer import wording
from services.answer.choices import choosing, states_change, states_choice
from services.answer.decisions import Decision
from services.answer.excerpts import display_name, excerpt, faithful_words, statement
from services.answer.question import understand
from services.answer.selection import names_a_moment
from services.answer.sentences import sentences, words
from services.answer.supersession import successors
from services.corpus import Message

MAX_CATCH_UP = 8
MAX_SUMMARY = 8
# Outdating is decided among this many of the most salient messages; it compares all pairs.
MAX_COMPARED = 60
MIN_SALIENCE = 1.5
# What is told of a quiet part of the window: anything but small talk.
MIN_TELLING = 0.0
MAX_OF_PART = 2
# Of a pasted log only the beginning is read.
MAX_READ_CHARACTERS = 8_000
# Share of wording that makes two messages of a window one matter.
SAME_MATTER_SHARE = 0.3
# A shorter decision ("Approved.") is told with the message it answers.
MIN_DECISION_WORDS = 6
MAX_CONTEXT_CHARACTERS = 120
MIN_WORDS = 4
MIN_RULING_WORDS = 3

_ANY_QUESTION = understand("")
_ALERT = re.compile(r"\b(?:CRIT(?:ICAL)?|outage|incident|rolled back|rolling back|down)\b")
_OUTCOME = re.compile(
    r"\b(?:fixed|resolved|is live|deployed|released|shipped|launched|done|recovered|closed|signed|"
    r"finished|merged)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:I own (?:it|this|that)|I(?:'ll| will) (?:do|take|own|lead|drive|handle|write|send)|"
    r"I take (?:it|this|that|over)|is (?:with me|mine)|it'?s mine|I lead\b|on me\b|me \(driving\))",
    re.IGNORECASE,
)
_NAME = r"(?P<name>[A-Z][\w’'-]+)"
_OWNED = (
    re.compile(
        rf"\b{_NAME}(?:\s+(?:will|is going to))?\s+(?:takes?|owns?|drives?|leads?|handles?|holds|"
        r"is responsible|is the owner)\b"
    ),
    re.compile(rf"\b(?:[Oo]wner(?: is|:)?|owned by|assigned to|hands? over to)\s+{_NAME}"),
)
_NO_NAME = re.compile(
    r"I|It|This|That|He|She|We|You|They|Who|Which|What|Everybody|Everyone|Nobody|Somebody|Someone|"
    r"The|There|Each|One|Please|And|But|Or|So|Then|If|When|Now"
)


@dataclass(frozen=True)
class _Window:
    """A window with what salience needs to know about its threads."""

    messages: Sequence[Message]
    replies: Counter[str]
    answered: frozenset[str]


Sign = Callable[[_Window, Message], bool]

SALIENCE: tuple[tuple[Sign, float], ...] = (
    (lambda _, message: states_choice(message.text), 2.0),
    (lambda _, message: wording.is_correction(message.text), 1.0),
    (lambda _, message: bool(_OUTCOME.search(message.text)), 1.0),
    (lambda _, message: bool(_ALERT.search(message.text)), 1.0),
    (lambda _, message: names_a_moment(message.text), 0.7),
    (lambda window, message: window.replies[message.message_id] >= 3, 1.0),
    (lambda window, message: window.replies[message.message_id] >= 8, 1.0),
    (lambda window, message: _waits(window, message), 1.0),
    (lambda _, message: len(message.text) >= 120, 0.5),
    (lambda _, message: len(words(message.text)) < MIN_WORDS, -2.0),
    (lambda _, message: message.is_bot, -0.7),
)


def catch_up(messages: Sequence[Message]) -> str:
    """The most salient messages, spread over the window, oldest first; empty without any words.

    The window's messages are cut into as many parts as statements fit. What stands out comes
    first, at most two of a part; what is left of the room goes to the best of the other parts.
    """
    window = _window(messages)
    parts = {message.message_id: at for at, message in _in_parts(window.messages)}
    chosen: list[Message] = []
    taken: Counter[int] = Counter()
    for most_of_part, least in ((MAX_OF_PART, MIN_SALIENCE), (1, MIN_TELLING)):
        for message in _ranked(window, least):
            part = parts[message.message_id]
            if len(chosen) < MAX_CATCH_UP and taken[part] < most_of_part and message not in chosen:
                chosen.append(message)
                taken[part] += 1
    return _told(chosen)


def _in_parts(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    in_time = sorted(messages, key=lambda message: (message.posted_at, message.message_id))
    return [(at * MAX_CATCH_UP // len(in_time), one) for at, one in enumerate(in_time)]


def summary(messages: Sequence[Message]) -> str:
    """One salient message a thread, oldest first; all that fit when nothing stands out."""
    ranked = _ranked(_window(messages), MIN_SALIENCE)
    first_of_thread: dict[str, Message] = {}
    for message in ranked:
        first_of_thread.setdefault(message.thread_root_id, message)
    chosen = list(first_of_thread.values())[:MAX_SUMMARY]
    return _told(chosen or _usable(messages)[:MAX_SUMMARY])


def decisions(messages: Sequence[Message]) -> list[Decision]:
    """The decisions that hold, oldest first, each with what it replaced."""
    usable = [message for message in _usable(messages) if not message.is_bot]
    stated = [one for one in usable if _states_decision(one)]
    replaced = successors(_ANY_QUESTION, stated[-MAX_COMPARED:], SAME_MATTER_SHARE)
    by_id = {message.message_id: message for message in usable}
    found = []
    for message in stated:
        before = [
            old
            for old, new in replaced.items()
            if new == message.message_id and states_choice(by_id[old].text)
        ]
        if message.message_id in replaced or not (states_choice(message.text) or before):
            continue
        found.append(
            Decision(
                text=_decision_text(message, by_id.get(message.thread_root_id)),
                message_id=message.message_id,
                owner=owner_of(message),
                replaces_message_id=before[-1] if before else "",
            )
        )
    return found


def owner_of(message: Message) -> str:
    """Who has to carry a message's decision out, when its wording says so; else empty."""
    own = wording.own_words(message.text)
    if _OWN.search(own):
        return display_name(message)
    named = (found["name"] for form in _OWNED for found in form.finditer(own))
    return next((name for name in named if not _NO_NAME.fullmatch(name)), "")


def _told(messages: Sequence[Message]) -> str:
    in_time = sorted(messages, key=lambda message: (message.posted_at, message.message_id))
    return "\n".join(f"- {statement(message, excerpt(message))}" for message in in_time)


def _window(messages: Sequence[Message]) -> _Window:
    usable = _usable(messages)
    replies = Counter(
        message.thread_root_id for message in usable if message.thread_root_id != message.message_id
    )
    return _Window(usable, replies, frozenset(replies))


def _ranked(window: _Window, least: float) -> list[Message]:
    """The messages of at least this salience, most salient first, outdated ones left out."""
    scores = {message.message_id: _salience(window, message) for message in window.messages}
    ranked = sorted(window.messages, key=lambda message: -scores[message.message_id])
    ranked = [one for one in ranked if scores[one.message_id] >= least]
    replaced = successors(_ANY_QUESTION, ranked[:MAX_COMPARED], SAME_MATTER_SHARE)
    return [one for one in ranked if one.message_id not in replaced]


def _salience(window: _Window, message: Message) -> float:
    return sum(weight for sign, weight in SALIENCE if sign(window, message))


def _waits(window: _Window, message: Message) -> bool:
    return wording.is_question(message.text) and message.message_id not in window.answered


def _usable(messages: Sequence[Message]) -> list[Message]:
    return [
        message
        for message in map(_beginning, messages)
        if excerpt(message) and not wording.addresses_a_machine(message.text)
    ]


def _beginning(message: Message) -> Message:
    if len(message.text) <= MAX_READ_CHARACTERS:
        return message
    return replace(message, text=message.text[:MAX_READ_CHARACTERS])


def _states_decision(message: Message) -> bool:
    own = wording.own_words(message.text)
    is_reply = message.thread_root_id != message.message_id
    long_enough = is_reply or len(words(own)) >= MIN_RULING_WORDS
    return long_enough and (states_choice(own) or states_change(own))


def _decides(sentence: str) -> float:
    """How much of a decision a sentence states; what only announces a change holds no value."""
    stated = 2.0 * choosing(sentence) + min(2, wording.corrections(sentence))
    return stated + 0.5 * bool(stated and re.search(r"\d", sentence))


def _decision_text(message: Message, root: Message | None) -> str:
    """``Bartek: Approved.``, and what it was about when the words do not say so themselves."""
    told = _decisive(message)
    text = f"{display_name(message)}: {told}"
    if root is None or root is message or len(words(told)) >= MIN_DECISION_WORDS:
        return text
    about = excerpt(root)
    if len(about) > MAX_CONTEXT_CHARACTERS:
        about = about[:MAX_CONTEXT_CHARACTERS].rsplit(" ", 1)[0] + " …"
    about = re.sub('["“”„«»`]', "'", about)
    return f"{text} (on {display_name(root)}: {about} [{root.message_id}])"


def _decisive(message: Message) -> str:
    """The sentence that decides, with the one after it when it is short."""
    parts = sentences(wording.own_words(message.text))
    at = max(range(len(parts)), key=lambda one: (_decides(parts[one]), -one))
    return faithful_words(" ".join(parts[at : at + 1 + (len(parts[at]) < 60)]), message)
