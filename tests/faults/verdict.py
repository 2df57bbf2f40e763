"""Looks at everything once it has come to rest, and says what was promised and broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.faults import checks
from tests.faults.killer import Killer
from tests.faults.load import Load
from tests.faults.outcome import Outcome
from tests.faults.rows import read_rows
from tests.faults.searcher import Searcher
from tests.faults.seen import answers_by_person, texts_that_stand, words_that_are_gone
from tests.faults.stage import Stage


@dataclass(frozen=True)
class Crew:
    """What worked while things were killed."""

    stage: Stage
    load: Load
    searcher: Searcher


@dataclass(frozen=True)
class Rest:
    """Seconds until the queue was empty, None when it never was, and what is left in it."""

    seconds: float | None
    left: Mapping[str, int]


def verdict(crew: Crew, killer: Killer, rest: Rest) -> Outcome:
    """What happened, and which promises were broken."""
    stage, searcher = crew.stage, crew.searcher
    rows, deliveries = read_rows(stage), stage.control.deliveries()
    standing = texts_that_stand(stage)
    gone = words_that_are_gone(crew.load, standing)
    home = stage.stack.home
    logs = [*home.glob("logs/*.log"), home / "postgres" / "postgres.log"]
    answers = checks.answers(crew.load.asked, answers_by_person(stage), rows)
    return Outcome(
        kills=killer.kills,
        acts=crew.load.acts,
        events=Counter(delivery.state for delivery in deliveries),
        answers=answers,
        searches=searcher.searches,
        outages=searcher.failed,
        messages=len(standing),
        gone=len(gone),
        drained_seconds=rest.seconds,
        findings={
            "every event is acknowledged in the end": [
                delivery.event_id for delivery in deliveries if delivery.state != "acknowledged"
            ],
            "no acknowledged event is lost": checks.lost_events(deliveries, rows),
            "every message is as it stands in Slack": list(
                checks.wrong_messages(standing, stage.team_id, rows)
            ),
            "what is gone is nowhere": list(checks.remains(gone, rows, logs)),
            "what is gone is never shown": searcher.shown_deleted,
            "what stands is found, or an outage is told": searcher.missed,
            "an outage is told as one": searcher.wrong_errors,
            "a question gets one answer, or a reason": answers.wrong,
            "the queue drains": [f"{n} {kind} jobs are left" for kind, n in rest.left.items()],
            "nothing ends by itself": killer.ended,
        },
    )
