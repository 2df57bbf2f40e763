"""Which evidence answers a question, judged by wording and by the scores carried in the request.

``FEATURES`` is the one place where a message's features and their weights stand. The weights were
fitted on the development split of Beacon (local embedder) by logistic regression of "this message
is graded evidence", then rounded; no test question was used.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.answer import wording
from services.answer.evidence import Evidence
from services.answer.question import Question, Wanted, identifiers
from services.answer.sentences import stems, words

_MOMENT = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|"
    r"satur|sun)day|today|tomorrow|yesterday|tonight|last night|this (?:morning|week|afternoon)|"
    r"next (?:week|month|year|spring|autumn)|end of|\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d|"
    r"\d{1,2}(?:st|nd|rd|th)|noon|midnight|winter|spring|summer|autumn)\b",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fourteen|fifteen|"
    r"twenty|thirty|forty|fifty|sixty|hundred|thousand|half|double|dozen)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"`[^`\n]+`|```|(?:^|\s)(?:\$ |make |docker |git |npm |psql |kubectl |sudo )")
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I'll|I've|me|mine|yo|lo)\b|\b[A-Z][a-zé]+\b")

MIN_WORDS = 4


@dataclass(frozen=True)
class Scored:
    """One message with what is known about it in the light of the question."""

    evidence: Evidence
    features: Mapping[str, float]
    score: float

    @property
    def message_id(self) -> str:
        """Id of the message."""
        return self.evidence.message.message_id


@dataclass(frozen=True)
class _Set:
    """All evidence of one question, with what every message's features need."""

    question: Question
    evidence: Sequence[Evidence]
    weights: Mapping[str, float]
    best_fused: float

    def overlap(self, text: str) -> float:
        """Share of the question's stems in ``text``, weighted by their rarity in the evidence."""
        total = sum(self.weights[stem] for stem in self.question.stems)
        shared = sum(self.weights[stem] for stem in self.question.stems & stems(text))
        return shared / total if total else 0.0

    def told(self, item: Evidence) -> float:
        """Like ``overlap``, of a message together with the root of its thread."""
        root = self.root_of(item)
        return self.overlap(f"{item.message.text} {root.message.text if root else ''}")

    def root_of(self, item: Evidence) -> Evidence | None:
        """The root of the message's thread, when it is other evidence."""
        message = item.message
        for other in self.evidence:
            if other.message.message_id == message.thread_root_id != message.message_id:
                return other
        return None


Feature = Callable[[_Set, Evidence], float]


def _cosine(_: _Set, item: Evidence) -> float:
    return item.cosine or 0.0


def _coverage(_: _Set, item: Evidence) -> float:
    return item.term_coverage or 0.0


def _overlap(all_: _Set, item: Evidence) -> float:
    return all_.overlap(item.message.text)


def _told(all_: _Set, item: Evidence) -> float:
    return all_.told(item)


def _fused(all_: _Set, item: Evidence) -> float:
    return item.fused_score / all_.best_fused if all_.best_fused else 0.0


def _reranked(_: _Set, item: Evidence) -> float:
    return (item.rerank_score or 0.0) / 3


def _both_arms(_: _Set, item: Evidence) -> float:
    return float(item.dense_rank is not None and item.lexical_rank is not None)


def _has_wanted(all_: _Set, item: Evidence) -> float:
    return float(holds_wanted(all_.question, item.message.text))


def _asks(_: _Set, item: Evidence) -> float:
    return float(wording.is_question(item.message.text))


def _bot(_: _Set, item: Evidence) -> float:
    return float(item.message.is_bot)


def _by_named_person(all_: _Set, item: Evidence) -> float:
    return float(bool(set(words(item.message.author_name)) & set(words(all_.question.text))))


def _answers_root(all_: _Set, item: Evidence) -> float:
    root = all_.root_of(item)
    if root is None or not wording.is_question(root.message.text):
        return 0.0
    return root.cosine or root.term_coverage or 0.0


def _too_short(_: _Set, item: Evidence) -> float:
    return float(len(words(item.message.text)) < MIN_WORDS)


def _length(_: _Set, item: Evidence) -> float:
    return math.log10(1 + len(item.message.text)) / 3


FEATURES: dict[str, tuple[Feature, float]] = {
    "cosine": (_cosine, 3.8),
    "coverage": (_coverage, 0.3),
    "overlap": (_overlap, 0.8),
    # Not ranked by; what an answer must cover is judged by it.
    "told": (_told, 0.0),
    "fused": (_fused, 2.0),
    "reranked": (_reranked, 4.0),
    "both_arms": (_both_arms, 0.3),
    "has_wanted": (_has_wanted, 1.0),
    "asks": (_asks, -0.3),
    "bot": (_bot, -1.4),
    "by_named_person": (_by_named_person, 0.8),
    "answers_root": (_answers_root, 2.0),
    "too_short": (_too_short, -1.0),
    "length": (_length, -0.8),
}


def scored(question: Question, evidence: Sequence[Evidence]) -> list[Scored]:
    """The evidence that may be used, best first; ties keep the order of the request.

    Messages that give orders to a machine are left out: they are no statements.
    """
    usable = [item for item in evidence if not wording.addresses_a_machine(item.message.text)]
    all_ = _Set(
        question,
        usable,
        _rarity(question, usable),
        max((item.fused_score for item in usable), default=0.0),
    )
    return sorted((_score(all_, item) for item in usable), key=lambda one: -one.score)


def holds_wanted(question: Question, text: str) -> bool:
    """Whether a text holds the kind of detail that the question asks for."""
    own = wording.own_words(text)
    tests: dict[Wanted, Callable[[], object]] = {
        Wanted.DATE: lambda: _MOMENT.search(own),
        Wanted.AMOUNT: lambda: _AMOUNT.search(own),
        Wanted.COMMAND: lambda: _COMMAND.search(own),
        Wanted.IDENTIFIER: lambda: identifiers(own) - question.identifiers or _COMMAND.search(own),
        Wanted.PERSON: lambda: _FIRST_PERSON.search(own),
        Wanted.REASON: lambda: wording.gives_reason(own),
        Wanted.OTHER: lambda: True,
    }
    return bool(tests[question.wanted]())


def names_a_moment(text: str) -> bool:
    """Whether a text names a day, a date or a time."""
    return bool(_MOMENT.search(text))


def _score(all_: _Set, item: Evidence) -> Scored:
    values = {name: feature(all_, item) for name, (feature, _) in FEATURES.items()}
    score = math.fsum(values[name] * weight for name, (_, weight) in FEATURES.items())
    return Scored(item, values, score)


def _rarity(question: Question, evidence: Sequence[Evidence]) -> dict[str, float]:
    counts = Counter(
        stem for item in evidence for stem in question.stems & stems(item.message.text)
    )
    return {stem: math.log(1 + (len(evidence) + 1) / (counts[stem] + 1)) for stem in question.stems}
