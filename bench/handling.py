"""How many events a second one worker makes true in the rows, with nothing beside it."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from bench.ack import SLACK_PORT_OFFSET, slack_beside, workplace_in
from bench.ack_rows import effects
from bench.event_load import Event, Workplace, events
from bench.machine import machine
from evals.own_stack import environment_of
from evals.tables import table
from recall.ingest.v1 import slack_pb2
from services.cli.connection import connect
from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack
from tests.fakes.slack_server import AppIdentity, RemoteControl
from tests.slack_stack import install, slack_environment

EVENTS = 3_000
RECORDED_AT_ONCE = 16
LEAST_A_SECOND = 150.0
LIMIT_SECONDS = 300.0
_WORKER = ("ingest-worker",)

# From the first event's end to the last one's.
_DONE = """
SELECT count(*), coalesce(extract(epoch FROM max(finished_at) - min(finished_at)), 0)
FROM jobs WHERE kind = 'event' AND state = 'done'"""

EXPLANATION = """\
Recorded first, then handled by one worker process: each event is a new message in one of 8
channels, every fourth a reply, and is stored, chunked and indexed but for its vector."""

Say = Callable[[str], None]


def handling(port_base: int, say: Say) -> bool:
    """Measure on a stack of its own and print a table. True within the limits.

    Raises StackError when the stack does not start, NotInstalledError.
    """
    print(f"Events handled by one worker: {EVENTS} recorded before\n{machine()}\n")
    app = AppIdentity()
    with tempfile.TemporaryDirectory(prefix="recall-bench-") as folder:
        home = Path(folder, "home")
        slack_port = port_base + SLACK_PORT_OFFSET
        environ = environment_of(os.environ, home, port_base)
        environ |= slack_environment(f"http://127.0.0.1:{slack_port}/api/", app, port_base)
        stack = Stack(home, environ)
        with slack_beside(slack_port, environ) as slack:
            try:
                stack.up(say)
                return _measure(stack, slack, say)
            finally:
                stack.down(say)


def _measure(stack: Stack, slack: RemoteControl, say: Say) -> bool:
    workplace = workplace_in(slack)
    asyncio.run(install(f"http://127.0.0.1:{stack.port('gateway_http')}", workplace.team_id))
    stack.stop(_WORKER)
    load = events(workplace, EVENTS, int(time.time()))
    say(f"recording {EVENTS} events")
    recorded = asyncio.run(_record(stack, workplace, load))
    say("handling them")
    stack.up(say)
    url = EmbeddedPostgres(stack.home / "postgres", stack.port("postgres")).url()
    count, seconds = _handled(url)
    found = effects(url, workplace.team_id, load, {event.event_id for event in load})
    rows = [
        ("recorded", str(EVENTS), f"{recorded:.1f}", f"{EVENTS / recorded:.0f}"),
        ("handled", str(count), f"{seconds:.1f}", f"{count / max(seconds, 0.001):.0f}"),
    ]
    print("\n".join(table(("", "events", "seconds", "a second"), rows)))
    print(f"\nlost {len(found.lost)}, twice {len(found.twice)}, ran again {found.ran_again}\n")
    print(EXPLANATION)
    is_whole = count == EVENTS and not found.lost and not found.twice
    return is_whole and count / seconds >= LEAST_A_SECOND


async def _record(stack: Stack, workplace: Workplace, load: Sequence[Event]) -> float:
    """Seconds until every event is recorded."""
    waiting = iter(load)
    begin = time.monotonic()
    async with connect(stack.environ) as stubs:

        async def record() -> None:
            for event in waiting:
                await stubs.ingest.RecordEvent(
                    slack_pb2.RecordEventRequest(
                        team_id=workplace.team_id,
                        event_id=event.event_id,
                        envelope_json=event.body(workplace.team_id),
                    )
                )

        await asyncio.gather(*(record() for _ in range(RECORDED_AT_ONCE)))
    return time.monotonic() - begin


def _handled(url: str) -> tuple[int, float]:
    """How many events were handled, and the seconds from the first one's end to the last one's."""
    deadline = time.monotonic() + LIMIT_SECONDS
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row: Any = connection.execute(_DONE.encode()).fetchone()
            if row[0] == EVENTS or time.monotonic() > deadline:
                return int(row[0]), float(row[1])
            time.sleep(0.5)
