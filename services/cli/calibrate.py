"""``recall calibrate`` and ``recall calibrations``: when an index may be trusted."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import generations_pb2, ingest_pb2
from services.cli.as_json import Json, iso
from services.cli.connection import NOT_ANSWERED, OK, Stack, UsageError
from services.cli.operate import STATUS_SECONDS, only_workspace
from services.cli.terminal import show

CALIBRATE_SECONDS = 3600.0
RULES = {
    "logistic": generations_pb2.CALIBRATION_RULE_LOGISTIC,
    "reference": generations_pb2.CALIBRATION_RULE_REFERENCE,
}
LABEL = '{"question": "…", "answerable": true, "relevant_ids": ["…"]}'


async def run_calibrate(options: argparse.Namespace, stack: Stack) -> int:
    """Fit and certify; 0 when it certifies and is published, 3 when it is rejected."""
    workspace = options.workspace or await only_workspace(stack)
    request = admin_pb2.CalibrateGenerationRequest(
        workspace_id=workspace,
        generation_id=options.generation or "",
        source=await _source(stack, workspace),
        collection=options.collection or "",
        labels=_labels(options),
        from_feedback=options.from_feedback,
        rule=RULES[options.rule],
    )
    calibration = generations_pb2.Calibration()
    async for reply in stack.admin.CalibrateGeneration(request, timeout=CALIBRATE_SECONDS):
        if reply.HasField("progress"):
            done = f"searched {reply.progress.searched} of {reply.progress.total} questions"
            print(done, file=sys.stderr)
        else:
            calibration = reply.calibration
    show(_as_json_text(calibration) if options.json else "\n".join(calibration_lines(calibration)))
    return OK if calibration.state == "published" else NOT_ANSWERED


async def run_calibrations(options: argparse.Namespace, stack: Stack) -> int:
    """Each calibration with its measurements over time."""
    workspace = options.workspace or await only_workspace(stack)
    request = generations_pb2.ListCalibrationsRequest(
        workspace_id=workspace, generation_id=options.generation or ""
    )
    reply = await stack.generations.ListCalibrations(request, timeout=STATUS_SECONDS)
    if options.json:
        print(json.dumps([as_json(each) for each in reply.calibrations], indent=2))
        return OK
    for each in reply.calibrations:
        print("\n".join(calibration_lines(each)), end="\n\n")
    if not reply.calibrations:
        print(f"{workspace} has no calibration. Label questions and run `recall calibrate FILE`.")
    return OK


def read_labels(path: Path) -> Iterator[generations_pb2.Label]:
    """Labels of a JSON-lines file. Raises UsageError that names file and line."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: can not be read ({error})") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _label(f"{path}:{number}", line)


def calibration_lines(calibration: generations_pb2.Calibration) -> list[str]:
    """A calibration for people, within 80 columns."""
    rule = generations_pb2.CalibrationRule.Name(calibration.rule).rsplit("_", 1)[1].lower()
    lines = [
        f"{calibration.calibration_id}  {calibration.state}  ({rule})",
        f"  of generation {calibration.generation_id}, threshold {calibration.threshold:.3f}",
    ]
    for replay in calibration.replays:
        lines += [
            f"  {iso(replay.measured_at)[:16]} {replay.cause}: {replay.answerable} answerable, "
            f"{replay.unanswerable} not",
            f"    false-confirm {replay.false_confirms}, at most "
            f"{replay.false_confirm_bound:.3f} (target {calibration.false_confirm_target:.3f})",
            f"    false-abstain {replay.false_abstains}, at most "
            f"{replay.false_abstain_bound:.3f} (target {calibration.false_abstain_target:.3f})",
            f"    area under the curve {replay.area_under_curve:.3f}",
        ]
    if calibration.reason:
        lines.append(f"  {calibration.reason}")
    return lines + _needed(calibration)


def as_json(calibration: generations_pb2.Calibration) -> Json:
    """A calibration, as ``--json`` prints it."""
    rule = generations_pb2.CalibrationRule.Name(calibration.rule).rsplit("_", 1)[1].lower()
    return {
        "calibration_id": calibration.calibration_id,
        "generation_id": calibration.generation_id,
        "state": calibration.state,
        "rule": rule,
        "threshold": calibration.threshold,
        "reason": calibration.reason,
        "more_answerable_needed": calibration.more_answerable_needed,
        "more_unanswerable_needed": calibration.more_unanswerable_needed,
        "weights": dict(calibration.weights),
        "false_confirm_target": calibration.false_confirm_target,
        "false_abstain_target": calibration.false_abstain_target,
        "labels_sha256": calibration.labels_sha256,
        "created_at": iso(calibration.created_at),
        "replays": [
            {
                "measured_at": iso(each.measured_at),
                "cause": each.cause,
                "answerable": each.answerable,
                "unanswerable": each.unanswerable,
                "false_confirms": each.false_confirms,
                "false_abstains": each.false_abstains,
                "false_confirm_bound": each.false_confirm_bound,
                "false_abstain_bound": each.false_abstain_bound,
                "area_under_curve": each.area_under_curve,
            }
            for each in calibration.replays
        ],
    }


def _needed(calibration: generations_pb2.Calibration) -> list[str]:
    more, more_not = calibration.more_answerable_needed, calibration.more_unanswerable_needed
    if calibration.state == "published" or not (more or more_not):
        return []
    if min(more, more_not) < 0:
        return [
            "  No number of labels would do at the error rate seen: the index can not tell",
            "  these questions apart well enough.",
        ]
    return [
        f"  Certification needs {more} more answerable and {more_not} more unanswerable",
        "  questions, at the error rate seen.",
    ]


def _labels(options: argparse.Namespace) -> list[generations_pb2.Label]:
    if options.from_feedback:
        return []
    if options.labels is None:
        raise UsageError(f"name a file of labels, a line each such as {LABEL}; or --from-feedback")
    found = list(read_labels(options.labels))
    if not found:
        raise UsageError(f"{options.labels}: holds no label; a line looks like {LABEL}")
    return found


def _label(where: str, line: str) -> generations_pb2.Label:
    try:
        row = json.loads(line)
        question, answerable = row["question"], row["answerable"]
        relevant = row.get("relevant_ids", [])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{where}: is no label; a line looks like {LABEL}") from None
    well = isinstance(question, str) and isinstance(answerable, bool) and isinstance(relevant, list)
    if not well or not question.strip() or not all(isinstance(each, str) for each in relevant):
        raise UsageError(f"{where}: is no label; a line looks like {LABEL}")
    return generations_pb2.Label(question=question, answerable=answerable, relevant_ids=relevant)


async def _source(stack: Stack, workspace: str) -> corpus_pb2.Source.ValueType:
    reply = await stack.directory.ListWorkspaces(
        ingest_pb2.ListWorkspacesRequest(), timeout=STATUS_SECONDS
    )
    for each in reply.workspaces:
        if each.workspace_id == workspace:
            return each.source
    raise UsageError(f"there is no workspace {workspace!r}; `recall status` lists them")


def _as_json_text(calibration: generations_pb2.Calibration) -> str:
    return json.dumps(as_json(calibration), indent=2)
