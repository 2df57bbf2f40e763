"""How fast and how surely events are acknowledged while much else goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.ack_beside import Asked, Purged, ask_until, fill_archive, fill_purged, purge
from bench.ack_rows import Effects, Unfinished, archive_messages, effects, unfinished
from bench.event_load import Event, Seen, Sender, Workplace, events
from bench.machine import machine
from evals.own_stack import environment_of
from evals.tables import table
from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack
from tests.fakes.slack_server import AppIdentity, RemoteControl
from tests.fakes.slack_server.delivery_settings import Signer
from tests.slack_stack import install, slack_environment

EVENTS_PER_SECOND = 100
P99_LIMIT_MILLISECONDS = 300.0
SLACK_PORT_OFFSET = 20
CHANNELS, PEOPLE = 8, 12
# One page of history in so many seconds; Slack's own pace would show one page in the whole run.
HISTORY_INTERVAL_SECONDS = "0.5"
WARM_UP_EVENTS = 20
DRAIN_SECONDS = 900.0

EXPLANATION = """\
ack        from the moment an event is sent to the last byte of its answer, retries too. Each event
           is sent at its own time; "sent late" is how far the sender itself fell behind.
lost       acknowledged, and its message is not in the rows with its text and in the index.
twice      more than one job, one message or one chunk of its own for an event. Every 20th event is
           delivered twice at once.
ran again  jobs claimed more than once: their holder missed its heartbeat. The rows stay right.
The sender, Slack and the whole stack share the machine."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Drained:
    """Seconds after the last event until no event waited, and until nothing did; None: never."""

    events_seconds: float | None
    all_seconds: float | None
    left: Unfinished


@dataclass(frozen=True)
class Run:
    """Everything that was seen."""

    load: Sequence[Event]
    seen: Seen
    asked: Asked
    purged: Purged
    drained: Drained
    found: Effects
    archive: tuple[int, int]

    @property
    def is_right(self) -> bool:
        """Whether every promise was kept."""
        acknowledged = len(self.seen.acknowledged) == len(self.load)
        drained = self.drained.all_seconds is not None and not self.drained.left.dead
        fast = share(self.seen.milliseconds, 0.99) < P99_LIMIT_MILLISECONDS
        exact = not self.found.lost and not self.found.twice
        return acknowledged and drained and fast and exact and self.purged.seconds is not None


def acknowledgement(seconds: float, port_base: int, say: Say) -> bool:
    """Measure on a stack of its own and print tables. True when every promise was kept.

    Raises StackError when the stack does not start, NotInstalledError and ImportFailedError.
    """
    print(f"{EVENTS_PER_SECOND} signed events a second for {seconds:.0f} s\n{machine()}\n")
    app = AppIdentity()
    with tempfile.TemporaryDirectory(prefix="recall-bench-") as folder:
        home = Path(folder, "home")
        slack_port = port_base + SLACK_PORT_OFFSET
        environ = environment_of(os.environ, home, port_base)
        environ |= slack_environment(f"http://127.0.0.1:{slack_port}/api/", app, port_base)
        environ |= {"RECALL_SLACK_HISTORY_INTERVAL_SECONDS": HISTORY_INTERVAL_SECONDS}
        stack = Stack(home, environ)
        with slack_beside(slack_port, environ) as slack:
            try:
                stack.up(say)
                fill_purged(environ, Path(folder), say)
                run = asyncio.run(_measure(stack, slack, app, seconds, say))
            finally:
                stack.down(say)
    _print(run)
    return run.is_right


@contextmanager
def slack_beside(port: int, environ: Mapping[str, str]) -> Iterator[RemoteControl]:
    """A Slack for tests as a process of its own."""
    command = (sys.executable, "-m", "tests.fakes.slack_server", "--port", str(port))
    with subprocess.Popen(
        (*command, "--team", "Load"), env=dict(environ), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        # It prints its settings once it serves.
        process.stdout.readline()
        control = RemoteControl(f"http://127.0.0.1:{port}")
        try:
            yield control
        finally:
            control.close()
            process.terminate()


async def _measure(
    stack: Stack, slack: RemoteControl, app: AppIdentity, seconds: float, say: Say
) -> Run:
    gateway = f"http://127.0.0.1:{stack.port('gateway_http')}"
    workplace = workplace_in(slack)
    await install(gateway, workplace.team_id)
    archive_id, archived = fill_archive(slack)
    load = events(workplace, WARM_UP_EVENTS + int(seconds * EVENTS_PER_SECOND), int(time.time()))
    sender = Sender(f"{gateway}/slack/events", Signer(app.signing_secret), workplace.team_id)
    # The first calls of every process open its connections.
    await sender.send(load[:WARM_UP_EVENTS], per_second=10)
    load = load[WARM_UP_EVENTS:]
    say(f"sending {len(load)} events; asking, purging and reading history beside")
    over = asyncio.Event()
    asking = asyncio.create_task(ask_until(over, stack, workplace.team_id))
    purging = asyncio.create_task(purge(stack, seconds / 4))
    await install(gateway, archive_id)
    seen = await sender.send(load, EVENTS_PER_SECOND)
    over.set()
    asked, purged = await asking, await purging
    url = EmbeddedPostgres(stack.home / "postgres", stack.port("postgres")).url()
    say("waiting for the queue to drain")
    drained = await _drained(url)
    found = effects(url, workplace.team_id, load, seen.acknowledged)
    archive = (archive_messages(url, archive_id), archived)
    return Run(load, seen, asked, purged, drained, found, archive)


def workplace_in(slack: RemoteControl) -> Workplace:
    """Channels and people of the first team."""
    team_id = slack.call("directory")["team"]["id"]
    people = [slack.call("add_user", name=f"Person {n}")["user_id"] for n in range(PEOPLE)]
    channels = [
        slack.call("add_channel", name=f"load-{n}", members=people)["channel_id"]
        for n in range(CHANNELS)
    ]
    return Workplace(team_id, channels, people)


async def _drained(url: str) -> Drained:
    begin = time.monotonic()
    events_seconds = None
    while True:
        left = await asyncio.to_thread(unfinished, url)
        waited = time.monotonic() - begin
        if events_seconds is None and "event" not in left.waiting:
            events_seconds = waited
        if not left.waiting:
            return Drained(events_seconds, waited, left)
        if waited > DRAIN_SECONDS:
            return Drained(events_seconds, None, left)
        await asyncio.sleep(0.5)


def _print(run: Run) -> None:
    seen, found = run.seen, run.found
    header = ("", "p50 ms", "p95", "p99", "worst")
    rows = [
        ("ack", *_shares(seen.milliseconds)),
        ("sent late", *_shares(seen.late_milliseconds)),
        (f"question ({len(run.asked.milliseconds)} asked)", *_shares(run.asked.milliseconds)),
    ]
    print("\n".join(table(header, rows)))
    refused = ", ".join(f"{count}× {cause}" for cause, count in seen.refused.items()) or "none"
    left = run.drained.left
    lines = {
        "acknowledged": f"{len(seen.acknowledged)} of {len(run.load)} events in "
        f"{seen.deliveries} deliveries, {seen.seconds:.1f} s",
        "attempts refused": refused,
        "lost": _listed(found.lost),
        "processed twice": _listed(found.twice),
        "ran again": str(found.ran_again),
        "events in the rows": _after(run.drained.events_seconds, left),
        "queue drained": _after(run.drained.all_seconds, left),
        "dead jobs": str(left.dead),
        "questions failed": _listed(run.asked.failed),
        "purge": run.purged.described(),
        "history read": f"{run.archive[0]} of {run.archive[1]} messages",
    }
    print()
    print("\n".join(f"{name:<19} {value}" for name, value in lines.items()))
    print(f"\n{EXPLANATION}")


def _after(seconds: float | None, left: Unfinished) -> str:
    if seconds is not None:
        return f"{seconds:.1f} s after the last was sent"
    return "never: " + ", ".join(f"{count} {kind}" for kind, count in left.waiting.items())


def _listed(ids: Sequence[str]) -> str:
    return f"{len(ids)} {', '.join(ids[:5])}".rstrip()


def _shares(values: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{share(values, wanted):.1f}" for wanted in (0.5, 0.95, 0.99, 1.0))


def share(values: Sequence[float], wanted: float) -> float:
    """The value that this share of the values does not exceed; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * wanted))] if values else 0.0
