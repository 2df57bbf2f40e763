"""What must hold once everything has come to rest. Every finding is one line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recall.ingest.v1 import slack_pb2
from services.corpus import slack_message_id
from services.gateway.slack.events import read_events_body
from services.ingest.slack_event import needs_work
from tests.fakes.slack_server import Delivery
from tests.faults.load import Asked
from tests.faults.rows import JobRow, Rows

_VISIBLE = ("delivered", "suppressed")


@dataclass
class Answers:
    """How the questions ended, and the doubts and dead letters with their reasons."""

    ended: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def lost_events(deliveries: Iterable[Delivery], rows: Rows) -> list[str]:
    """Acknowledged events that need work and have no job that was done."""
    jobs = {(job.kind, job.dedup_key): job for job in rows.jobs}
    lost = []
    for delivery in deliveries:
        kind = _kind_of_job(delivery)
        job = jobs.get((kind, delivery.event_id))
        if delivery.state != "acknowledged" or not kind:
            continue
        if job is None:
            lost.append(f"{delivery.event_id} was acknowledged and has no job")
        elif kind == "event" and job.state != "done":
            lost.append(f"{delivery.event_id} is {job.state}: {job.last_error}")
    return lost


def _kind_of_job(delivery: Delivery) -> str:
    """The kind of job that a delivery becomes; empty when nothing follows from it."""
    read = read_events_body(json.dumps(delivery.envelope).encode())
    if isinstance(read, slack_pb2.RecordCommandRequest):
        return "command"
    return "event" if needs_work(delivery.envelope["event"]) else ""


def wrong_messages(
    standing: Mapping[tuple[str, str], str], team_id: str, rows: Rows
) -> Iterator[str]:
    """Differences between what stands in Slack and what is stored and indexed."""
    wanted = {slack_message_id(team_id, *key): text for key, text in standing.items()}
    for message_id in sorted(wanted.keys() - rows.messages.keys()):
        yield f"{message_id} stands in Slack and is not stored"
    for message_id in sorted(rows.messages.keys() - wanted.keys()):
        yield f"{message_id} is stored and does not stand in Slack"
    for message_id in sorted(wanted.keys() & rows.messages.keys()):
        stored, text = rows.messages[message_id], wanted[message_id]
        # A mention is stored under the name that is mentioned.
        if stored.text != text and not text.startswith("<@"):
            yield f"{message_id} is stored in another version"
        if stored.chunks != 1:
            yield f"{message_id} has {stored.chunks} chunks of its own"


def remains(gone: Iterable[str], rows: Rows, logs: Iterable[Path]) -> Iterator[str]:
    """Where words of deleted and replaced texts are still to be found."""
    words = sorted(gone)
    places = {f"table {table}": text for table, text in rows.dump.items()}
    places |= {f"log {path.name}": path.read_text("utf-8", "replace") for path in logs}
    for place, text in places.items():
        found = [word for word in words if word in text]
        if found:
            yield f"{place} holds {len(found)} words that are gone, such as {found[0]}"
    for what, count in rows.strays.items():
        if count:
            yield f"{count} {what}"


def answers(asked: Iterable[Asked], seen: Mapping[str, int], rows: Rows) -> Answers:
    """What became of every question."""
    jobs = {job.dedup_key: job for job in rows.jobs if job.kind == "command"}
    found = Answers()
    for question in asked:
        job = jobs.get(question.key)
        times = seen.get(question.person_id, 0)
        name = f"{question.door} {question.key[:24]}"
        if times > 1:
            found.wrong.append(f"{name} was answered {times} times")
        if job is None:
            found.ended["not taken" if not question.accepted else "lost"] += 1
            if question.accepted:
                found.wrong.append(f"{name} was accepted and has no job")
        else:
            _judge(name, job, times, found)
    return found


def _judge(name: str, job: JobRow, times: int, found: Answers) -> None:
    if job.state == "dead" and job.last_error:
        found.ended["dead-lettered"] += 1
        found.reasons[f"dead: {job.last_error}"] += 1
    elif job.state == "done" and job.delivery in _VISIBLE and times == 1:
        found.ended["answered"] += 1
    elif job.state == "done" and job.delivery == "in_doubt" and job.reason:
        found.ended["in doubt, seen" if times else "in doubt, not seen"] += 1
        found.reasons[f"in doubt: {job.reason}"] += 1
    else:
        found.wrong.append(
            f"{name} is {job.state} with delivery {job.delivery or 'none'}, seen {times} times"
        )
