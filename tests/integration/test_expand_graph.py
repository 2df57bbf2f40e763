"""One hop over authored relations: the same gate, the same rights, and what it adds and spoils."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import grpc
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.calibration.model import CalibrationModel, digest, to_json
from services.ingest.resources import Resources
from tests.conftest import Serve
from tests.integration.document_stage import document_reader, serve_documents, uri_of
from tests.integration.ingest_fixtures import Ingest, Rows
from tests.integration.retrieve_stage import Stub, refusal, retrieve_stage

HEAD = "---\nrelations:\n{relations}---\n{text}\n"


def document(text: str, **targets: str) -> str:
    """A document that relates to others: relation by target."""
    lines = "".join(
        f"  - {{relation: {relation}, target: {target}}}\n" for target, relation in targets.items()
    )
    return HEAD.format(relations=lines, text=text) if targets else text + "\n"


CREW = {
    "api.md": document("The api service is operated by the harbour crew.", crew="references"),
    "crew.md": document("Bo answers the pager of the harbour crew."),
    "newer.md": "---\nsupersedes: late\n---\nThe pager of the api service rings in hall 9.\n",
    "late.md": document("The pager of the api service rings in hall 7.", api="supports"),
    "lunch.md": document("Lunch is soup."),
}
QUESTION = "Who answers the pager for the api service?"


@pytest.fixture
async def stub(
    ingest: Ingest, resources: Resources, rows: Rows, database_url: str, serve: Serve
) -> AsyncIterator[Stub]:
    report = await serve_documents(ingest, resources, "notes", CREW)
    assert list(report.problems) == []
    certify(rows, report.generation.generation_id, 0.3)
    async with retrieve_stage(database_url, serve) as client:
        yield client


def certify(rows: Rows, generation_id: str, cosine: float) -> None:
    """A published calibration by the reference rule, at a cosine."""
    model = CalibrationModel("reference", threshold=0.5, cosine_threshold=cosine, cosine_scale=0.05)
    rows.execute("INSERT INTO label_sets VALUES ('W', 'labels', '[]')")
    rows.execute(
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "model, model_sha256, labels_sha256, pipeline_fingerprint, corpus_fingerprint, "
        "false_confirm_target, false_abstain_target) SELECT 'W', 'c', generation_id, 'reference', "
        "'published', %s, %s, 'labels', pipeline_fingerprint, corpus_fingerprint, 0.1, 0.1 "
        "FROM generations WHERE generation_id = %s",
        json.dumps(to_json(model)), digest(to_json(model)), generation_id,
    )  # fmt: skip


def asked(question: str, *paths: str, collection: str = "notes") -> retrieve_pb2.ExpandGraphRequest:
    return retrieve_pb2.ExpandGraphRequest(
        search=retrieve_pb2.SearchRequest(context=document_reader(collection), question=question),
        source_uris=[uri_of("notes", path) for path in paths],
    )


async def verdicts(stub: Stub, question: str, *paths: str) -> dict[str, str]:
    """Verdicts of the neighbours by path."""
    reply = await stub.ExpandGraph(asked(question, *paths))
    return {
        hit.provenance.source_uri.rpartition("/")[2]: corpus_pb2.Verdict.Name(hit.verdict)[8:]
        for hit in reply.result.hits
    }


async def test_relations_are_followed_one_hop_in_both_directions(stub: Stub) -> None:
    found = await verdicts(stub, QUESTION, "api.md")
    assert set(found) - {"newer.md"} == {"crew.md", "late.md"}
    assert set(await verdicts(stub, QUESTION, "crew.md")) == {"api.md"}
    assert await verdicts(stub, QUESTION, "lunch.md") == {}


async def test_neighbours_face_the_gate(stub: Stub) -> None:
    found = await verdicts(stub, QUESTION, "api.md")
    assert (found["crew.md"], found["late.md"], found["newer.md"]) == ("OK", "SUPERSEDED", "OK")
    assert "OK" not in (await verdicts(stub, "moon elephants", "api.md")).values()


async def test_what_may_not_be_read_is_no_neighbour(stub: Stub) -> None:
    request = asked(QUESTION, "api.md")
    request.search.context.channel_ids[:] = ["other"]
    code, _ = await refusal(stub.ExpandGraph(request))
    assert code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND)


@pytest.mark.parametrize("paths", [(), tuple(f"{number}.md" for number in range(65))])
async def test_the_number_of_documents_is_bounded(stub: Stub, paths: tuple[str, ...]) -> None:
    code, reason = await refusal(stub.ExpandGraph(asked(QUESTION, *paths)))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


# What it adds and spoils -----------------------------------------------------------------------

QUESTIONS = 64
_FIRST = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "heath")
_SECOND = ("lantern", "orchard", "quarry", "saddle", "tiller", "umbra", "willow", "zephyr")
_PEOPLE = ("Ines", "Jonas", "Karim", "Lena", "Mirek", "Noor", "Oskar", "Petra")


@dataclass(frozen=True)
class Chain:
    """A question that needs a second document, which only a relation of the first one names."""

    question: str
    first: str
    needed: str
    texts: Mapping[str, str]


def chains() -> list[Chain]:
    return [_chain(number) for number in range(QUESTIONS)]


def _chain(number: int) -> Chain:
    service = f"{_FIRST[number % 8]}-{_SECOND[number // 8]}"
    crew = f"{_SECOND[number % 8]}-{_PEOPLE[number // 8]}".lower()
    person = _PEOPLE[(number * 3 + number // 8) % 8]
    first, needed, other = (f"{kind}/{number}.md" for kind in ("service", "crew", "mascot"))
    related = {f"crew/{number}": "references", f"mascot/{number}": "references"}
    return Chain(
        f"Whom do I call at night when the {service} service is down?",
        first,
        needed,
        {
            first: document(f"The {service} service is run by the {crew} crew.", **related),
            needed: document(f"{person} takes the night calls of the {crew} crew."),
            other: document(f"The mascot of the {service} service is a stuffed otter."),
        },
    )


async def test_what_an_expansion_adds_and_spoils_is_counted(
    ingest: Ingest, resources: Resources, rows: Rows, database_url: str, serve: Serve
) -> None:
    wanted = chains()
    texts = {path: text for chain in wanted for path, text in chain.texts.items()}
    report = await serve_documents(ingest, resources, "notes", texts)
    assert list(report.problems) == []
    certify(rows, report.generation.generation_id, 0.4)
    adds = spoils = 0
    async with retrieve_stage(database_url, serve) as stub:
        for chain in wanted:
            request = retrieve_pb2.SearchRequest(
                context=document_reader("notes"), question=chain.question, limit=5
            )
            direct = _trusted((await stub.Search(request)).hits)
            seeds = [uri.removeprefix(uri_of("notes", "")) for uri in direct]
            if not seeds:
                continue
            expanded = (await stub.ExpandGraph(asked(chain.question, *seeds))).result
            new = _trusted(expanded.hits) - direct
            adds += uri_of("notes", chain.needed) in new
            spoils += bool(new - {uri_of("notes", chain.needed)})
    print(f"of {len(wanted)} multi-hop questions, {adds} gained evidence, {spoils} were spoiled")
    # It would have to add evidence to more than it spoils to be on by default.
    assert gateway_pb2.ReasonRequest().expand_graph is (adds > spoils)


def _trusted(hits: object) -> set[str]:
    return {
        hit.provenance.source_uri
        for hit in hits  # type: ignore[attr-defined]
        if hit.verdict == corpus_pb2.VERDICT_OK
    }
