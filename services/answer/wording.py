"""What the wording of a chat message shows: a correction, a decision, an open question, an order.

Every test takes a message's text as people typed it. Quoted lines (``> …``) are left out first:
they repeat what somebody else, or an earlier message, said.
"""

from __future__ import annotations

import re
from functools import lru_cache

from services.answer.linked import split_linked
from services.answer.mentions import without_ids


def _any(*phrases: str) -> re.Pattern[str]:
    """Matches any of the phrases (regular expressions) that begins at a word."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})", re.IGNORECASE)


_CORRECTION = _any(
    r"scratch that|correction|never ?mind|i was wrong|my mistake|forget (?:that|what)|wrong:",
    r"superseded|obsolete|outdated|update[ds]?\b(?=[:,]| on\b)|turns? out|actually",
    r"instead(?: of)?|rather than|no longer|not any ?more|was \d|were \d",
    r"(?:we'?re|we are|i'?m|i am) (?:going|changing|switching|moving) (?:with|to)",
    r"(?:moved|changed|switched|shifted|replaced|renamed|reverted|dropped|cancell?ed)\b",
    r"(?:raised|lowered|cut|reduced|increased|extended|shortened|postponed|pushed)\b",
    r"mov(?:es?|ing) (?:from|to)|brought forward|put back|goes? back|going back|back to",
    r"takes? over|takes the|handing over|from (?:now on|today)|as of (?:now|today)|effective",
    r"new (?:date|launch|price|port|deadline|plan|owner|time|value|version|limit)",
    r"now (?:instead|only|at|it'?s)|we (?:keep|use|run|go)\b.{0,60}\b(?:now|instead)",
)
_DECISION = _any(
    r"decision:|decision (?:is|was|on|of)\b|decided\b|deciding",
    r"(?:it'?s|is|now|are) settled|settled (?:on|with)|agreed\b|we agree\b|approved|signed off",
    r"(?:we'?re|we are|i'?m|i am) going (?:with|to use|for)|let'?s (?:go with|use|keep|take)",
    r"we(?:'ll| will| shall) (?:go with|use|keep|drop|move|switch|build|make|publish|stay)",
    r"we (?:make|build|drop|keep|moved|chose|picked|choose|go with)\b|moving to|dropped for",
    r"from now on|handing over|accepted\b|final (?:call|word)|is final|has been chosen",
    r"shall (?:cost|be|stay)",
)
_OPEN = _any(
    r"leav(?:e|ing) (?:it|this|that) open|still (?:open\b|undecided|no decision)",
    r"(?:not|n't) (?:yet )?(?:decided|settled|agreed)|nothing (?:is |was )?(?:decided|settled)",
    r"don'?t want to (?:decide|choose)|undecided|tbd\b",
    r"no (?:decision|conclusion|rule|answer)(?: yet|,| in| so)|parked\b|to be decided",
    r"sleep on it|come back to (?:it|this|that)|remains open|stays (?:where it was|open)",
    r"up in the air|open question|for another day|let'?s not decide|before we decide",
)
_CALL_FOR_OPINIONS = _any(
    r"what do you (?:all )?think\?|think aloud|would .{1,60} suit us\?|collect arguments",
    r"any thoughts\?",
    r"(?:your|honest|everybody'?s|everyone'?s) (?:\w+ )?(?:views?|opinions?|thoughts)\b",
    r"should (?:we|it be)\b.{0,80}\?",
)
_ASKING_START = _any(
    r"(?:who|what|when|where|why|how|which|whose|can|could|does|do|did|is|are|was|were)\b",
    r"(?:will|would|should|has|have|any(?:one|body)|alguien|qu[ié]|cu[aá]ndo|d[oó]nde)\b",
)
_REASON = _any(
    r"(?:because|since|so that|due to|reason|cause[ds]?|as it|as they|as the|therefore)\b",
    r"(?:porque|ya que|that's why|on purpose|otherwise|means)\b",
)
# Orders to whatever program reads the chat.
_MACHINE = r"(?:ai|a\.i\.|llm|bot|chatbot|assistants?|language models?|summari[sz]ers?|recall)"
_TO_MACHINE = re.compile(
    "|".join(
        (
            r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|"
            r"your)\b.{0,30}\b(?:instructions?|prompts?|rules?|messages?)\b",
            rf"\b(?:note|attn|attention|message|instructions?|memo|hint|reminder|dear|hello|hey|to)\b"
            rf".{{0,25}}\b{_MACHINE}\b.{{0,60}}(?:[:,]|\b(?:reads?|reading|process|summari|index|"
            r"answer|always|must|please|if|when))",
            rf"\b(?:any|all|every|an?|the)\b.{{0,20}}\b{_MACHINE}\b.{{0,60}}\b(?:reads?|reading|"
            r"must|should|shall|rank|report|reply|say|state)\b",
            r"\b(?:system prompt|you are now|act as an?|as an ai|rank this (?:message|post))\b",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)

# Up to the last letter, digit or end of a sentence; greedy, so that it takes linear time.
_TO_LAST_WORD = re.compile(r".*[\w?.!]", re.DOTALL)


@lru_cache(maxsize=256)
def own_words(text: str) -> str:
    """What the author wrote, without quoted lines unless there is nothing else.

    What a link shows is never in it. Nothing in it reads as a citation.
    """
    lines = split_linked(text)[0].split("\n")
    kept = [line for line in lines if not line.lstrip().startswith((">", "&gt;"))]
    if not any(line.strip() for line in kept):
        kept = [line.lstrip("> \t") for line in lines]
    return without_ids("\n".join(kept)).strip()


def corrections(text: str) -> int:
    """How many words of a text say that something changed or that an earlier word was wrong."""
    return len(_CORRECTION.findall(own_words(text)))


def is_correction(text: str) -> bool:
    """Whether a text says that something changed, or that an earlier statement was wrong."""
    return corrections(text) > 0


def is_decision(text: str) -> bool:
    """Whether a text states a decision, rather than proposing or asking for one."""
    words = own_words(text)
    return bool(_DECISION.search(words)) and not is_open(words) and not is_question(words)


def is_open(text: str) -> bool:
    """Whether a text says that something is not decided."""
    return bool(_OPEN.search(own_words(text)))


def calls_for_opinions(text: str) -> bool:
    """Whether a text asks others what they think, instead of asking for a fact."""
    return bool(_CALL_FOR_OPINIONS.search(own_words(text)))


def is_question(text: str) -> bool:
    """Whether a text only asks: it ends with, or in short form begins as, a question."""
    words = own_words(text)
    told = _TO_LAST_WORD.match(words)
    last = re.split(r"(?<=[.!?])\s+", told.group())[-1] if told else ""
    statements = len(re.findall(r"[.!](?:\s|$)", words))
    if last.endswith("?"):
        return statements <= 2
    return bool(_ASKING_START.match(words)) and "?" in words and statements == 0


def addresses_a_machine(text: str) -> bool:
    """Whether a text gives orders to an assistant or bot; such text is never evidence."""
    return bool(_TO_MACHINE.search(text))


def gives_reason(text: str) -> bool:
    """Whether a text holds a reason."""
    return bool(_REASON.search(own_words(text)))
