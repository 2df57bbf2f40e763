"""Catch-up, summary and decisions over real gRPC."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import grpc
import pytest

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from services.corpus import timestamp
from services.gateway.checking import UNVERIFIED_TEXT
from services.gateway.clients import Stages
from services.gateway.deadline import Deadline, deadline_in
from services.gateway.window import (
    PART_MESSAGES,
    Limits,
    Reading,
    Window,
    catch_up,
    list_decisions,
    scope_of,
    summarise,
)
from services.runtime.callers import Callers
from services.runtime.errors import CallError
from tests.scripted_stages import (
    MONDAY,
    WORKSPACE,
    Reply,
    Script,
    ScriptedRetrieve,
    always,
    failing,
    hang,
    message,
    served,
)

DAY = 24 * 60
OLD = message(0, "Old news.")
EARLY = message(8 * DAY, "Early in the last week.")
LATE = message(14 * DAY, "We decided to ship on Friday.")
SECRET = message(20 * DAY, "Newer, but private.", channel="leads")


def script_of(*messages: corpus_pb2.Message) -> Script:
    return Script(ScriptedRetrieve(list(messages)))


def window(narrowing: corpus_pb2.Filter | None = None) -> Window:
    context = corpus_pb2.QueryContext(
        source=corpus_pb2.SOURCE_SYNTHETIC, workspace_id=WORKSPACE, channel_ids=["ops"]
    )
    return Window(context, narrowing or corpus_pb2.Filter())


def soon(seconds: float = 20) -> Deadline:
    return deadline_in(time.monotonic, seconds)


async def caught_up(
    stages: Stages, narrowing: corpus_pb2.Filter | None = None
) -> gateway_pb2.WindowText:
    return await catch_up(window(narrowing), stages, soon())


async def test_a_catch_up_covers_the_week_before_the_newest_readable_message(
    callers: Callers,
) -> None:
    script = script_of(OLD, LATE, EARLY, SECRET)
    async with served(script, callers) as stages:
        text = await caught_up(stages)
    request = script.answer.requests[0]
    assert list(request.messages) == [EARLY, LATE]
    assert request.scope == "all readable channels since 2026-08-10"
    assert text.scope == request.scope
    assert text.messages_read == 2
    assert text.outcome == corpus_pb2.OUTCOME_ANSWERED
    assert list(text.citations) == [EARLY]


async def test_dates_replace_the_usual_week(callers: Callers) -> None:
    script = script_of(OLD, EARLY, LATE)
    narrowing = corpus_pb2.Filter(posted_before=timestamp(MONDAY + timedelta(days=9)))
    async with served(script, callers) as stages:
        await caught_up(stages, narrowing)
    assert list(script.answer.requests[0].messages) == [OLD, EARLY]


async def test_a_summary_reads_everything_in_time_order(callers: Callers) -> None:
    script = script_of(LATE, OLD, EARLY)
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    assert list(script.answer.requests[0].messages) == [OLD, EARLY, LATE]
    assert "rerank" not in text.timings_ms


def quoting(text: str) -> Reply:
    """Cites the first message whose text holds a word, or abstains."""

    async def write(request: Any) -> answer_pb2.WrittenText:
        found = [m for m in request.messages if text in m.text]
        if not found:
            return answer_pb2.WrittenText(outcome=corpus_pb2.OUTCOME_ABSTAINED, reason="Nothing.")
        return answer_pb2.WrittenText(
            outcome=corpus_pb2.OUTCOME_ANSWERED,
            text="\n".join(f"{m.text} [{m.message_id}]" for m in found),
            cited_message_ids=[m.message_id for m in found],
        )

    return write


async def test_a_window_longer_than_one_request_is_written_whole_from_its_parts(
    callers: Callers,
) -> None:
    messages = [message(number, f"Line {number}.") for number in range(2 * PART_MESSAGES + 30)]
    told = [messages[5], messages[1_000], messages[-1]]
    for number, one in enumerate(told):
        one.text = f"Milestone {number}."
    script = script_of(*messages)
    script.answer.reply = quoting("Milestone")
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    newest, middle, oldest, again = (list(r.messages) for r in script.answer.requests)
    assert newest == messages[-PART_MESSAGES:]
    assert [*oldest, *middle, *newest] == messages
    assert again == told
    assert (text.outcome, text.messages_read) == (corpus_pb2.OUTCOME_ANSWERED, len(messages))
    assert list(text.citations) == told
    assert list(text.degraded) == []


async def test_a_part_without_anything_to_tell_hides_nothing(callers: Callers) -> None:
    messages = [message(number, f"Line {number}.") for number in range(PART_MESSAGES + 30)]
    messages[-1].text = "Milestone."
    script = script_of(*messages)
    script.answer.reply = quoting("Milestone")
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    assert (text.outcome, list(text.citations)) == (corpus_pb2.OUTCOME_ANSWERED, [messages[-1]])


async def test_nothing_to_tell_in_any_part_is_a_result(callers: Callers) -> None:
    messages = [message(number, f"Line {number}.") for number in range(PART_MESSAGES + 30)]
    script = script_of(*messages)
    script.answer.reply = quoting("Milestone")
    async with served(script, callers) as stages:
        text, decisions = await list_decisions(window(), stages, soon())
    assert (text.outcome, text.reason, decisions) == (
        corpus_pb2.OUTCOME_ABSTAINED,
        "Nothing.",
        (),
    )


async def test_a_part_that_does_not_hold_leaves_no_text(callers: Callers) -> None:
    messages = [message(number, f"Line {number}.") for number in range(PART_MESSAGES + 30)]
    script = script_of(*messages)

    async def invent_in_the_older_part(request: Any) -> answer_pb2.WrittenText:
        is_newest = len(request.messages) == PART_MESSAGES
        cited = request.messages[0].message_id if is_newest else SECRET.message_id
        return answer_pb2.WrittenText(
            outcome=corpus_pb2.OUTCOME_ANSWERED, text="Told.", cited_message_ids=[cited]
        )

    script.answer.reply = invent_in_the_older_part
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    assert (text.outcome, text.text) == (corpus_pb2.OUTCOME_UNVERIFIED, UNVERIFIED_TEXT)


async def test_a_window_of_long_messages_is_split_by_what_one_request_carries(
    callers: Callers,
) -> None:
    messages = [message(number, "Long line. " * 4_000) for number in range(1_100)]
    script = script_of(*messages)
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    assert (text.messages_read, list(text.degraded)) == (len(messages), [])
    assert len(script.answer.requests) > 2


async def test_a_window_of_exactly_the_limit_is_one_part(callers: Callers) -> None:
    messages = [message(number, f"Line {number}.") for number in range(PART_MESSAGES)]
    script = script_of(*messages)
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    assert (text.messages_read, list(text.degraded)) == (PART_MESSAGES, [])
    assert len(script.answer.requests) == 1


async def test_beyond_the_most_parts_the_newest_are_kept_and_it_is_said(callers: Callers) -> None:
    async with served(script_of(OLD, EARLY, LATE), callers) as stages:
        reading = Reading(window(), stages, soon(), Limits(messages=2, parts=1))
        parts = [list(part.messages) async for part in reading.parts()]
    assert parts == [[EARLY, LATE]]
    assert reading.is_truncated


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(None, id="absent"),
        pytest.param(hang, id="hanging"),
        pytest.param(failing(ValueError("defect")), id="internal"),
        pytest.param(always(answer_pb2.WrittenText()), id="empty reply"),
    ],
)
async def test_without_a_writer_the_messages_come_back_unverified(
    callers: Callers, failure: Reply | None
) -> None:
    script = script_of(OLD, EARLY)
    script.answer.reply = failure
    async with served(script, callers, absent=() if failure else ("answer",)) as stages:
        text = await summarise(window(), stages, soon(2))
    assert text.outcome == corpus_pb2.OUTCOME_SOURCES_ONLY
    assert list(text.unverified_sources) == [OLD, EARLY]
    assert list(text.citations) == []
    assert list(text.degraded) == ["answer_unavailable"]
    assert text.reason


async def test_without_retrieve_a_window_fails_and_is_never_empty(callers: Callers) -> None:
    async with served(script_of(OLD), callers, absent=("retrieve",)) as stages:
        for read in (catch_up, summarise, list_decisions):
            with pytest.raises(CallError) as raised:
                await read(window(), stages, soon())
            assert raised.value.code is grpc.StatusCode.UNAVAILABLE


async def test_an_empty_window_abstains_and_nothing_is_written(callers: Callers) -> None:
    script = script_of(SECRET)
    async with served(script, callers) as stages:
        text = await caught_up(stages)
    assert text.outcome == corpus_pb2.OUTCOME_ABSTAINED
    assert text.reason
    assert script.answer.requests == []


async def test_a_text_that_cites_what_was_not_read_is_replaced(callers: Callers) -> None:
    script = script_of(OLD)
    script.answer.reply = always(
        answer_pb2.WrittenText(
            outcome=corpus_pb2.OUTCOME_ANSWERED,
            text="Secret things.",
            cited_message_ids=[SECRET.message_id],
        )
    )
    async with served(script, callers) as stages:
        text, decisions = await list_decisions(window(), stages, soon())
    assert (text.outcome, text.text) == (corpus_pb2.OUTCOME_UNVERIFIED, UNVERIFIED_TEXT)
    assert decisions == ()


async def test_only_decisions_with_a_shown_citation_are_returned_as_data(
    callers: Callers,
) -> None:
    async with served(script_of(OLD, EARLY), callers) as stages:
        text, decisions = await list_decisions(window(), stages, soon())
    assert [decision.message_id for decision in decisions] == [OLD.message_id]
    assert list(text.citations) == [OLD]


async def test_a_text_is_suppressed_when_a_source_is_deleted_while_it_is_written(
    callers: Callers,
) -> None:
    script = script_of(OLD)

    async def write_while_it_goes(_: object) -> answer_pb2.WrittenText:
        script.retrieve.deleted.add(OLD.message_id)
        return answer_pb2.WrittenText(
            outcome=corpus_pb2.OUTCOME_ANSWERED,
            text="Old news.",
            cited_message_ids=[OLD.message_id],
        )

    script.answer.reply = write_while_it_goes
    async with served(script, callers) as stages:
        text = await summarise(window(), stages, soon())
    assert text.outcome == corpus_pb2.OUTCOME_SUPPRESSED
    assert "Old news" not in text.text


@pytest.mark.parametrize(
    ("narrowing", "scope"),
    [
        ({}, "all readable channels"),
        ({"in_channel": "#ops"}, "#ops"),
        ({"in_channel": "ops", "author": "Ana"}, "#ops by Ana"),
        (
            {
                "posted_after": timestamp(MONDAY),
                "posted_before": timestamp(MONDAY + timedelta(days=1)),
            },
            "all readable channels since 2026-08-03 before 2026-08-04",
        ),
    ],
)
def test_a_scope_is_said_in_words(narrowing: dict[str, object], scope: str) -> None:
    assert scope_of(corpus_pb2.Filter(**narrowing)) == scope  # type: ignore[arg-type]
