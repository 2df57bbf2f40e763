"""Recognises a text that only says that the messages do not answer.

The family is narrow on purpose. Every sentence must be such a statement from its first word to its
last, and what it names as missing may hold no clause, no figure and no identifier that the
question did not hold: a claim can not be smuggled behind "I could not find enough evidence".
"""

from __future__ import annotations

import re

SENTENCE = "I couldn’t find enough evidence in the messages to answer that."

_PREAMBLE = (
    r"(?:(?:sorry|unfortunately|from|based on|given|in|within)"
    r"(?: (?:the|these|those|available|provided|given|supplied|retrieved|messages?|evidence|"
    r"sources?))*"
    r"[,:]? )?(?:(?:but|and) )?"
)
_PLACES = (
    r"(?:the|these|those|this|any|of|available|provided|given|supplied|retrieved|message|messages|"
    r"evidence|source|sources|excerpts|conversation|chat|context)"
)
_WHERE = rf"(?:(?:in|from|among|within) {_PLACES}(?: {_PLACES})*)"
_EVIDENCE = (
    r"(?:(?:enough|sufficient|any|clear|direct|relevant|supporting|the|an|no|explicit) )*"
    r"(?:evidence|information|details?|messages?|answer|anything|data|mention)"
)
_NOT_ABLE = (
    r"(?:could not|couldn't|can not|cannot|can't|did not|didn't|do not|don't|was not able to|"
    r"wasn't able to|was unable to|am unable to|am not able to)"
)
_ABOUT = (
    r"(?:to (?:answer|say|tell|determine|confirm|verify|support|know)|about|on|for|regarding|"
    r"concerning|of|that (?:answers|mentions|says|states|explains|describes|supports)|"
    r"who|what|when|where|why|how|which|whether|if)"
)
_TOPIC = r"(?P<topic>[^.!?;:,()—–\n]*)"
_TAIL = rf"(?: {_WHERE})?(?: (?={_ABOUT}\b){_TOPIC})?"
_FORMS = tuple(
    re.compile(_PREAMBLE + form + _TAIL, re.IGNORECASE)
    for form in (
        rf"(?:i|we) {_NOT_ABLE} (?:find|have|see|locate) {_EVIDENCE}",
        rf"(?:i|we) {_NOT_ABLE} (?:answer|determine|tell|say|confirm|verify)"
        r"(?: (?:this|that|it|the question|your question))?",
        rf"there (?:is|was|are|were)(?: not|n't) {_EVIDENCE}",
        rf"there (?:is|was|are|were) (?:no|not enough|insufficient) {_EVIDENCE}",
        rf"(?:the|these|those|this|none of the)(?: {_PLACES})+ (?:do|does|did)(?: not|n't)"
        r" (?:answer|contain|include|say|mention|state|provide|show|tell|explain|specify|cover)"
        rf"(?: {_EVIDENCE}| (?:this|that|it|the question|your question))?",
        rf"(?:not enough|insufficient|no) {_EVIDENCE}",
    )
)
_CLAIMING = re.compile(
    r"but|however|although|though|because|since|instead|actually|yet|therefore|so|except|while|"
    r"whereas|and|then"
)
_MAX_TOPIC_WORDS = 24
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def says_not_enough(text: str, question: str) -> bool:
    """Whether the whole text only says that the evidence is not enough for ``question``."""
    sentences = [part.strip(" \t*_>-") for part in _SENTENCE_END.split(text.strip())]
    sentences = [sentence for sentence in sentences if sentence]
    return bool(sentences) and all(_is_statement(part, question) for part in sentences)


def _is_statement(sentence: str, question: str) -> bool:
    even = re.sub(r"\s+", " ", sentence.replace("’", "'")).rstrip(".! ")
    for form in _FORMS:
        found = form.fullmatch(even)
        if found:
            return _names_nothing_new(found["topic"] or "", question)
    return False


def _names_nothing_new(topic: str, question: str) -> bool:
    asked = set(re.findall(r"[\w'-]+", question.replace("’", "'").casefold()))
    words = re.findall(r"[\w'-]+", topic.casefold())
    if len(words) > _MAX_TOPIC_WORDS or re.search(r"[`\"“”\[\]/<>@=]", topic):
        return False
    # "about which team" names a topic; a later "which" or "that" begins a clause about it.
    if {"which", "that"} & set(words[2:-1]):
        return False
    foreign = [word for word in words if word not in asked]
    return not any(re.search(r"\d", word) or _CLAIMING.fullmatch(word) for word in foreign)
