"""Evidence cards in the database: made of trusted documents, read back, and how they stand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from services.ingest.fact_decision import CurrentSource, Fresh, Standing
from services.ingest.facts import Card, declared_facts, sealed_card
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "ledger.sql")


async def make_cards(connection: db.Connection, parameters: Mapping[str, Any]) -> dict[str, Card]:
    """Cards of one generation's documents that declare facts, by source URI; stored once.

    ``parameters``: workspace_id, generation_id, source_uris, channel_ids, calibration_id.
    """
    rows = await db.fetch_all(connection, _STATEMENTS["declaring_sources"], dict(parameters))
    cards = {row[0]: _new_card(row, parameters) for row in rows}
    found = {uri: card for uri, card in cards.items() if card.facts}
    for card in found.values():
        await connection.execute(
            _STATEMENTS["save_card"],
            {
                **vars(card),
                "workspace_id": parameters["workspace_id"],
                "facts": json.dumps([fact.as_json() for fact in card.facts]),
            },
        )
    return found


async def read_cards(
    connection: db.Connection,
    workspace_id: str,
    card_ids: Sequence[str],
    channel_ids: Sequence[str],
) -> dict[str, Card]:
    """The cards of these ids in these collections, by id."""
    parameters = _named(workspace_id, card_ids, channel_ids)
    rows = await db.fetch_all(connection, _STATEMENTS["read_cards"], parameters)
    return {row[0]: _stored_card(row) for row in rows}


async def read_standings(
    connection: db.Connection,
    workspace_id: str,
    card_ids: Sequence[str],
    channel_ids: Sequence[str],
    fresh: Mapping[str, Fresh],
) -> list[Standing]:
    """How each named card stands, in order. ``fresh`` is by collection."""
    cards = await read_cards(connection, workspace_id, card_ids, channel_ids)
    parameters = _named(workspace_id, card_ids, channel_ids)
    rows = await db.fetch_all(connection, _STATEMENTS["standings"], parameters)
    known = {
        row[0]: Standing(
            row[0], cards[row[0]], row[1], row[2], row[3],
            current=None if row[4] is None else CurrentSource(
                row[4], declared_facts(row[5]), row[6], row[7]
            ),
            fresh=fresh.get(cards[row[0]].channel_id),
        )
        for row in rows
        if row[0] in cards
    }  # fmt: skip
    return [known.get(card_id) or Standing(card_id) for card_id in card_ids]


def _named(
    workspace_id: str, card_ids: Sequence[str], channel_ids: Sequence[str]
) -> dict[str, object]:
    return {
        "workspace_id": workspace_id,
        "card_ids": list(card_ids),
        "channel_ids": list(channel_ids),
    }


def _new_card(row: Sequence[Any], parameters: Mapping[str, Any]) -> Card:
    source_uri, channel_id, sha256, declared, pipeline_fingerprint = row
    return sealed_card(
        Card(
            card_id="",
            generation_id=parameters["generation_id"],
            channel_id=channel_id,
            source_uri=source_uri,
            source_sha256=sha256,
            pipeline_fingerprint=pipeline_fingerprint,
            calibration_id=parameters["calibration_id"],
            facts=declared_facts(declared),
            card_sha256="",
        )
    )


def _stored_card(row: Sequence[Any]) -> Card:
    card_id, generation_id, channel_id, source_uri, source_sha256 = row[:5]
    pipeline_fingerprint, calibration_id, facts, card_sha256 = row[5:]
    return Card(
        card_id=card_id,
        generation_id=generation_id,
        channel_id=channel_id,
        source_uri=source_uri,
        source_sha256=source_sha256,
        pipeline_fingerprint=pipeline_fingerprint,
        calibration_id=calibration_id,
        # Whatever a tampered row holds, its hash does not match.
        facts=declared_facts(facts),
        card_sha256=card_sha256,
    )
