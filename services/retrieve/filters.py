"""The filters that apply to a question: those typed in it over those set outside of it."""

from __future__ import annotations

from services.corpus import Filter
from services.runtime.errors import invalid
from services.typed_filters import bare_name


def override(explicit: Filter, typed: Filter) -> Filter:
    """The filters that apply: a typed one replaces the same one set outside the question.

    Raises CallError INVALID_ARGUMENT when no instant lies in the range that results.
    """
    merged = Filter(
        posted_after=typed.posted_after or explicit.posted_after,
        posted_before=typed.posted_before or explicit.posted_before,
        in_channel=typed.in_channel or bare_name(explicit.in_channel, "#"),
        author=typed.author or bare_name(explicit.author, "@"),
    )
    after, before = merged.posted_after, merged.posted_before
    if after and before and after >= before:
        raise invalid(
            "filter",
            f"no message is posted from {after:%Y-%m-%d %H:%M} UTC on and before "
            f"{before:%Y-%m-%d %H:%M} UTC; after: must be earlier than before:",
        )
    return merged
