"""The job "workspace": lists people and the channels that the app is in, page by page.

What is listed is kept; events keep it true. A listing costs as much as there are people and chosen
channels, however many channels the workspace has. Each page is stored with the place where the
next one begins in the job's own payload, so that a killed listing goes on there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.ingest.backfill_jobs import LISTING, ask_for_reading
from services.ingest.blocks import Json, string
from services.ingest.directory import read_person
from services.ingest.directory_store import save_people
from services.ingest.history_run import Later, Rows, Run
from services.ingest.identifiers import storable_id
from services.ingest.known_channels import read_channel
from services.ingest.known_people import save_person
from services.ingest.listing import PersonRow
from services.ingest.markup import storable
from services.ingest.pacing import CHANNELS, PEOPLE
from services.ingest.purges import read_hold
from services.ingest.refused_listings import after_refusal
from services.ingest.slack_history import Page, Refusal, Remedy
from services.ingest.take_up_channel import save_listed
from services.runtime import db, sql

_EVENTS = sql.load("services.ingest", "events.sql")


@dataclass(frozen=True)
class Place:
    """Where a listing stands: in which list, and after which cursor."""

    method: str = PEOPLE
    cursor: str = ""

    @property
    def payload(self) -> dict[str, str]:
        """As the job carries it."""
        return {**LISTING, **vars(self)}

    def after(self, page: Page) -> Place | None:
        """Where the next page is; None at the end of both lists."""
        if page.next_cursor:
            return Place(self.method, page.next_cursor)
        return Place(CHANNELS) if self.method == PEOPLE else None


def place_of(payload: Mapping[str, Any]) -> Place:
    """Where a job's payload says that its listing stands."""
    return Place(payload.get("method", PEOPLE), payload.get("cursor", ""))


async def list_slack(run: Run, place: Place) -> Later | None:
    """List one page; when to go on, None at the end."""
    if away_seconds := await run.slot(place.method):
        return Later(away_seconds, place.payload)
    if place.method == PEOPLE:
        page = await run.slack.list_people(place.cursor)
    else:
        page = await run.slack.list_channels(place.cursor)
    if isinstance(page, Refusal):
        # A listing whose cursor was lost begins anew.
        begin = Place() if page.remedy is Remedy.RESUME and place.cursor else None
        return Later(0.0, begin.payload) if begin else await _refused(run, place, page)
    async with run.storing() as rows:
        if rows is None:
            return None
        await _store(rows, place, page)
    following = place.after(page)
    return Later(0.0, following.payload) if following else None


async def _refused(run: Run, place: Place, refusal: Refusal) -> Later | None:
    return await after_refusal(run, place.method, refusal, place.payload)


async def _store(rows: Rows, place: Place, page: Page) -> None:
    await rows.slots.admit(place.method)
    if place.method == PEOPLE:
        await _save_people(rows, page.rows)
        return
    await rows.channels.resume_all()
    for entry in page.rows:
        if not await _is_purged(rows, storable_id(string(entry.get("id")))):
            await save_listed(rows, entry)
    await ask_for_reading(rows.connection, rows.channels.workspace_id)


async def _is_purged(rows: Rows, channel_id: str) -> bool:
    """Whether a channel was purged while the app stayed in it: nothing of it is stored again."""
    workspace_id = rows.channels.workspace_id
    held = await read_hold(rows.connection, workspace_id, channel_id)
    return bool(held) and await read_channel(rows.connection, workspace_id, channel_id) is None


async def _save_people(rows: Rows, entries: Iterable[Json]) -> None:
    """Strangers are stored at once; of those who are known, who changed."""
    connection, workspace_id = rows.connection, rows.channels.workspace_id
    people = [row for entry in entries if (row := _person_row(entry))]
    known = await _known(connection, workspace_id, people)
    new = [person for person in people if person.person_id not in known]
    await save_people(connection, workspace_id, new)
    for person in people:
        if known.get(person.person_id, person) != person:
            await save_person(connection, workspace_id, person)


async def _known(
    connection: db.Connection, workspace_id: str, people: Sequence[PersonRow]
) -> dict[str, PersonRow]:
    parameters = {"workspace_id": workspace_id, "ids": [person.person_id for person in people]}
    rows = await db.fetch_all(connection, _EVENTS["mentioned_people"], parameters)
    return {row[0]: PersonRow(*row) for row in rows}


def _person_row(entry: Json) -> PersonRow | None:
    person = read_person(entry)
    if person is None:
        return None
    return PersonRow(
        person_id=person.person_id,
        display_name=person.display_name,
        real_name=person.real_name,
        handle=storable(string(entry.get("name"))).strip(),
        team_id=person.team_id,
        is_bot=person.is_bot,
        is_deactivated=person.is_deleted,
    )
