"""Calibrations between the contract's messages and the use cases' values."""

from __future__ import annotations

from datetime import datetime

from recall.ingest.v1 import generations_pb2
from services.calibration.signals import BEST_COSINE
from services.corpus import source_to_proto, timestamp
from services.ingest.calibrations import Listed
from services.ingest.due_replays import DueReplay
from services.ingest.identifiers import storable_id
from services.ingest.labels import Label
from services.ingest.measure_calibration import Rates
from services.ingest.record_calibration import Asked, measurements

_RULES = {
    generations_pb2.CALIBRATION_RULE_UNSPECIFIED: "logistic",
    generations_pb2.CALIBRATION_RULE_LOGISTIC: "logistic",
    generations_pb2.CALIBRATION_RULE_REFERENCE: "reference",
}
_WIRE_RULES = {
    "logistic": generations_pb2.CALIBRATION_RULE_LOGISTIC,
    "reference": generations_pb2.CALIBRATION_RULE_REFERENCE,
}


def asked(request: generations_pb2.RecordCalibrationRequest, actor: str) -> Asked:
    """The samples of a request."""
    samples = [(label(sample.label), _signals(sample)) for sample in request.samples]
    return Asked(
        workspace_id=storable_id(request.workspace_id),
        generation_id=storable_id(request.generation_id),
        rule=_RULES[request.rule],
        labels=tuple(each for each, _ in samples),
        measured=measurements(samples),
        replayed=storable_id(request.replayed_calibration_id),
        actor=actor,
        cause=request.cause,
    )


def label(wire: generations_pb2.Label) -> Label:
    """One label."""
    return Label(wire.question, wire.answerable, tuple(wire.relevant_ids))


def label_to_proto(given: Label) -> generations_pb2.Label:
    """One label for the wire."""
    return generations_pb2.Label(
        question=given.question, answerable=given.answerable, relevant_ids=given.relevant_ids
    )


def calibration(listed: Listed) -> generations_pb2.Calibration:
    """One calibration for the wire."""
    return generations_pb2.Calibration(
        calibration_id=listed.calibration_id,
        generation_id=listed.generation_id,
        state=listed.state,
        rule=_WIRE_RULES[listed.rule],
        threshold=listed.model.threshold,
        reason=listed.reason,
        more_answerable_needed=listed.more_answerable_needed,
        more_unanswerable_needed=listed.more_unanswerable_needed,
        weights=listed.model.weights,
        replays=[_bounds(*replay) for replay in listed.replays],
        created_at=timestamp(listed.created_at),
        false_confirm_target=listed.goal.false_confirm,
        false_abstain_target=listed.goal.false_abstain,
        labels_sha256=listed.labels_sha256,
    )


def due_replay(due: DueReplay) -> generations_pb2.DueReplay:
    """One replay that is due, for the wire."""
    return generations_pb2.DueReplay(
        workspace_id=due.workspace_id,
        calibration_id=due.calibration_id,
        generation_id=due.generation_id,
        source=source_to_proto(due.source),
        collection=due.collection,
        cause=due.cause,
    )


def _signals(sample: generations_pb2.Sample) -> dict[str, float]:
    signals = dict(sample.question_signals)
    if sample.HasField("best_cosine"):
        signals[BEST_COSINE] = sample.best_cosine
    return signals


def _bounds(measured_at: datetime, cause: str, rates: Rates) -> generations_pb2.CalibrationBounds:
    return generations_pb2.CalibrationBounds(
        answerable=rates.answerable,
        unanswerable=rates.unanswerable,
        false_confirms=rates.false_confirms,
        false_abstains=rates.false_abstains,
        false_confirm_bound=rates.false_confirm_bound,
        false_abstain_bound=rates.false_abstain_bound,
        area_under_curve=rates.area_under_curve,
        measured_at=timestamp(measured_at),
        cause=cause,
    )
