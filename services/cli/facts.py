"""``recall facts``: what the ledger holds, cards to back a fact with, and recording one."""

from __future__ import annotations

import argparse
import json
import uuid
from typing import Any

from recall.gateway.v1 import admin_pb2, gateway_pb2
from recall.ingest.v1 import ledger_pb2
from services.cli.connection import NOT_ANSWERED, OK, Stack, UsageError
from services.cli.options import parse_instant
from services.cli.terminal import show
from services.corpus import instant, timestamp

FACT_SECONDS = 40.0
_PARTS = (
    "namespace", "subject", "predicate", "object", "context", "valid_from", "valid_until"
)  # fmt: skip
_RECORDED = (ledger_pb2.FACT_DECISION_APPLIED, ledger_pb2.FACT_DECISION_DUPLICATE)

Json = dict[str, Any]


def add_facts(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand."""
    command = commands.add_parser("facts", help="list reviewed facts, find cards, record a fact")
    command.add_argument("action", nargs="?", choices=("list", "cards", "apply"), default="list")
    command.add_argument("question", nargs="*", help="for cards: what to search for")
    command.add_argument("--collection", help="only documents of this name")
    command.add_argument("--as-of", metavar="DATE", help="for list: facts that held then")
    command.add_argument("--known-as-of", metavar="DATE", help="for list: recorded by then")
    for part in _PARTS:
        command.add_argument(f"--{part.replace('_', '-')}", default="", help=f"the fact's {part}")
    command.add_argument(
        "--card", action="append", default=[], help="for apply: evidence card (repeat for more)"
    )
    command.add_argument("--request-id", help="for apply: the same again gives the same decision")
    command.add_argument("--workspace", help="workspace (default: the only one)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run_facts)


async def run_facts(options: argparse.Namespace, stack: Stack) -> int:
    """List facts, list cards, or record a fact; 3 when nothing is found or recorded."""
    run = {"list": _list, "cards": _cards, "apply": _apply}[options.action]
    return await run(options, stack)


async def _list(options: argparse.Namespace, stack: Stack) -> int:
    request = admin_pb2.ListFactsRequest(
        reader=_reader(options),
        valid_at=timestamp(parse_instant("--as-of", options.as_of)),
        known_as_of=timestamp(parse_instant("--known-as-of", options.known_as_of)),
        namespace=options.namespace,
        subject=options.subject,
    )
    facts = (await stack.admin.ListFacts(request, timeout=FACT_SECONDS)).facts
    if options.json:
        print(json.dumps([_recorded_json(each) for each in facts], ensure_ascii=False, indent=2))
    else:
        show("\n".join(map(_recorded_line, facts)) or "No fact that you can read holds.")
    return OK


async def _cards(options: argparse.Namespace, stack: Stack) -> int:
    question = " ".join(options.question)
    if not question:
        raise UsageError("QUESTION is missing: write what to search for.")
    request = admin_pb2.FindCardsRequest(reader=_reader(options), question=question)
    reply = await stack.admin.FindCards(request, timeout=FACT_SECONDS)
    if options.json:
        cards = [_card_json(each) for each in reply.cards]
        print(json.dumps({"cards": cards, "reason": reply.reason}, ensure_ascii=False, indent=2))
    else:
        lines = [
            f"{card.card_id}  {_statement(fact)}  ({card.source_uri})"
            for card in reply.cards
            for fact in card.facts
        ]
        show("\n".join(lines) or reply.reason)
    return OK if reply.cards else NOT_ANSWERED


async def _apply(options: argparse.Namespace, stack: Stack) -> int:
    if not options.card:
        raise UsageError("--card is missing: `recall facts cards QUESTION` shows the ids.")
    request = admin_pb2.ApplyFactRequest(
        reader=_reader(options),
        fact=ledger_pb2.Fact(**{part: getattr(options, part) for part in _PARTS}),
        card_ids=options.card,
        request_id=options.request_id or str(uuid.uuid4()),
    )
    result = (await stack.admin.ApplyFact(request, timeout=FACT_SECONDS)).result
    decision = ledger_pb2.FactDecision.Name(result.decision).removeprefix("FACT_DECISION_")
    if options.json:
        shown = {
            "decision": decision,
            "reason": result.explanation,
            "event_id": result.event_id,
            "request_id": request.request_id,
            "superseded_event_ids": list(result.superseded_event_ids),
        }
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        show(f"{decision}: {result.explanation}")
    return OK if result.decision in _RECORDED else NOT_ANSWERED


def _reader(options: argparse.Namespace) -> gateway_pb2.Reader:
    collections = [options.collection] if options.collection else []
    return gateway_pb2.Reader(workspace_id=options.workspace or "", channel_ids=collections)


def _statement(fact: ledger_pb2.Fact) -> str:
    where = f" [{fact.context}]" if fact.context else ""
    when = f" ({fact.valid_from or '…'} to {fact.valid_until or '…'})"
    window = when if fact.valid_from or fact.valid_until else ""
    return f"{fact.namespace}/{fact.subject} {fact.predicate}: {fact.object}{where}{window}"


def _recorded_line(found: ledger_pb2.LedgerFact) -> str:
    return f"{_statement(found.fact)}  {', '.join(found.source_uris)}  ({found.event_id})"


def _recorded_json(found: ledger_pb2.LedgerFact) -> Json:
    return _fact_json(found.fact) | {
        "event_id": found.event_id,
        "source_uris": list(found.source_uris),
        "recorded_at": instant(found.recorded_at).isoformat().replace("+00:00", "Z"),
        "actor": found.actor,
    }


def _card_json(card: ledger_pb2.EvidenceCard) -> Json:
    return {
        "card_id": card.card_id,
        "collection": card.collection,
        "source_uri": card.source_uri,
        "facts": [_fact_json(fact) for fact in card.facts],
    }


def _fact_json(fact: ledger_pb2.Fact) -> Json:
    return {part: getattr(fact, part) for part in _PARTS}
