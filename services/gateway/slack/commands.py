"""What a person asked Recall in Slack, and what they are told when it can not be asked so. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from services.corpus import Filter
from services.gateway.slack.setting_words import names_a_setting
from services.runtime.errors import CallError
from services.typed_filters import take_filters

# Words too common to find a message by; what is left of a question are its content words.
_COMMON_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have how i if in is "
    "it its me my of on or our please shall should so still tell than that the their them then "
    "there these they this those to was we were what when where which who whose why will with "
    "would you your about any"
)
_POINTING_WORDS = (
    "it its this that these those they them their he him his she her there then same such"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_POINTING = frozenset(_POINTING_WORDS.split())
FEWEST_CONTENT_WORDS = 3
MOST_CONTEXT_WORDS = 30

_LINK = re.compile(r"<((?:https?|mailto|tel):[^|>]+)(?:\|([^>]*))?>")
_MENTION = re.compile(r"<([@#])([A-Z0-9]+)(?:\|([^>]*))?>")
_EMOJI_CODE = re.compile(r":[a-z0-9_+'-]+:")
_FILTER_WORD = re.compile(r"(?i)(?<!\S)(in|from|after|before):")
_WORD = re.compile(r"\w+")
_PERMALINK = re.compile(r"https://[^/\s|>]+/archives/([A-Z0-9]+)/p(\d{10})(\d{6})(?:[?|>\s]|$)")

HELP = """*Recall answers from your team’s messages, only from those you can read, with links.*
• `/recall ask when is the deploy window?` – or just `/recall when is …?`
• `/recall search 28P01` – messages without an answer
• `/recall catch-up in:#ops` – what happened in the last week
• `/recall summary in:#ops after:2026-08-01` – a summary
• `/recall decisions in:#ops` – what was decided, by whom
• `/recall correct OLD-LINK NEWER-LINK` – a newer message replaces an older one
• `/recall settings` – what is indexed here, how fresh it is, and how an admin changes that
Filters: `in:#channel from:@person after:2026-08-01 before:yesterday` (days are UTC).
You can also mention me in a thread, write to me directly, or use “Summarise this thread” in a \
message’s menu. Only you see my answers unless you share them."""

EMPTY = (
    "What would you like to know? Ask in a few words, such as "
    "`/recall ask when is the deploy window?` – `/recall help` shows the rest."
)
NO_WORDS = (
    "I find messages by their words, and there are none in your question. Ask in a few words, "
    "such as `/recall ask when is the deploy window?`"
)
ONLY_FILTERS = (
    "These are filters without a question. Add some words, or try `/recall catch-up {filters}` "
    "to hear what happened there."
)
IN_THE_FUTURE = (
    "after:{day} is in the future, so there are no messages yet. Give an earlier day, such as "
    "`after:yesterday`."
)
NO_CHANNEL = (
    "You are in no channel called “{name}” that I can read. Check the name; if you are in it, "
    "somebody has to `/invite` me there first."
)
NO_CHANNELS = (
    "There is no channel that both of us are in, so there is nothing I may read for you. "
    "`/invite` me to a channel that you are in, then ask again."
)
HOW_TO_CORRECT = (
    "To mark a message as outdated, give two links: "
    "`/recall correct OLD-LINK NEWER-LINK`. "
    "“Copy link” in a message’s menu gives you one."
)
CORRECTED = "Thank you. Answers will prefer the newer message from now on."
NOT_BOTH_READABLE = (
    "I can only do that for two messages that you can read and that I have indexed. "
    "Check the links."
)
SAME_MESSAGE = "Both links lead to the same message. A newer message must replace an older one."
NOT_NEWER = "The second message is older than the first. Give the outdated one first."


class Verb(StrEnum):
    """What Recall can be asked to do."""

    ASK = "ask"
    SEARCH = "search"
    CATCH_UP = "catch-up"
    SUMMARY = "summary"
    DECISIONS = "decisions"
    CORRECT = "correct"
    HELP = "help"
    SETTINGS = "settings"


WINDOW_VERBS = (Verb.CATCH_UP, Verb.SUMMARY, Verb.DECISIONS)

_NAMES = {
    **{verb.value: verb for verb in Verb},
    "catchup": Verb.CATCH_UP,
    "summarise": Verb.SUMMARY,
    "summarize": Verb.SUMMARY,
    "?": Verb.HELP,
}


@dataclass(frozen=True)
class Typed:
    """A verb and what was typed after it."""

    verb: Verb
    text: str


@dataclass(frozen=True)
class Asked:
    """Words without filters, and the filters; ``problem`` says why it can not be asked so."""

    words: str
    narrowing: Filter
    problem: str = ""


def parse(text: str) -> Typed:
    """The verb of a text; a text that begins with none is a question.

    A verb that takes no words, followed by words, begins a question too: "help me find the key",
    "decisions about pricing".
    """
    stripped = text.strip()
    if not stripped:
        return Typed(Verb.HELP, "")
    first, _, rest = stripped.partition(" ")
    if first.lower() == "catch" and rest.lower().split(" ", 1)[0] == "up":
        first, rest = "catch-up", rest[len("up") :]
    verb = _NAMES.get(first.lower())
    rest = rest.strip()
    if verb is None or (rest and not _takes(verb, rest)):
        return Typed(Verb.ASK, stripped)
    return Typed(verb, rest)


def _takes(verb: Verb, rest: str) -> bool:
    if verb is Verb.HELP:
        return False
    if verb is Verb.SETTINGS:
        return names_a_setting(rest)
    if verb is Verb.CORRECT:
        return "https://" in rest
    if verb in WINDOW_VERBS:
        return not _WORD.search(_without_filters(rest))
    return True


def _without_filters(text: str) -> str:
    # A malformed date is a filter all the same; what is wrong with it is said later.
    return re.sub(r"(?i)(?<!\S)(?:in|from|after|before):(?:[#@]?\"[^\"]*\"|<[^>]*>|\S+)", "", text)


def read_question(text: str, now: datetime) -> Asked:
    """A question's words and filters, or what to tell a person whose question has none."""
    asked = read_filters(text, now)
    if asked.problem:
        return asked
    if not text.strip():
        return Asked("", asked.narrowing, EMPTY)
    if not asked.words:
        return Asked("", asked.narrowing, ONLY_FILTERS.format(filters=text.strip()))
    if not _WORD.search(_EMOJI_CODE.sub("", asked.words)):
        return Asked("", asked.narrowing, NO_WORDS)
    return asked


def read_filters(text: str, now: datetime) -> Asked:
    """What of a text are filters."""
    try:
        words, narrowing = take_filters(text, now)
    except CallError as error:
        return Asked("", Filter(), _sentence(error.message.removeprefix("question: ")))
    after = narrowing.posted_after
    problem = IN_THE_FUTURE.format(day=f"{after:%Y-%m-%d}") if after and after > now else ""
    return Asked(words.strip(), narrowing, problem)


def plain(text: str, names: Mapping[str, str]) -> str:
    """Slack's markup as words: links, mentions (``names`` by id), entities decoded once."""
    text = _LINK.sub(lambda found: found[2] or found[1], text)
    text = _MENTION.sub(
        lambda found: found[1] + (found[3] or names.get(found[2]) or found[2]), text
    )
    return html.unescape(text).strip()


def mentioned_ids(text: str) -> list[str]:
    """Ids of the people whom a text mentions without their name."""
    found = _MENTION.finditer(text)
    return list(dict.fromkeys(one[2] for one in found if one[1] == "@" and not one[3]))


def needs_context(question: str) -> bool:
    """Whether a question inside a thread is about something that only the thread names.

    Exactly: it holds a pointing word ("it", "that", …) or fewer than three content words.
    """
    words = [word.lower() for word in _WORD.findall(question)]
    content = [word for word in words if word not in _COMMON]
    return len(content) < FEWEST_CONTENT_WORDS or any(word in _POINTING for word in words)


def with_context(question: str, thread_text: str) -> str:
    """A question made self-contained by the first words of the thread it was asked in."""
    words = _WORD.findall(thread_text)[:MOST_CONTEXT_WORDS]
    return f"{question} ({' '.join(words)})" if words else question


def without_filter_words(question: str) -> str:
    """A question that somebody else worded, in which nothing is a filter: those are the asker's."""
    return _FILTER_WORD.sub(r"\1 ", question)


def linked_messages(text: str) -> list[tuple[str, str]]:
    """Channel id and ts of each link to a message, in order."""
    found = _PERMALINK.finditer(html.unescape(text))
    return [(one[1], f"{one[2]}.{one[3]}") for one in found]


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
