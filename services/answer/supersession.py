"""Which evidence is outdated by later evidence.

A message is outdated when a later one is about the same matter and words a change, a decision or a
correction. "The same matter" is one thread, or enough shared rare wording; both messages must
have to do with the question through the same words, so that two changes of two values of one
product do not outdate each other.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from services.answer import wording
from services.answer.question import Question
from services.answer.selection import holds_wanted
from services.answer.sentences import sentences, stems
from services.corpus import Message

# Share of the shorter message's rarity-weighted wording that both must have; a smaller share is
# enough when the later one repeats an old value beside a new one ("30 days now instead of 90").
# Fitted on the development split of Beacon.
SAME_MATTER_SHARE = 0.2
OLD_VALUE_FACTOR = 0.6
SAME_MATTER_STEMS = 2
# The later message must hold more than this share of the question's words in the earlier one.
MIN_ASKED_RATIO = 0.5

# Plain numbers and days ("15th" as 15): no parts of versions, identifiers or clock times.
_VALUE = re.compile(r"(?<![\w.,:\-#])\d[\d,]*(?=(?:st|nd|rd|th)?\b)(?![:]|[.\-]\d)")


def successors(
    question: Question, messages: Sequence[Message], min_share: float = SAME_MATTER_SHARE
) -> dict[str, str]:
    """For each outdated message's id, the id of the latest of ``messages`` that corrects it.

    ``min_share`` is the share of wording that makes one matter; without a question to narrow the
    matter it must be higher.
    """
    told = [_Told(message) for message in messages]
    counts = Counter(stem for one in told for stem in one.stems)
    rarity = {stem: math.log(1 + len(told) / count) for stem, count in counts.items()}
    found = {}
    for earlier in told:
        later = [one for one in told if _outdates(one, earlier, question, rarity, min_share)]
        if later:
            latest = max(later, key=lambda one: one.said_at)
            found[earlier.message.message_id] = latest.message.message_id
    return found


class _Told:
    """A message with the stems of the author's words, and those near its words of change."""

    def __init__(self, message: Message) -> None:
        own = wording.own_words(message.text)
        parts = sentences(own)
        changing = [at for at, part in enumerate(parts) if _changes(part)]
        # The matter is often named in the sentence before: "Dark mode. We drop it."
        near = {at for found in changing for at in (found - 1, found) if at >= 0}
        self.message = message
        self.stems = stems(own)
        self.change_stems = stems(" ".join(parts[at] for at in sorted(near)))
        self.values = frozenset(_VALUE.findall(own))
        # A correction often quotes what it corrects.
        self.values_with_quotes = frozenset(_VALUE.findall(message.text))
        # An edit counts at its own time.
        self.said_at = message.edited_at or message.posted_at


def _changes(sentence: str) -> bool:
    return wording.is_correction(sentence) or wording.is_decision(sentence)


def _outdates(
    later: _Told, earlier: _Told, question: Question, rarity: dict[str, float], min_share: float
) -> bool:
    if later.said_at <= earlier.said_at or wording.is_question(later.message.text):
        return False
    shared = later.stems & earlier.stems
    if len(shared & later.change_stems) < SAME_MATTER_STEMS:
        return False
    replaces_value = bool(later.values_with_quotes & earlier.values) and bool(
        later.values - earlier.values
    )
    if not replaces_value and not _answers_as_much(later, earlier, question):
        return False
    threshold = min_share * (OLD_VALUE_FACTOR if replaces_value else 1.0)
    return _share(shared, earlier.stems, later.stems, rarity) >= threshold


def _answers_as_much(later: _Told, earlier: _Told, question: Question) -> bool:
    """Whether the later one is about what was asked, and holds the wanted detail if the other does.

    "Femi joins on 17 August, Callum is his buddy" is not outdated by "Ines is Femi's buddy instead"
    when the question is about joining.
    """
    asked_later, asked_earlier = (len(question.stems & one.stems) for one in (later, earlier))
    if asked_earlier and asked_later <= MIN_ASKED_RATIO * asked_earlier:
        return False
    return holds_wanted(question, later.message.text) or not holds_wanted(
        question, earlier.message.text
    )


def _share(
    shared: frozenset[str], one: frozenset[str], other: frozenset[str], rarity: dict[str, float]
) -> float:
    smaller = min(sum(rarity[stem] for stem in side) for side in (one, other))
    return sum(rarity[stem] for stem in shared) / smaller if smaller else 0.0
