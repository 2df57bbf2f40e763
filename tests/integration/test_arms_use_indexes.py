"""Both arms as the read-only role on 20,000 chunks of several tenants: their plans, and that a
narrow right empties nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from services.corpus import QueryContext, Source
from services.retrieve.arms import ARMS, Query, parameters_of, run_arms
from services.retrieve.fusion import Arm
from services.retrieve.resolve_pin import Generation
from services.retrieve.scope import Scope
from services.runtime import db
from tests.conftest import TEMPLATE, with_database
from tests.integration.seed import Seed

CHANNELS = tuple(f"C{number}" for number in range(50))
# 40 chunks of the big tenant stand here, all far from the question.
FEW = "FEW"
QUESTION = np.ones(384, np.float32) / np.float32(np.sqrt(384))

FILL = """
INSERT INTO messages (workspace_id, message_id, channel_id, author_id, posted_at,
    thread_root_id, text, content_sha256)
SELECT %(workspace)s, 'slack:' || n, CASE WHEN n <= 40 THEN 'FEW' ELSE 'C' || n %% 50 END, 'U1',
    timestamptz '2026-01-01' + n * interval '1 minute', 'slack:' || n, 'x', 'x'
FROM generate_series(1, %(count)s) AS n;
INSERT INTO chunks (workspace_id, generation_id, chunk_id, channel_id, thread_root_id, kind,
    text, text_sha256, token_count)
SELECT workspace_id, 'G1', message_id, channel_id, message_id, 'message', text, message_id, 1
FROM messages WHERE workspace_id = %(workspace)s;
INSERT INTO chunk_messages (workspace_id, generation_id, chunk_id, message_id, position)
SELECT workspace_id, 'G1', message_id, message_id, 0
FROM messages WHERE workspace_id = %(workspace)s;
INSERT INTO chunk_terms
SELECT workspace_id, 'G1', message_id, channel_id, ARRAY[author_id], posted_at, posted_at,
    (SELECT to_tsvector('simple', string_agg('w' || floor(10 ^ (random() * 4) + 0 * i), ' ')
        || CASE WHEN random() < 0.002 THEN ' 28P01' ELSE '' END)
     FROM generate_series(1, 12) AS i WHERE message_id <> '')
FROM messages WHERE workspace_id = %(workspace)s;
INSERT INTO vectors_384
SELECT workspace_id, 'G1', message_id, channel_id, ARRAY[author_id], posted_at, posted_at,
    (SELECT array_agg(random() + 0 * i - CASE WHEN channel_id = 'FEW' THEN 0.9 ELSE 0.1 END)
     FROM generate_series(1, 384) AS i WHERE message_id <> '')::vector
FROM messages WHERE workspace_id = %(workspace)s;
"""


@pytest.fixture(scope="module")
def filled_url(postgres_url: str) -> Iterator[str]:
    """Tenant T1 with 10,000 chunks and five others with 2,000 each, analysed."""
    name = f"recall_arms_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"'.encode())
        url = with_database(postgres_url, name)
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as owner:
            owner.execute("SELECT setseed(0.5)")
            for number in range(1, 7):
                seed = Seed(owner, f"T{number}").workspace()
                for channel_id in (*CHANNELS, FEW):
                    seed.channel(channel_id, channel_id.lower())
                owner.execute(
                    FILL.encode(),
                    {"workspace": seed.workspace_id, "count": 10_000 if number == 1 else 2_000},
                )
            owner.execute("VACUUM ANALYZE")
        yield url
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def scope_of(*channel_ids: str, workspace_id: str = "T1") -> Scope:
    context = QueryContext(Source.SLACK, workspace_id, channel_ids)
    return Scope(context, channel_ids, None, None, None)


GENERATION = Generation("G1", "", 384, "")


def query(lexical: str) -> Query:
    return Query(QUESTION, lexical, ())


async def plan(pool: db.Pool, statement: bytes, scope: Scope, asked: Query) -> list[dict[str, Any]]:
    """The nodes of a statement's plan, as the role that serves."""
    async with db.reading(pool, scope.context.workspace_id) as connection:
        row = await (
            await connection.execute(
                b"EXPLAIN (FORMAT JSON) " + statement,
                parameters_of(GENERATION, scope, asked),
                prepare=False,
            )
        ).fetchone()
    assert row is not None
    return list(_nodes(row[0][0]["Plan"]))


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def indexes(nodes: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(node["Node Type"], node["Index Name"]) for node in nodes if "Index Name" in node}


async def test_the_lexical_arm_uses_the_full_text_index(filled_url: str) -> None:
    async with db.open_pool(db.url_as_role(filled_url, db.RETRIEVE_ROLE)) as pool:
        nodes = await plan(pool, ARMS["lexical_arm"], scope_of(*CHANNELS), query("28p01 | w777"))
    assert ("Bitmap Index Scan", "chunk_terms_by_term") in indexes(nodes)


async def test_the_dense_arm_reads_only_the_permitted_channels(filled_url: str) -> None:
    async with db.open_pool(db.url_as_role(filled_url, db.RETRIEVE_ROLE)) as pool:
        statement = ARMS.for_width("dense_arm", 384)
        nodes = await plan(pool, statement, scope_of("C1", "C2"), query(""))
    names = {name for _, name in indexes(nodes)}
    assert names and names <= {"vectors_384_by_channel", "vectors_384_pkey"}


async def test_an_approximate_index_can_order_under_the_wall(filled_url: str) -> None:
    hnsw_name = "vectors_384_by_distance"
    create = f"CREATE INDEX {hnsw_name} ON vectors_384 USING hnsw (embedding vector_cosine_ops)"
    with psycopg.connect(filled_url, autocommit=True) as owner:
        owner.execute(create.encode())
    ordering = (
        b"SELECT chunk_id FROM vectors_384 WHERE workspace_id = %(workspace_id)s "
        b"AND generation_id = %(generation_id)s "
        b"ORDER BY embedding <=> %(question)s::vector LIMIT %(candidates)s"
    )
    async with db.open_pool(db.url_as_role(filled_url, db.RETRIEVE_ROLE)) as pool:
        nodes = await plan(pool, ordering, scope_of(*CHANNELS), query(""))
        assert ("Index Scan", hnsw_name) in indexes(nodes)
        # The arm itself stays exact: where an approximate order would return no permitted chunk,
        # it returns the nearest of them.
        found = await nearest(pool, scope_of(FEW))
    with psycopg.connect(filled_url, autocommit=True) as owner:
        everything, permitted = distances(owner)
        owner.execute(f"DROP INDEX {hnsw_name}".encode())
    assert not set(everything[:40]) & set(permitted)
    assert found == permitted[:30]


async def nearest(pool: db.Pool, scope: Scope) -> list[str]:
    async with db.reading(pool, "T1") as connection:
        rankings = await run_arms(connection, GENERATION, scope, query(""))
    return [candidate.chunk_id for candidate in rankings.lists[Arm.DENSE]]


def distances(owner: psycopg.Connection[Any]) -> tuple[list[str], list[str]]:
    """Chunk ids of T1, nearest first, computed outside PostgreSQL: all, and those in FEW."""
    rows = owner.execute(
        "SELECT chunk_id, channel_id, embedding::text FROM vectors_384 WHERE workspace_id = 'T1'"
    ).fetchall()
    matrix: NDArray[np.float64] = np.array([np.fromstring(r[2][1:-1], sep=",") for r in rows])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    order = np.argsort(-(matrix @ QUESTION.astype(float)), kind="stable")
    ranked = [rows[position] for position in order]
    return [row[0] for row in ranked], [row[0] for row in ranked if row[1] == FEW]


async def test_40_permitted_chunks_of_10000_are_all_found_by_words_too(filled_url: str) -> None:
    with psycopg.connect(filled_url, autocommit=True) as owner:
        owner.execute(
            "UPDATE chunk_terms SET terms = terms || to_tsvector('simple', 'zeppelin') "
            "WHERE workspace_id = 'T1' AND channel_id IN ('FEW', 'C1', 'C2')"
        )
    async with (
        db.open_pool(db.url_as_role(filled_url, db.RETRIEVE_ROLE)) as pool,
        db.reading(pool, "T1") as connection,
    ):
        rankings = await run_arms(connection, GENERATION, scope_of(FEW), query("zeppelin"))
    listed = rankings.lists[Arm.LEXICAL]
    assert len(listed) == 30
    assert {int(chunk.chunk_id.removeprefix("slack:")) for chunk in listed} <= set(range(1, 41))


async def test_a_scope_of_another_tenant_reads_nothing(filled_url: str) -> None:
    """The second wall: were the filters wrong, the transaction's tenant would still hold."""
    async with (
        db.open_pool(db.url_as_role(filled_url, db.RETRIEVE_ROLE)) as pool,
        db.reading(pool, "T2") as connection,
    ):
        scope = scope_of(*CHANNELS, workspace_id="T1")
        rankings = await run_arms(connection, GENERATION, scope, query("28p01"))
    assert rankings.lists == {Arm.DENSE: [], Arm.LEXICAL: []}
