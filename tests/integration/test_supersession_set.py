"""280 generated questions whose stale answer is nearer than its correction, build to search."""

from __future__ import annotations

import json

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.calibration.model import CalibrationModel, digest, to_json
from services.ingest.resources import Resources
from tests.conftest import Serve
from tests.integration.document_stage import document_reader, serve_documents, uri_of
from tests.integration.ingest_fixtures import Ingest, Rows
from tests.integration.retrieve_stage import retrieve_stage
from tests.integration.supersession_cases import Case, cases

# The most permissive threshold: whatever the gate does not refuse for another reason is trusted.
TRUSTING = to_json(CalibrationModel("logistic", threshold=0.0))


async def test_no_stale_hit_is_trusted_and_a_valid_correction_is_first(
    ingest: Ingest, resources: Resources, rows: Rows, database_url: str, serve: Serve
) -> None:
    wanted = cases()
    assert len(wanted) >= 250
    texts = {path: text for case in wanted for path, text in case.texts.items()}
    report = await serve_documents(ingest, resources, "notes", texts)
    assert list(report.problems) == []
    _trust(rows, report.generation.generation_id)
    trusted_stale, not_first, outside = [], [], 0
    async with retrieve_stage(database_url, serve) as stub:
        for case in wanted:
            request = retrieve_pb2.SearchRequest(
                context=document_reader("notes"), question=case.question
            )
            hits = (await stub.Search(request)).hits
            found = {hit.provenance.source_uri: hit for hit in hits}
            outside += _came_from_outside(case, found)
            stale = (found.get(uri_of("notes", path)) for path in case.stale)
            if any(hit and hit.verdict == corpus_pb2.VERDICT_OK for hit in stale):
                trusted_stale.append(case)
            if case.first and hits[0].provenance.source_uri != uri_of("notes", case.first):
                not_first.append(case)
            if not case.first:
                recommended = {hit.superseded_by for hit in hits}
                assert uri_of("notes", case.stale[1]) not in recommended
    assert (trusted_stale, not_first) == ([], [])
    assert outside >= 60


def _came_from_outside(case: Case, found: dict[str, corpus_pb2.Hit]) -> bool:
    """Whether the correction was fetched because of what it replaces: no arm listed it."""
    correction = found.get(uri_of("notes", case.first)) if case.first else None
    return correction is not None and not correction.contributions


def _trust(rows: Rows, generation_id: str) -> None:
    rows.execute("INSERT INTO label_sets VALUES ('W', 'labels', '[]')")
    rows.execute(
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "model, model_sha256, labels_sha256, pipeline_fingerprint, corpus_fingerprint, "
        "false_confirm_target, false_abstain_target) "
        "SELECT 'W', 'c', generation_id, 'logistic', 'published', %s, %s, 'labels', "
        "pipeline_fingerprint, corpus_fingerprint, 0.1, 0.1 "
        "FROM generations WHERE generation_id = %s",
        json.dumps(TRUSTING),
        digest(TRUSTING),
        generation_id,
    )
