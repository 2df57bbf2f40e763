"""A calibration over gRPC: what it is bound to, what makes its replay due, what voids it; and a
strict search that is refused before anything of the corpus is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.ingest.v1 import generations_pb2 as pb
from services.calibration.signals import BEST_COSINE, BEST_COVERAGE
from services.runtime import db
from tests import builders as b
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails
from tests.integration.retrieve_stage import (
    Stub,
    asked,
    local_embedder,
    refusal,
    retrieve_stage,
    seed_four_messages,
)
from tests.integration.seed import Seed

EACH = 30
FACTS = 40
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


def sample(number: int, answerable: bool, cosine: float) -> pb.Sample:
    """What a search measured; an answerable question is answered by one message."""
    ids = [b.message_id(number)] if answerable else []
    return pb.Sample(
        label=pb.Label(question=f"{number} {answerable}", answerable=answerable, relevant_ids=ids),
        question_signals={BEST_COSINE: cosine, BEST_COVERAGE: cosine},
    )


def samples(*, missed: int = 0) -> list[pb.Sample]:
    """Thirty of each class, far apart, but that so many answerable ones are not found."""
    return [
        sample(number, answerable, (0.8 if answerable and number >= missed else 0.1) + number / 999)
        for answerable in (True, False)
        for number in range(EACH)
    ]


def request(measured: Sequence[pb.Sample], **fields: object) -> pb.RecordCalibrationRequest:
    return pb.RecordCalibrationRequest(
        workspace_id="W",
        generation_id="g-1",
        samples=measured,
        **fields,  # type: ignore[arg-type]
    )


async def record(ingest: Ingest, measured: Sequence[pb.Sample], **fields: object) -> pb.Calibration:
    return (await ingest.generations.RecordCalibration(request(measured, **fields))).calibration


async def due(ingest: Ingest) -> list[tuple[str, str]]:
    """Calibration and cause of every replay that is due."""
    reply = await ingest.generations.ListDueReplays(pb.ListDueReplaysRequest())
    return [(each.calibration_id, each.cause) for each in reply.replays]


@pytest.fixture
async def calibrated(ingest: Ingest) -> pb.Calibration:
    """A published calibration of a generation of forty messages."""
    facts = [b.slack_record(f"Fact number {number}.", number) for number in range(FACTS)]
    await ingest.load(b.slack_import(*facts, embedder="local"))
    made = await record(ingest, samples())
    assert (made.state, made.reason) == ("published", "")
    return made


async def test_labels_in_another_order_are_the_same_labels(
    ingest: Ingest, rows: Rows, calibrated: pb.Calibration
) -> None:
    again = await record(ingest, samples()[::-1])
    assert again.labels_sha256 == calibrated.labels_sha256
    assert again.threshold == pytest.approx(calibrated.threshold, abs=1e-6)
    assert dict(again.weights) == pytest.approx(dict(calibrated.weights), abs=1e-6)
    assert rows.one("SELECT count(*) FROM label_sets") == 1
    states = rows.all("SELECT calibration_id, state FROM calibrations ORDER BY created_at")
    assert states == [
        (calibrated.calibration_id, "superseded"),
        (again.calibration_id, "published"),
    ]


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        # Once answerable and once not: which of the two would count?
        (sample(3, True, 0.8), "'3 True'"),
        (pb.Sample(label=pb.Label(question="  ", answerable=True)), "empty question"),
    ],
)
async def test_a_question_that_stands_twice_or_is_empty_is_refused(
    ingest: Ingest, rows: Rows, calibrated: pb.Calibration, extra: pb.Sample, told: str
) -> None:
    with call_fails() as errors:
        await record(ingest, [*samples(), extra])
    assert errors[0].code == grpc.StatusCode.INVALID_ARGUMENT
    assert told in errors[0].message
    kept = rows.all("SELECT calibration_id, state FROM calibrations")
    assert kept == [(calibrated.calibration_id, "published")]


async def test_a_replay_whose_bound_rises_above_its_target_voids(
    ingest: Ingest, rows: Rows, calibrated: pb.Calibration
) -> None:
    replayed = {"replayed_calibration_id": calibrated.calibration_id, "cause": "daily"}
    held = await record(ingest, samples(), **replayed)
    assert (held.state, held.calibration_id) == ("published", calibrated.calibration_id)
    # One error of thirty may be a rate of 0.149.
    voided = await record(ingest, samples(missed=1), **replayed)
    assert (voided.state, voided.calibration_id) == ("voided", calibrated.calibration_id)
    assert voided.reason == (
        "replayed (daily): the false-abstain rate may be up to 0.149, more than the target 0.100"
    )
    told = [(each.cause, each.false_abstains) for each in voided.replays]
    assert told == [("calibrate", 0), ("daily", 0), ("daily", 1)]
    bounds = [round(each.false_abstain_bound, 3) for each in voided.replays]
    assert bounds == [0.095, 0.095, 0.149]
    audited = rows.all("SELECT kind FROM audit_events WHERE kind LIKE 'calibration%%' ORDER BY 1")
    assert audited == [("calibration_published",), ("calibration_voided",)]
    with call_fails() as errors:
        await record(ingest, samples(), **replayed)
    assert "only a published one can be replayed" in errors[0].message
    assert await due(ingest) == []


async def test_a_replay_leaves_the_threshold_as_it_was(
    ingest: Ingest, calibrated: pb.Calibration
) -> None:
    lower = [sample(n, yes, 0.7 if yes else 0.1) for yes in (True, False) for n in range(EACH)]
    held = await record(
        ingest, lower, replayed_calibration_id=calibrated.calibration_id, cause="daily"
    )
    assert (held.threshold, dict(held.weights)) == (
        calibrated.threshold,
        dict(calibrated.weights),
    )


async def test_deleting_what_a_label_points_at_makes_the_replay_due_at_once(
    ingest: Ingest, calibrated: pb.Calibration
) -> None:
    assert await due(ingest) == []
    # No label points at it.
    await delete(ingest, EACH)
    assert await due(ingest) == []
    await delete(ingest, 7)
    assert await due(ingest) == [(calibrated.calibration_id, "erasure")]
    wanted = pb.GetLabelsRequest(workspace_id="W", calibration_id=calibrated.calibration_id)
    left = {label.question for label in (await ingest.generations.GetLabels(wanted)).labels}
    assert left == {each.label.question for each in samples()} - {"7 True"}
    listed = await ingest.generations.ListCalibrations(pb.ListCalibrationsRequest(workspace_id="W"))
    # The erasure itself refuses nothing.
    assert [each.state for each in listed.calibrations] == ["published"]


async def delete(ingest: Ingest, second: int) -> None:
    """Delete a message, as an archive tells it."""
    gone = b.slack_record("", 100 + second, subtype="message_deleted", deleted_ts=b.ts_of(second))
    report = await ingest.load(b.slack_import(gone, embedder="local"))
    assert report.counts.deleted == 1


async def test_five_percent_of_new_chunks_make_the_replay_due(
    ingest: Ingest, rows: Rows, calibrated: pb.Calibration
) -> None:
    chunks = rows.one("SELECT count(*) FROM chunks")
    for number in range(FACTS, FACTS + 20):
        more = b.slack_record(f"Another fact, number {number}.", 86_400 * number)
        await ingest.load(b.slack_import(more, embedder="local"))
        changed = abs(rows.one("SELECT count(*) FROM chunks") - chunks)
        is_due = changed > 0.05 * chunks
        expected = [(calibrated.calibration_id, "corpus_changed")] if is_due else []
        assert await due(ingest) == expected
        if is_due:
            return
    pytest.fail("twenty more messages made no chunk")


async def test_a_day_after_the_last_measurement_the_replay_is_due(
    ingest: Ingest, rows: Rows, calibrated: pb.Calibration
) -> None:
    rows.execute("UPDATE calibrations SET replay_at = replay_at - interval '23 hours'")
    assert await due(ingest) == []
    rows.execute("UPDATE calibrations SET replay_at = replay_at - interval '1 hour'")
    assert await due(ingest) == [(calibrated.calibration_id, "daily")]
    await record(
        ingest, samples(), replayed_calibration_id=calibrated.calibration_id, cause="daily"
    )
    assert await due(ingest) == []


async def test_the_described_rule_certifies_by_its_own_arithmetic(
    ingest: Ingest, calibrated: pb.Calibration
) -> None:
    rule = pb.CALIBRATION_RULE_REFERENCE
    perfect = [sample(n, yes, 0.8 if yes else 0.4) for yes in (True, False) for n in range(20)]
    # Twenty of each, all told apart, are enough for it; the exact bounds would be 0.139.
    made = await record(ingest, perfect, rule=rule)
    assert (made.state, made.threshold, made.rule) == ("published", 0.5, rule)
    assert round(made.replays[0].false_confirm_bound, 3) == 0.139
    few = await record(ingest, perfect[1:], rule=rule)
    assert few.state == "rejected"
    assert few.reason.startswith("19 answerable and 20 unanswerable questions are labelled")
    assert few.more_answerable_needed == 1


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield seed_four_messages(connection)


@pytest.fixture
async def stub(seed: Seed, database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    await seed.embed(local_embedder())
    async with retrieve_stage(database_url, serve) as client:
        yield client


STRICT = corpus_pb2.TRUST_MODE_STRICT
CORPUS = ("chunks", "chunk_terms", "chunk_messages", "messages", "vectors_384")


async def test_a_strict_search_is_refused_where_nothing_of_the_corpus_can_be_read(
    stub: Stub, seed: Seed
) -> None:
    question = "postgres 28P01"
    assert (await stub.Search(asked(question))).hits
    for table in CORPUS:
        seed.connection.execute(f"REVOKE ALL ON {table} FROM {db.RETRIEVE_ROLE}".encode())
    code, _ = await refusal(stub.Search(asked(question)))
    assert code != PRECONDITION
    strict = asked(question, trust_mode=STRICT)
    assert await refusal(stub.Search(strict)) == (PRECONDITION, "CALIBRATION_MISSING")


async def test_an_embedder_mismatch_is_told_before_a_missing_calibration(stub: Stub) -> None:
    strict = asked("28P01", trust_mode=STRICT, expected_embedder_fingerprint="another")
    assert await refusal(stub.Search(strict)) == (PRECONDITION, "EMBEDDER_MISMATCH")
    strict = asked("28P01", trust_mode=STRICT)
    assert await refusal(stub.Search(strict)) == (PRECONDITION, "CALIBRATION_MISSING")


async def test_the_refusal_names_the_remedy_and_holds_no_text_of_the_corpus(stub: Stub) -> None:
    with call_fails() as errors:
        await stub.Search(asked("Which command fixed it?", trust_mode=STRICT))
    assert errors[0].reason == error_pb2.ERROR_REASON_CALIBRATION_MISSING
    assert "recall calibrate" in errors[0].message
    assert "db-reset" not in errors[0].message


async def test_without_strict_trust_nothing_is_refused(stub: Stub) -> None:
    reply = await stub.Search(asked("postgres 28P01", trust_mode=corpus_pb2.TRUST_MODE_RELAXED))
    assert {hit.verdict for hit in reply.hits} == {corpus_pb2.VERDICT_UNVERIFIED}
