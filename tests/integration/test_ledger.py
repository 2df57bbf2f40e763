"""The fact ledger over gRPC: what is recorded, replayed, ended and shown, and to whom."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import documents_pb2, ledger_pb2, ledger_pb2_grpc
from services.corpus import timestamp
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from services.runtime import db
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails

WORKSPACE = "documents"
OWNER = {"namespace": "service", "subject": "api", "predicate": "owner", "object": "Ada"}
DECISIONS = ledger_pb2.FactDecision


@dataclass
class Ledger:
    """Documents written as rows, and the ledger over gRPC."""

    stub: ledger_pb2_grpc.LedgerServiceAsyncStub
    rows: Rows

    def collection(self, name: str = "notes", generation_id: str = "g1") -> None:
        """A collection with a serving, calibrated generation."""
        self.rows.execute(
            "INSERT INTO channels (workspace_id, channel_id, name, kind) "
            "VALUES (%s, %s, %s, 'public') ON CONFLICT DO NOTHING",
            WORKSPACE, name, name,
        )  # fmt: skip
        self.rows.execute(
            "INSERT INTO generations (workspace_id, generation_id, source, collection, kind, state,"
            " chunker_version, embedder_fingerprint, width, promoted_at, pipeline_fingerprint)"
            " VALUES (%s, %s, 'document', %s, 'sealed', 'active', '1', 'f', 384, now(), 'p1')",
            WORKSPACE, generation_id, name,
        )  # fmt: skip
        self.rows.execute(
            "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
            "model, model_sha256, labels_sha256, pipeline_fingerprint, false_confirm_target, "
            "false_abstain_target) "
            "VALUES (%s, %s, %s, 'logistic', 'published', '{}', '', 'l', 'p1', 0.1, 0.1)",
            WORKSPACE, f"cal-{generation_id}", generation_id,
        )  # fmt: skip

    def document(
        self, path: str, *facts: dict[str, str], collection: str = "notes", **columns: Any
    ) -> str:
        """A document that declares facts; its URI."""
        uri = f"file:///{collection}/{path}"
        given = {
            "workspace_id": WORKSPACE, "generation_id": "g1", "source_uri": uri,
            "channel_id": collection, "path": path, "version_id": "v", "size": 1,
            "media_type": "text/markdown", "sha256": f"sha of {path}",
            "facts": json.dumps(facts), "first_indexed_at": datetime.now(UTC), **columns,
        }  # fmt: skip
        names = ", ".join(given)
        marks = ", ".join(["%s"] * len(given))
        self.rows.execute(f"INSERT INTO sources ({names}) VALUES ({marks})", *given.values())
        return uri

    def supersedes(self, newer: str, older: str, generation_id: str = "g1") -> None:
        """The author of one document declares that it replaces another."""
        self.rows.execute(
            "INSERT INTO supersessions VALUES (%s, %s, %s, %s, false, now())",
            WORKSPACE, generation_id, newer, older,
        )  # fmt: skip

    async def cards(self, *uris: str, collection: str = "notes", **parts: Any) -> list[str]:
        """Ids of new cards of documents."""
        given = {"generation_id": "g1", "calibration_id": "cal-g1", **parts}
        reply = await self.stub.IssueCards(
            ledger_pb2.IssueCardsRequest(
                workspace_id=WORKSPACE, source_uris=uris, context=reader(collection), **given
            )
        )
        return [card.card_id for card in reply.cards]

    async def apply(
        self, request_id: str, fact: dict[str, str], cards: list[str], *trusted: str, **parts: Any
    ) -> ledger_pb2.ApplyFactResponse:
        """Claim a fact; ``trusted`` documents are what the fresh search finds."""
        given: dict[str, Any] = {
            "context": reader("notes"),
            "fresh_searches": [
                ledger_pb2.FreshSearch(
                    was_made=True, trusted_source_uris=trusted, generation_id="g1",
                    calibration_id="cal-g1", collection="notes",
                )
            ],
            **parts,
        }  # fmt: skip
        return await self.stub.ApplyFact(
            ledger_pb2.ApplyFactRequest(
                workspace_id=WORKSPACE, fact=ledger_pb2.Fact(**fact), card_ids=cards,
                request_id=request_id, actor="ada", **given,
            )
        )  # fmt: skip

    async def declare(
        self, request_id: str, path: str, fact: dict[str, str], **columns: Any
    ) -> ledger_pb2.ApplyFactResponse:
        """A document that declares a fact, its card, and the claim."""
        uri = self.document(path, fact, **columns)
        return await self.apply(request_id, fact, await self.cards(uri), uri)

    async def objects(
        self, *, collections: tuple[str, ...] = ("notes",), **asked: Any
    ) -> list[str]:
        """Values of the facts that hold."""
        reply = await self.stub.ListFacts(
            ledger_pb2.ListFactsRequest(
                workspace_id=WORKSPACE, context=reader(*collections), **asked
            )
        )
        return [found.fact.object for found in reply.facts]

    def events(self) -> list[tuple[Any, ...]]:
        """Every row version of the ledger."""
        return self.rows.all("SELECT f::text, xmin::text FROM fact_events f ORDER BY 1")


def reader(*collections: str) -> corpus_pb2.QueryContext:
    return corpus_pb2.QueryContext(
        source=corpus_pb2.SOURCE_DOCUMENT, workspace_id=WORKSPACE, channel_ids=collections
    )


def on(day: str) -> Any:
    return timestamp(datetime.fromisoformat(f"{day}T12:00:00+00:00"))


@pytest.fixture
async def ledger(
    resources: Resources, upkeep: Upkeep, serve: Serve, rows: Rows
) -> AsyncIterator[Ledger]:
    """A running ledger with one calibrated collection."""
    # The owner alone can write past the triggers.
    rows.execute("SET session_replication_role = replica")
    rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'document')", WORKSPACE)
    rows.execute("INSERT INTO embedders VALUES ('f', 'local', 'local', 'm', 'r', 384)")
    rows.execute("INSERT INTO label_sets VALUES (%s, 'l', '[]')", WORKSPACE)
    async with serve(servicers(resources, upkeep)) as peer:
        channel: Any = peer.channel()
        made = Ledger(ledger_pb2_grpc.LedgerServiceStub(channel), rows)
        made.collection()
        yield made


async def test_a_declared_and_confirmed_fact_is_recorded_and_shown(ledger: Ledger) -> None:
    fact = {**OWNER, "context": "production", "valid_from": "2026-01-01"}
    applied = await ledger.declare("r1", "owners.md", fact)
    assert applied.decision == DECISIONS.FACT_DECISION_APPLIED
    reply = await ledger.stub.ListFacts(
        ledger_pb2.ListFactsRequest(workspace_id=WORKSPACE, context=reader("notes"))
    )
    (found,) = reply.facts
    assert found.event_id == applied.event_id
    assert found.fact == ledger_pb2.Fact(**fact)
    assert (list(found.source_uris), found.actor) == (["file:///notes/owners.md"], "ada")


async def test_a_document_without_facts_has_no_card(ledger: Ledger) -> None:
    bare, odd = ledger.document("bare.md"), ledger.document("odd.md", {"subject": "api"})
    unread = ledger.document("unread.md", OWNER, invalid_metadata="valid_from: no day")
    assert await ledger.cards(bare, odd, unread, "file:///notes/unknown.md") == []


async def test_the_same_evidence_has_the_same_card(ledger: Ledger) -> None:
    uri = ledger.document("owners.md", OWNER)
    first, second = await ledger.cards(uri), await ledger.cards(uri)
    assert first == second
    assert ledger.rows.one("SELECT count(*) FROM evidence_cards") == 1


async def test_the_same_request_gets_the_same_decision_whatever_happened_since(
    ledger: Ledger,
) -> None:
    uri = ledger.document("owners.md", OWNER)
    cards = await ledger.cards(uri)
    first = await ledger.apply("r1", OWNER, cards, uri)
    again = await ledger.apply("r2", OWNER, cards, uri)
    assert again.decision == DECISIONS.FACT_DECISION_DUPLICATE
    assert again.event_id == first.event_id
    ledger.rows.execute("UPDATE calibrations SET state = 'voided', reason = 'x'")
    before = ledger.events()
    assert await ledger.apply("r1", OWNER, cards) == first
    assert await ledger.apply("r2", OWNER, cards) == again
    assert ledger.events() == before


async def test_a_request_id_is_not_used_for_something_else(ledger: Ledger) -> None:
    uri = ledger.document("owners.md", OWNER, {**OWNER, "object": "Bo"})
    cards = await ledger.cards(uri)
    await ledger.apply("r1", OWNER, cards, uri)
    with call_fails() as errors:
        await ledger.apply("r1", {**OWNER, "object": "Bo"}, cards, uri)
    assert errors[0].message.startswith("request_id: was used for another fact")


async def test_a_refusal_is_recorded_and_an_outage_is_not(ledger: Ledger) -> None:
    uri = ledger.document("owners.md", OWNER)
    cards = await ledger.cards(uri)
    refused = await ledger.apply("r1", {**OWNER, "object": "Bo"}, cards, uri)
    assert refused.decision == DECISIONS.FACT_DECISION_UNSUPPORTED_CLAIM
    away = await ledger.apply("r2", OWNER, cards, fresh_searches=[])
    assert away.decision == DECISIONS.FACT_DECISION_FRESH_SEARCH_UNAVAILABLE
    assert away.event_id == ""
    insufficient = await ledger.apply("r3", OWNER, cards)
    assert insufficient.decision == DECISIONS.FACT_DECISION_FRESH_SEARCH_INSUFFICIENT
    assert (await ledger.apply("r2", OWNER, cards, uri)).decision == DECISIONS.FACT_DECISION_APPLIED
    assert ledger.rows.all("SELECT request_id, kind FROM fact_events ORDER BY 1") == [
        ("r1", "rejected"), ("r2", "asserted"), ("r3", "abstained"),
    ]  # fmt: skip


CHANGES = {
    "GENERATION_MISMATCH": "UPDATE generations SET state = 'ready'",
    "LINEAGE_MISMATCH": "UPDATE generations SET pipeline_fingerprint = 'p2'",
    "SOURCE_CHANGED": "UPDATE sources SET sha256 = 'another'",
    "TRUST_UNAVAILABLE": "UPDATE calibrations SET state = 'superseded'",
    "VALIDITY_EXPIRED": "UPDATE sources SET valid_until = (now() AT TIME ZONE 'UTC')::date - 1",
    "VALIDITY_NOT_STARTED": "UPDATE sources SET valid_from = (now() AT TIME ZONE 'UTC')::date + 2",
    "CARD_NOT_FOUND": "DELETE FROM evidence_cards",
    "CARD_TAMPERED": "UPDATE evidence_cards SET source_sha256 = 'another'",
}


@pytest.mark.parametrize("decision", sorted(CHANGES))
async def test_what_changed_since_the_card_was_made_refuses_the_fact(
    ledger: Ledger, decision: str
) -> None:
    uri = ledger.document("owners.md", OWNER)
    cards = await ledger.cards(uri)
    ledger.rows.execute(CHANGES[decision])
    applied = await ledger.apply("r1", OWNER, cards, uri)
    assert DECISIONS.Name(applied.decision) == f"FACT_DECISION_{decision}"
    assert await ledger.objects() == []


async def test_an_erased_document_supports_nothing(ledger: Ledger) -> None:
    uri = ledger.document("owners.md", OWNER)
    cards = await ledger.cards(uri)
    ledger.rows.execute("DELETE FROM sources")
    applied = await ledger.apply("r1", OWNER, cards, uri)
    assert applied.decision == DECISIONS.FACT_DECISION_SOURCE_CHANGED


@pytest.mark.parametrize("table", ["fact_events", "evidence_cards"])
async def test_nothing_that_was_written_is_changed_or_lost(
    ledger: Ledger, ingest_pool: db.Pool, table: str
) -> None:
    await ledger.declare("r1", "owners.md", OWNER)
    column = {"fact_events": "object", "evidence_cards": "source_sha256"}[table]
    for change in (f"UPDATE {table} SET {column} = 'x'", f"DELETE FROM {table}"):
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
            async with db.writing(ingest_pool, WORKSPACE) as connection:
                await connection.execute(change.encode())


async def test_another_value_needs_an_authored_supersession(ledger: Ledger) -> None:
    await ledger.declare("r1", "old.md", OWNER)
    newer = {**OWNER, "object": "Bo"}
    refused = await ledger.declare("r2", "new.md", newer)
    assert refused.decision == DECISIONS.FACT_DECISION_CONTRADICTION_WITHOUT_SUPERSESSION
    assert await ledger.objects() == ["Ada"]
    ledger.supersedes("file:///notes/new.md", "file:///notes/old.md")
    cards = await ledger.cards("file:///notes/new.md")
    applied = await ledger.apply("r3", newer, cards, "file:///notes/new.md")
    assert applied.decision == DECISIONS.FACT_DECISION_APPLIED
    assert len(applied.superseded_event_ids) == 1
    assert await ledger.objects() == ["Bo"]


async def test_a_chain_of_supersessions_reaches_the_first_document(ledger: Ledger) -> None:
    await ledger.declare("r1", "old.md", OWNER)
    middle = ledger.document("middle.md")
    newest = ledger.document("new.md", {**OWNER, "object": "Bo"})
    ledger.supersedes(middle, "file:///notes/old.md")
    ledger.supersedes(newest, middle)
    cards = await ledger.cards(newest)
    applied = await ledger.apply("r2", {**OWNER, "object": "Bo"}, cards, newest)
    assert applied.decision == DECISIONS.FACT_DECISION_APPLIED


async def test_a_fact_that_another_document_still_backs_is_not_replaced(ledger: Ledger) -> None:
    old, other = ledger.document("old.md", OWNER), ledger.document("other.md", OWNER)
    await ledger.apply("r1", OWNER, await ledger.cards(old, other), old, other)
    newest = ledger.document("new.md", {**OWNER, "object": "Bo"})
    ledger.supersedes(newest, old)
    cards = await ledger.cards(newest)
    refused = await ledger.apply("r2", {**OWNER, "object": "Bo"}, cards, newest)
    assert refused.decision == DECISIONS.FACT_DECISION_CONTRADICTION_WITHOUT_SUPERSESSION


async def test_facts_are_listed_as_they_held_and_as_they_were_known(ledger: Ledger) -> None:
    await ledger.declare("r1", "old.md", {**OWNER, "valid_from": "2026-01-01"})
    known = ledger.rows.one("SELECT max(recorded_at) FROM fact_events")
    newer = {**OWNER, "object": "Bo", "valid_from": "2026-06-01"}
    uri = ledger.document("new.md", newer)
    ledger.supersedes(uri, "file:///notes/old.md")
    await ledger.apply("r2", newer, await ledger.cards(uri), uri)
    for day, held in (("2025-12-31", []), ("2026-05-31", ["Ada"]), ("2026-06-01", ["Bo"])):
        assert await ledger.objects(valid_at=on(day)) == held
    as_known = {"valid_at": on("2026-06-01"), "known_as_of": timestamp(known)}
    assert await ledger.objects(**as_known) == ["Ada"]
    earlier = {"valid_at": on("2026-06-01"), "known_as_of": on("2020-01-01")}
    assert await ledger.objects(**earlier) == []


async def test_facts_are_narrowed_by_namespace_and_subject(ledger: Ledger) -> None:
    await ledger.declare("r1", "a.md", OWNER)
    await ledger.declare("r2", "b.md", {**OWNER, "subject": "web", "object": "Bo"})
    assert await ledger.objects(subject="web") == ["Bo"]
    assert await ledger.objects(namespace="team") == []


async def test_cards_and_facts_of_unreadable_collections_do_not_exist(ledger: Ledger) -> None:
    ledger.collection("secret", "g2")
    uri = ledger.document("owners.md", OWNER, collection="secret", generation_id="g2")
    named = {"generation_id": "g2", "calibration_id": "cal-g2"}
    assert await ledger.cards(uri, **named) == []
    cards = await ledger.cards(uri, collection="secret", **named)
    refused = await ledger.apply("r1", OWNER, cards, uri)
    assert refused.decision == DECISIONS.FACT_DECISION_CARD_NOT_FOUND
    fresh = ledger_pb2.FreshSearch(
        was_made=True, trusted_source_uris=[uri], generation_id="g2", calibration_id="cal-g2",
        collection="secret",
    )  # fmt: skip
    applied = await ledger.apply(
        "r2", OWNER, cards, context=reader("secret"), fresh_searches=[fresh]
    )
    assert applied.decision == DECISIONS.FACT_DECISION_APPLIED
    assert await ledger.objects() == []
    assert await ledger.objects(collections=("notes", "secret")) == ["Ada"]


CORRECTED = {
    "namespace": "message", "subject": "m1", "predicate": "corrected_by", "object": "m2"
}  # fmt: skip


def message(rows: Rows, message_id: str, second: int) -> None:
    rows.execute(
        "INSERT INTO messages (workspace_id, message_id, channel_id, posted_at, thread_root_id, "
        "text, content_sha256) VALUES (%s, %s, 'notes', to_timestamp(%s), %s, 'text', '')",
        WORKSPACE, message_id, second, message_id,
    )  # fmt: skip


async def test_a_fact_that_a_message_corrects_another_corrects_it(ledger: Ledger) -> None:
    message(ledger.rows, "m1", 1)
    message(ledger.rows, "m2", 2)
    applied = await ledger.declare("r1", "review.md", CORRECTED)
    assert applied.decision == DECISIONS.FACT_DECISION_APPLIED
    assert ledger.rows.all("SELECT message_id, corrected_by_id, declared_by FROM corrections") == [
        ("m1", "m2", f"ledger:{applied.event_id}")
    ]


async def test_a_correction_waits_for_its_messages_and_goes_with_its_fact(ledger: Ledger) -> None:
    message(ledger.rows, "m1", 1)
    applied = await ledger.declare("r1", "review.md", CORRECTED)
    assert applied.decision == DECISIONS.FACT_DECISION_MATERIALIZATION_UNAVAILABLE
    assert await ledger.objects() == ["m2"]
    message(ledger.rows, "m2", 2)
    message(ledger.rows, "m3", 3)
    await ledger.declare("r2", "other.md", OWNER)
    assert ledger.rows.all("SELECT corrected_by_id FROM corrections") == [("m2",)]
    newer = ledger.document("newer.md", {**CORRECTED, "object": "m3"})
    ledger.supersedes(newer, "file:///notes/review.md")
    cards = await ledger.cards(newer)
    await ledger.apply("r3", {**CORRECTED, "object": "m3"}, cards, newer)
    assert ledger.rows.all("SELECT corrected_by_id FROM corrections") == [("m3",)]


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"fact": ledger_pb2.Fact(**{**OWNER, "subject": ""})}, "fact.subject"),
        ({"fact": ledger_pb2.Fact(**{**OWNER, "valid_from": "soon"})}, "fact.valid_from"),
        ({"card_ids": []}, "card_ids"),
        ({"card_ids": [f"card-{n}" for n in range(65)]}, "card_ids"),
        ({"request_id": ""}, "request_id"),
        ({"fact": ledger_pb2.Fact(**{**OWNER, "object": "x" * 65_536})}, "fact"),
    ],
)
async def test_a_malformed_request_is_refused_and_names_the_field(
    ledger: Ledger, parts: dict[str, Any], field: str
) -> None:
    given = {
        "workspace_id": WORKSPACE, "fact": ledger_pb2.Fact(**OWNER), "card_ids": ["card-1"],
        "request_id": "r1", "context": reader("notes"), **parts,
    }  # fmt: skip
    with call_fails() as errors:
        await ledger.stub.ApplyFact(ledger_pb2.ApplyFactRequest(**given))
    assert errors[0].message.startswith(f"{field}: ")
    assert ledger.events() == []


async def test_an_erased_document_leaves_the_ledger_with_its_facts(
    ledger: Ledger, ingest: Ingest
) -> None:
    both = {**OWNER, "subject": "web"}
    uri, other = ledger.document("a.md", OWNER, both), ledger.document("b.md", both)
    cards = await ledger.cards(uri, other)
    await ledger.apply("r1", OWNER, cards[:1], uri)
    await ledger.apply("r2", OWNER, cards[:1], uri)
    await ledger.apply("r3", {**OWNER, "object": "Bo"}, cards[:1], uri)
    await ledger.apply("r4", both, cards, uri)
    await ingest.ingest.EraseSource(
        documents_pb2.EraseSourceRequest(workspace_id=WORKSPACE, collection="notes", uri=uri)
    )
    assert ledger.rows.all("SELECT request_id FROM fact_events") == [("r4",)]
    assert ledger.rows.all("SELECT card_id FROM evidence_cards") == [(cards[1],)]
    reply = await ledger.stub.ListFacts(
        ledger_pb2.ListFactsRequest(workspace_id=WORKSPACE, context=reader("notes"))
    )
    assert [list(fact.source_uris) for fact in reply.facts] == [[other]]


@pytest.mark.parametrize("seed", range(3))
async def test_replaying_requests_in_any_order_changes_nothing(ledger: Ledger, seed: int) -> None:
    choose = random.Random(seed)
    facts = [
        {**OWNER, "subject": ("api", "web")[number % 2], "object": "ABC"[number % 3]}
        for number in range(6)
    ]
    uris = [ledger.document(f"{number}.md", fact) for number, fact in enumerate(facts)]
    ledger.supersedes(uris[2], uris[0])
    cards = {uri: await ledger.cards(uri) for uri in uris}
    requests: list[tuple[Any, ...]] = []
    for number in range(40):
        chosen = choose.randrange(6)
        claim = choose.choice((facts[chosen], facts[chosen], {**OWNER, "object": "D"}))
        trusted = choose.choice(([uris[chosen]], [uris[chosen]], []))
        requests.append((f"r{number}", claim, cards[uris[chosen]], *trusted))
    first = {request[0]: await ledger.apply(*request) for request in requests}
    before = ledger.events()
    assert len({reply.decision for reply in first.values()}) > 3
    for request in choose.choices(requests, k=60):
        assert await ledger.apply(*request) == first[request[0]]
    assert ledger.events() == before
