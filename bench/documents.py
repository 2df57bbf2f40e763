"""Building an index of small documents: ours against recall-rag, one precomputed embedder."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.machine import machine
from evals.own_stack import environment_of
from evals.tables import table
from services.cli.connection import connect
from services.cli.documents import run_documents
from services.embedding.identity import Skipped
from services.embedding.local import IDENTITY, LocalEmbedder
from services.ingest.document_chunking import render
from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack

DOCUMENTS, FOLDERS = 2_000, 20
WORDS_A_DOCUMENT = 40
PEER = "recall-rag==0.13.0"
FIRST_LIMIT, AGAIN_LIMIT = 8.0, 20.0
WORKSPACE, COLLECTION = "bench", "notes"

EXPLANATION = """\
first   from reading the manifest to the promotion; read, cut, written, validated, promoted.
again   the same folder once more: every document is carried forward.
The vectors of both sides were there before (ours in the cache by content, the peer's in a table in
its memory) and are the same. Both write to the same PostgreSQL; ours is called through the client
of `recall documents build`, over gRPC, the peer's in its own process. One run each, one after the
other."""

_WORKSPACE = "INSERT INTO workspaces (workspace_id, source, team_id) VALUES (%s, 'document', '')"
_EMBEDDER = """
INSERT INTO embedders (fingerprint, name, provider, model, revision, width)
VALUES (%s, %s, %s, %s, %s, %s)"""
_CACHE = """
INSERT INTO embedding_cache (workspace_id, embedder_fingerprint, text_sha256, vector)
VALUES (%s, %s, %s, %s)"""

Say = Callable[[str], None]


class PeerError(Exception):
    """The peer can not be measured; one line that says why."""


@dataclass(frozen=True)
class Seconds:
    """Of a first build and of the same again."""

    first: float
    again: float


def documents(port_base: int, say: Say) -> bool:
    """Measure both and print a table. True within the limits.

    Raises StackError when the stack does not start, PeerError when the peer does not run.
    """
    print(f"Building {DOCUMENTS} documents of {WORDS_A_DOCUMENT} words\n{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="recall-bench-") as name:
        folder = Path(name)
        say("making documents and their vectors")
        texts = _write_documents(folder / "notes")
        vectors = asyncio.run(_embed([render(path, text) for path, text in texts.items()]))
        stack = Stack(folder / "home", environment_of(os.environ, folder / "home", port_base))
        try:
            stack.up(say)
            url = EmbeddedPostgres(stack.home / "postgres", stack.port("postgres")).url()
            say("building ours, twice")
            ours = asyncio.run(_ours(stack, folder / "notes", url, texts, vectors))
            say(f"building with {PEER}, twice")
            peer = _peer(folder, url, texts, vectors)
        finally:
            stack.down(say)
    return _report(ours, peer)


def _write_documents(folder: Path) -> dict[str, str]:
    """Bodies by path."""
    chance = random.Random(7)
    syllables = [a + b for a in "bdfgklmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(4_000)]
    texts = {}
    for number in range(DOCUMENTS):
        path = f"team-{number % FOLDERS:02}/note-{number:04}.md"
        texts[path] = " ".join(chance.choices(words, k=WORDS_A_DOCUMENT)) + "."
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts[path], "utf-8")
    return texts


async def _embed(texts: list[str]) -> NDArray[np.float32]:
    embedder = LocalEmbedder(threads=os.cpu_count() or 1)
    found = await embedder.embed_passages(texts)
    return np.asarray([[] if isinstance(each, Skipped) else each for each in found], "<f4")


async def _ours(
    stack: Stack, folder: Path, url: str, texts: dict[str, str], vectors: NDArray[np.float32]
) -> Seconds:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_WORKSPACE.encode(), (WORKSPACE,))
        identity = IDENTITY
        connection.execute(
            _EMBEDDER.encode(),
            (
                identity.fingerprint,
                identity.name,
                identity.provider,
                identity.model,
                identity.revision,
                identity.width,
            ),
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                _CACHE.encode(),
                [
                    (WORKSPACE, IDENTITY.fingerprint, _sha256(render(path, text)), each.tobytes())
                    for (path, text), each in zip(texts.items(), vectors, strict=True)
                ],
            )
    options = argparse.Namespace(
        action="build",
        where=str(folder),
        collection=COLLECTION,
        workspace=WORKSPACE,
        embedder="local",
        promote=True,
        uncertified=True,
        json=True,
    )
    async with connect(stack.environ) as client:
        seconds = []
        for _ in range(2):
            began = time.monotonic()
            with contextlib.redirect_stdout(io.StringIO()) as told:
                await run_documents(options, client)
            seconds.append(time.monotonic() - began)
            result = json.loads(told.getvalue())
            if (result["sources"], result["state"]) != (DOCUMENTS, "active"):
                raise PeerError(f"ours did not build everything: {result}")
    return Seconds(*seconds)


def _peer(folder: Path, url: str, texts: dict[str, str], vectors: NDArray[np.float32]) -> Seconds:
    python = _environment(folder / "peer")
    by_text = dict(zip(map(_sha256, texts.values()), vectors.tolist(), strict=True))
    (folder / "vectors.json").write_text(json.dumps(by_text), "utf-8")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(b"CREATE DATABASE peer")
    own_url = psycopg.conninfo.make_conninfo(url, dbname="peer")
    script = Path(__file__).with_name("peer_documents.py")
    done = subprocess.run(
        (python, script, own_url, folder / "notes", folder / "vectors.json"),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if done.returncode != 0:
        raise PeerError(f"{PEER} failed: {done.stderr.strip()[-500:]}")
    return Seconds(**json.loads(done.stdout.strip().splitlines()[-1]))


def _environment(folder: Path) -> Path:
    """A Python environment with the peer alone."""
    for command in (
        ("uv", "venv", "-q", folder),
        ("uv", "pip", "install", "-q", "--python", folder / "bin" / "python", PEER),
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PeerError(f"{PEER} can not be installed: {done.stderr.strip()[-300:]}")
    return folder / "bin" / "python"


def _report(ours: Seconds, peer: Seconds) -> bool:
    first, again = peer.first / ours.first, peer.again / ours.again
    rows = [
        _row("ours", ours),
        _row(PEER, peer),
        ("times as fast", f"{first:.1f}", "", f"{again:.1f}"),
    ]
    print("\n".join(table(("", "first s", "files/s", "again s"), rows)))
    print(
        f"\nwanted: first {FIRST_LIMIT:.0f} times, again {AGAIN_LIMIT:.0f} times\n\n{EXPLANATION}"
    )
    return first >= FIRST_LIMIT and again >= AGAIN_LIMIT


def _row(name: str, seconds: Seconds) -> tuple[str, ...]:
    rate = f"{DOCUMENTS / seconds.first:.0f}"
    return name, f"{seconds.first:.2f}", rate, f"{seconds.again:.2f}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
