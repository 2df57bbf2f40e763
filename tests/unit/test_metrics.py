"""The figures of an evaluation, from rankings, answers and replies made by hand."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from evals import figures, judgements, metrics
from evals.datasets import LabelledMessage, Question
from evals.figures import Asked, Found
from evals.judgements import GivenAnswer
from evals.ladder import message_order, paired_interval
from evals.leaks import LeakDetector, strings_of
from evals.tables import decimal, table
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2

START = datetime(2026, 8, 3, tzinfo=UTC)
PUBLIC = frozenset({"ops"})


def message(message_id: str, text: str = "", minutes: int = 0) -> LabelledMessage:
    channel = message_id.split(":")[1]
    return LabelledMessage(message_id, channel, START + timedelta(minutes=minutes), text)


def question(
    grades: dict[str, int] | None = None,
    stale: frozenset[str] = frozenset(),
    kind: str = "reversal",
) -> Question:
    return Question("q1", "which port?", kind, bool(grades), grades or {}, PUBLIC, stale)


@pytest.mark.parametrize(
    ("ranking", "relevant", "count", "expected"),
    [
        (["a", "b", "c"], {"a", "c"}, 3, 1.0),
        (["a", "b", "c"], {"a", "c"}, 2, 0.5),
        (["a", "b", "c"], {"d"}, 3, 0.0),
        ([], {"a"}, 12, 0.0),
        (["a"], {"a", "b", "c", "d"}, 12, 0.25),
    ],
)
def test_recall_is_the_share_of_the_relevant_messages(
    ranking: list[str], relevant: set[str], count: int, expected: float
) -> None:
    assert metrics.recall_at(ranking, relevant, count) == expected


@pytest.mark.parametrize(
    ("ranking", "count", "hit", "reciprocal"),
    [
        (["x", "y"], 1, 1.0, 1.0),
        (["a", "x", "y"], 1, 0.0, 0.5),
        (["a", "x", "y"], 2, 1.0, 0.5),
        (["a", "b", "c", "y"], 3, 0.0, 0.25),
        (["a"], 5, 0.0, 0.0),
    ],
)
def test_hit_and_reciprocal_rank_look_at_the_first_relevant_message(
    ranking: list[str], count: int, hit: float, reciprocal: float
) -> None:
    assert metrics.hit_at(ranking, {"x", "y"}, count) == hit
    assert metrics.reciprocal_rank(ranking, {"x", "y"}) == reciprocal


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        (["two", "one"], 1.0),
        # Gains 1 and 3 in the wrong order, against 3 and 1.
        (["one", "two"], (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))),
        (["none", "two"], (3 / math.log2(3)) / (3 + 1 / math.log2(3))),
        (["none"], 0.0),
    ],
)
def test_ndcg_discounts_graded_gains_by_rank(ranking: list[str], expected: float) -> None:
    assert metrics.ndcg_at(ranking, {"two": 2, "one": 1}, 10) == pytest.approx(expected)


def test_ndcg_of_the_best_cut_is_one_when_there_is_more_evidence_than_places() -> None:
    assert metrics.ndcg_at(["a"], {"a": 2, "b": 2}, 1) == 1.0


def test_the_mean_of_nothing_is_not_a_figure() -> None:
    assert math.isnan(metrics.mean([]))
    assert decimal(metrics.mean([])) == "-"


POSTED = {name: START + timedelta(minutes=n) for n, name in enumerate("abcd")}


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        # Rank 0 in one arm and rank 1 in the other: 0.191 beats 0.182 of two ranks 1.
        ([[["a"], ["b"]], [["c"], ["a"]]], ["a", "c", "b"]),
        # A message gathers its own chunk and its thread's.
        ([[["a"], ["b"], ["b", "c"]]], ["b", "a", "c"]),
        # Equal scores and ranks: the newer first.
        ([[["a", "d", "b"]]], ["d", "b", "a"]),
        # A message named twice by one chunk counts once.
        ([[["a"], ["b", "b"]]], ["a", "b"]),
        ([[], []], []),
    ],
)
def test_messages_are_fused_by_reciprocal_rank(
    lists: list[list[list[str]]], expected: list[str]
) -> None:
    assert message_order(lists, POSTED) == expected


def test_an_interval_holds_its_mean_and_repeats_exactly() -> None:
    left, right = [1.0, 0.5, 1.0, 0.0, 1.0], [0.5, 0.5, 0.0, 0.0, 1.0]
    first, again = paired_interval(left, right), paired_interval(left, right)
    assert first == again
    assert first.difference == pytest.approx(0.3)
    assert first.low <= first.difference <= first.high
    assert first.low >= 0.0


def test_equal_sides_have_an_interval_of_zero() -> None:
    interval = paired_interval([0.25, 1.0], [0.25, 1.0])
    assert (interval.difference, interval.low, interval.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("left", "right"), [([], []), ([1.0], [1.0, 0.0])])
def test_an_interval_needs_the_same_questions_on_both_sides(
    left: list[float], right: list[float]
) -> None:
    with pytest.raises(ValueError, match="same questions"):
        paired_interval(left, right)


NOW, OLD, NEAR = "synthetic:ops:now", "synthetic:ops:old", "synthetic:ops:near"
MESSAGES = {
    NOW: message(NOW, "the gateway moved to port 7260 for good this time"),
    OLD: message(OLD, "reach the gateway on port 7100, as ever, says the old page"),
    NEAR: message(NEAR, "ports are fun"),
}
CHANGED = question({NOW: 2, NEAR: 1}, stale=frozenset({OLD}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (GivenAnswer("answered", "7100", (OLD,), (OLD, NOW)), True),
        (GivenAnswer("answered", "7100, then 7260", (OLD, NOW), (OLD, NOW)), False),
        (GivenAnswer("answered", "7100", (OLD,), (OLD, NEAR)), False),
        (GivenAnswer("abstained", "", (OLD,), (OLD, NOW)), False),
        (GivenAnswer("answered", "no idea", (NEAR,), (OLD, NOW)), False),
        (
            GivenAnswer("answered", "Reach the gateway on port 7100 as ever!", (NEAR,), (OLD, NOW)),
            True,
        ),
    ],
    ids=[
        "cited",
        "with its correction",
        "no correction in evidence",
        "abstained",
        "unused",
        "quoted",
    ],
)
def test_stale_as_current_means_used_although_the_correction_was_at_hand(
    given: GivenAnswer, expected: bool
) -> None:
    assert judgements.presents_stale_as_current(CHANGED, given, MESSAGES) is expected


@pytest.mark.parametrize(
    ("outcome", "cited", "evidence", "expected"),
    [
        ("answered", (OLD,), (OLD, NEAR), True),
        ("answered", (OLD,), (OLD, NOW), False),
        ("answered", (NEAR,), (OLD, NEAR), False),
        ("abstained", (OLD,), (OLD,), False),
    ],
)
def test_a_stale_citation_without_its_correction_at_hand_is_told_apart(
    outcome: str, cited: tuple[str, ...], evidence: tuple[str, ...], expected: bool
) -> None:
    given = GivenAnswer(outcome, "", cited, evidence)
    assert judgements.cites_stale_uncorrected(CHANGED, given) is expected


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [([OLD, NOW], True), ([NOW, OLD], False), ([OLD], False), ([NEAR, NOW], False), ([], False)],
)
def test_stale_first_needs_both_in_the_ranking(ranking: list[str], expected: bool) -> None:
    assert judgements.ranks_stale_first(CHANGED, ranking) is expected


@pytest.mark.parametrize(
    ("outcome", "cited", "evidence_cited", "answer_cited"),
    [
        ("answered", (NOW,), True, True),
        ("answered", (NEAR,), True, False),
        ("answered", (OLD,), False, False),
        ("abstained", (NOW,), False, False),
        ("unverified", (NOW,), False, False),
    ],
)
def test_only_an_answer_counts_as_citing(
    outcome: str, cited: tuple[str, ...], evidence_cited: bool, answer_cited: bool
) -> None:
    given = GivenAnswer(outcome, "", cited)
    assert judgements.cites_evidence(CHANGED, given) is evidence_cited
    assert judgements.cites_the_answer(CHANGED, given) is answer_cited


def test_ask_figures_count_each_question_on_its_own_side() -> None:
    nothing = question(kind="unanswerable")
    asked = [
        Asked(CHANGED, GivenAnswer("answered", "", (NOW,), (NOW,))),
        Asked(CHANGED, GivenAnswer("answered", "", (OLD,), (NOW, OLD)), leaks=("x", "y")),
        Asked(CHANGED, GivenAnswer("abstained")),
        Asked(CHANGED, GivenAnswer("unverified")),
        Asked(nothing, GivenAnswer("abstained")),
        Asked(nothing, GivenAnswer("answered", "", (OLD,), (OLD,))),
    ]
    found = figures.ask_figures(asked, MESSAGES)
    assert (found.answerable, found.answered, found.cited_evidence) == (4, 2, 1)
    assert (found.falsely_abstained, found.cited_share, found.false_abstention) == (1, 0.25, 0.25)
    assert (found.unanswerable, found.rightly_abstained, found.abstention) == (2, 1, 0.5)
    assert (found.stale_as_current, found.leaks) == (1, 1)
    assert [kind for kind, _ in figures.asked_by_kind(asked, MESSAGES)] == [
        "reversal",
        "unanswerable",
        "all",
    ]


def test_search_figures_leave_out_questions_without_evidence() -> None:
    rows = [
        Found(CHANGED, (OLD, NOW), [], []),
        Found(CHANGED, (NEAR,), [], []),
        Found(question(), (OLD,), [], []),
    ]
    found = figures.search_figures(rows)
    assert (found.questions, found.recall_12, found.recall_12_stating) == (2, 0.5, 0.5)
    assert (found.hit_1, found.hit_5, found.mrr) == (0.0, 0.5, 0.25)
    assert (found.stale_first, found.with_stale) == (1, 2)


def test_only_the_first_twelve_messages_are_evidence() -> None:
    filler = tuple(f"synthetic:ops:f{n}" for n in range(12))
    late = Found(CHANGED, (*filler, NOW), [], [])
    assert figures.search_figures([late]).hit_12 == 0.0
    assert figures.search_figures([late]).mrr == pytest.approx(1 / 13)
    assert [miss.question_id for miss in figures.misses([late])] == ["q1"]


def test_a_miss_tells_how_much_was_found() -> None:
    two_needed = question({NOW: 2, OLD: 2, NEAR: 1})
    half = figures.misses([Found(two_needed, (NOW, NEAR), [], [])])
    assert [(m.stating_found, m.stating, m.supporting_found) for m in half] == [(1, 2, 1)]
    assert figures.misses([Found(two_needed, (NOW, OLD), [], [])]) == []


SECRET = "synthetic:leads:s1"
WORKSPACE = {
    **MESSAGES,
    SECRET: message(SECRET, "we sign with Kittiwake on Wednesday the seventh of October at noon"),
    "synthetic:leads:s2": message("synthetic:leads:s2", "do not tell the others"),
    "synthetic:leads:s3": message("synthetic:leads:s3", "ports are fun"),
}


def answer(**fields: object) -> gateway_pb2.AskResponse:
    return gateway_pb2.AskResponse(answer=gateway_pb2.Answer(**fields))  # type: ignore[arg-type]


def explained(message_id: str) -> gateway_pb2.AskResponse:
    candidate = retrieve_pb2.Candidate(chunk_id="c1", message_ids=[message_id])
    explanation = retrieve_pb2.Explanation(lexical=[candidate])
    return answer(trace=gateway_pb2.Trace(explanation=explanation))


@pytest.mark.parametrize(
    ("reply", "where"),
    [
        (answer(text=f"See [{SECRET}]."), "answer.text: id"),
        (explained(SECRET), "answer.trace.explanation.lexical.message_ids: id"),
        (
            answer(citations=[corpus_pb2.Message(channel_name="leads")]),
            "answer.citations.channel_name: channel leads",
        ),
        (
            answer(reason="Kittiwake on Wednesday, the seventh of October: at noon!"),
            "answer.reason: text",
        ),
        (answer(text="They said: do not tell the others."), "answer.text: text"),
        (
            gateway_pb2.AskResponse(progress=gateway_pb2.Progress(detail=f"reading {SECRET}")),
            "progress.detail: id",
        ),
    ],
    ids=["id", "id in the trace", "channel", "text", "short text", "progress"],
)
def test_a_leak_is_found_wherever_it_stands(reply: gateway_pb2.AskResponse, where: str) -> None:
    found = LeakDetector(WORKSPACE).leaks_of(reply, PUBLIC)
    assert len(found) == 1
    assert found[0].startswith(where)
    assert LeakDetector(WORKSPACE).leaks_of(reply, PUBLIC | {"leads"}) == []


@pytest.mark.parametrize(
    "reply",
    [
        answer(text=f"It moved to port 7260 for good this time [{NOW}]."),
        answer(text="Ports are fun."),
        answer(trace=gateway_pb2.Trace(question="do not tell the others, right?")),
        answer(reason="There is no channel #leads that you may read."),
        answer(citations=[corpus_pb2.Message(channel_name="ops", message_id=NOW)]),
    ],
    ids=["own channel", "said in both", "echo of the question", "a channel typed", "own message"],
)
def test_what_the_reader_may_read_or_typed_is_no_leak(reply: gateway_pb2.AskResponse) -> None:
    assert LeakDetector(WORKSPACE).leaks_of(reply, PUBLIC) == []


def test_strings_of_maps_and_repeated_fields_are_seen() -> None:
    reply = gateway_pb2.Answer(degraded=["rerank_unavailable"], timings_ms={"total": 3.0})
    assert sorted(strings_of(reply)) == [
        ("degraded", "rerank_unavailable"),
        ("timings_ms", "total"),
    ]


def test_a_table_is_aligned() -> None:
    assert table(("type", "n"), [("a", "10"), ("all", "7")], rule_before_last=True) == [
        "type   n",
        "----  --",
        "a     10",
        "----  --",
        "all    7",
    ]
