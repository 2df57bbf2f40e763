"""What `recall import` says when ingest ends in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Rows

LINES = 60_000
# More than the handshake and the header, less than the archive.
TAKEN_BYTES = 500_000


@asynccontextmanager
async def breaking_after(target: str, most_bytes: int) -> AsyncIterator[str]:
    """The address of a way to a server that breaks once so many bytes went there."""
    host, _, port = target.rpartition(":")

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        back = asyncio.create_task(_copy(there_reader, writer))
        await _copy(reader, there_writer, most_bytes)
        back.cancel()
        for each in (writer, there_writer):
            each.transport.abort()

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most_bytes: int | None = None
) -> None:
    left = most_bytes
    with suppress(ConnectionError):
        while (left is None or left > 0) and (data := await reader.read(65_536)):
            writer.write(data)
            await writer.drain()
            left = None if left is None else left - len(data)


async def test_a_broken_import_is_called_interrupted_and_can_be_repeated(
    resources: Resources, upkeep: Upkeep, serve: Serve, tmp_path: Path, rows: Rows
) -> None:
    archive = tmp_path / "lines.jsonl"
    with archive.open("w") as file:
        for number in range(LINES):
            line = {
                "id": str(number), "channel": "ops", "author": "Ines",
                "posted_at": "2026-03-02T09:00:00Z", "text": f"line {number}",
            }  # fmt: skip
            file.write(json.dumps(line) + "\n")
    async with (
        serve(servicers(resources, upkeep)) as peer,
        breaking_after(peer.target, TAKEN_BYTES) as target,
    ):
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RECALL_HOME": str(tmp_path / "home"),
            "RECALL_INGEST_TARGET": target,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli", "import", str(archive), "--no-wait"),
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
    assert (process.returncode, output) == (1, b"")
    assert errors.decode().strip() == (
        "The import was interrupted; repeat it: what is stored already is not stored twice."
    )
    assert rows.one("SELECT count(*) FROM messages") < LINES
