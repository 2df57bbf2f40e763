"""Whether a sentence states that something was chosen, as a list of decisions tells it.

Stricter than ``wording.is_decision``, which only asks whether a matter still is open: agreement
with a taste ("agreed about the gif"), a promise, a plan of one ("I think I'll use ggmap") and a
decision that a clause only mentions ("you asked why we moved") are no decisions.
"""

from __future__ import annotations

import re

from services.answer import wording
from services.answer.sentences import sentences, words

_TOLD = re.compile(
    r"(?<![\w-])(?:decision:|decision (?:is|was)\b|decided\b(?! (?:yet|to read|to try))|deciding\b|"
    r"agreed(?::| to\b| that\b| on\b)|approved\b|signed off\b|final (?:call|word)\b)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"(?<![\w-])(?:(?:it'?s|is|now|are) settled|settled (?:on|with)|we agree\b|"
    r"(?:we'?re|we are) going (?:with|to use|for)|i'?m going with|let'?s (?:go with|use|keep|take)|"
    r"we(?:'ll| will| shall) (?:go with|use|keep|drop|move|switch|build|make(?! sure)|publish|"
    r"stay)|"
    r"we (?:make(?! sure)|build|drop|keep|moved|chose|picked|go with)\b|moving to|"
    r"dropped for|from now on|handing over|accepted\b|is final|has been chosen|"
    r"(?<!I )shall (?:cost|be|stay))",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"(?<![\w-])(?:no longer|(?:is|are|was|were|been|we|I) (?:moved|changed|switched|shifted|"
    r"replaced|renamed|reverted|dropped|cancell?ed|raised|lowered|cut|reduced|increased|extended|"
    r"shortened|postponed|pushed)|(?:moved|changed|switched) (?:from|to)|brought forward|"
    r"takes? over|as of (?:now|today)|we (?:keep|use|run|go)\b.{0,60}\b(?:now|instead))",
    re.IGNORECASE,
)
# "We do GA": a whole message of a few words that says what is done.
_RULING = re.compile(
    r"we (?:do|use|take|ship|skip|start with|stop|stick with) \S.{0,40}", re.IGNORECASE
)
MOST_RULING_WORDS = 6
_HEDGED = re.compile(
    r"\b(?:I think|I guess|I feel|maybe|perhaps|probably|might|could|would|propos\w*|suggest\w*|"
    r"should|I'd|if|hop(?:e|ing)|wish|vot(?:e|es|ing) for)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile('["“][^"“”\n]*["”]')
_INTRODUCED = re.compile(
    r"\b(?:why|whether|how|if|when|until|unless|before|after|what|who|where|than)(?: \w+)? $",
    re.IGNORECASE,
)


def states_choice(text: str) -> bool:
    """Whether a sentence of a text, the author's own words, states a choice."""
    own = wording.own_words(text)
    if _RULING.fullmatch(own.rstrip(".! ")) and len(words(own)) <= MOST_RULING_WORDS:
        return True
    return not wording.is_question(own) and any(choosing(part) for part in sentences(own))


def states_change(text: str) -> bool:
    """Whether a sentence of a text says what something was changed to."""
    return any(_holds(_CHANGED, part) and _is_firm(part) for part in _own_sentences(text))


def choosing(sentence: str) -> bool:
    """Whether one sentence states a choice."""
    if wording.is_open(sentence) or wording.is_question(sentence):
        return False
    return _holds(_TOLD, sentence) or (_holds(_CHOSEN, sentence) and _is_firm(sentence))


def _own_sentences(text: str) -> list[str]:
    return sentences(wording.own_words(text))


def _is_firm(sentence: str) -> bool:
    return not (_HEDGED.search(sentence) or wording.is_question(sentence))


def _holds(pattern: re.Pattern[str], sentence: str) -> bool:
    """Whether a phrase stands in a sentence without a word before it that only mentions it."""
    said = _QUOTED.sub(" ", sentence)
    return any(not _INTRODUCED.search(said[: found.start()]) for found in pattern.finditer(said))
