"""The filters a person types into a question: ``in:``, ``from:``, ``after:`` and ``before:``. Pure.

A filter begins the question or follows white space, its colon is followed at once by its value,
and it does not stand in `` `code` ``. So ``https://ex.test/?in:x``, ``12:30`` and ``in: ops`` are
words of the question, and back-ticks make a word of what looks like a filter.

    in:#ops  in:ops  in:"two words"  in:<#C1|ops>
    from:@linnea  from:"Linnea Berg"  from:<@U1>
    after:2026-08-31  before:yesterday

Days are UTC. ``after:`` includes its day, ``before:`` excludes its day: together they are the
half-open range from one midnight to the other.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from services.corpus import Filter
from services.runtime.errors import CallError, invalid

MAX_VALUE_CHARACTERS = 200

# Code comes first, so that a filter inside it is never seen. A quoted or angled value that does
# not end within the limit is an ordinary word.
_TYPED = re.compile(
    r"```.*?```|`[^`\n]+`"
    r"|(?<!\S)(?P<key>in|from|after|before):"
    rf"(?:[#@]?(?:\"(?P<quoted>[^\"\n]{{1,{MAX_VALUE_CHARACTERS}}})\""
    rf"|“(?P<curly>[^”\n]{{1,{MAX_VALUE_CHARACTERS}}})”)"
    rf"|<[#@](?P<id>[^|<>\s]{{1,{MAX_VALUE_CHARACTERS}}})(?:\|[^<>\n]{{0,{MAX_VALUE_CHARACTERS}}})?>"
    r"|(?P<plain>[^\s`]+))[ \t]*",
    re.IGNORECASE | re.DOTALL,
)
# What ends a sentence belongs to the question, not to the value.
_TRAILING = ".,;:!?)]}…"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def take_filters(question: str, now: datetime) -> tuple[str, Filter]:
    """The question without its typed filters, and the filters.

    ``now`` decides what ``today`` and ``yesterday`` mean. Raises CallError INVALID_ARGUMENT for a
    date that is none and for one filter typed twice with different values.
    """
    values: dict[str, str] = {}

    def take(found: re.Match[str]) -> str:
        key = (found["key"] or "").lower()
        value, rest = _value(found)
        if not key or not value:
            return found.group()
        if values.setdefault(key, value) != value:
            raise _twice(key, values[key], value)
        return rest

    without = _TYPED.sub(take, question).strip()
    return without, Filter(
        posted_after=_midnight("after", values["after"], now) if "after" in values else None,
        posted_before=_midnight("before", values["before"], now) if "before" in values else None,
        in_channel=values.get("in", ""),
        author=values.get("from", ""),
    )


def _value(found: re.Match[str]) -> tuple[str, str]:
    """The value of a match, and what of the match stays in the question."""
    whole = found["quoted"] or found["curly"] or found["id"]
    if whole:
        return bare_name(whole, "#@"), ""
    plain = found["plain"] or ""
    kept = plain.rstrip(_TRAILING)
    rest = found.group()[found.group().find(plain) + len(kept) :]
    return bare_name(kept, "#@"), rest if rest.strip() else ""


def bare_name(typed: str, marks: str) -> str:
    """A name without its mark, white space and NUL; too long a one can not name anything."""
    return typed.replace("\0", "").strip().lstrip(marks).strip()[:MAX_VALUE_CHARACTERS]


def _midnight(key: str, typed: str, now: datetime) -> datetime:
    today = now.astimezone(UTC).date()
    named = {"today": today, "yesterday": today - timedelta(days=1)}
    day = named.get(typed.lower()) or _calendar_day(typed)
    if day is None:
        raise invalid(
            "question",
            f"{key}:{typed} is not a date. Write {key}:2026-08-31, {key}:today or "
            f"{key}:yesterday, or put it in `back-ticks` to search for the words",
        )
    return datetime.combine(day, time(), UTC)


def _calendar_day(typed: str) -> date | None:
    if not _DAY.fullmatch(typed):
        return None
    try:
        return date.fromisoformat(typed)
    except ValueError:
        return None


def _twice(key: str, first: str, second: str) -> CallError:
    return invalid("question", f"{key}:{first} and {key}:{second} contradict; keep one of them")
