"""Events of people: joined and left channels, new names, new colleagues."""

from __future__ import annotations

from services.ingest.authors import child
from services.ingest.blocks import string
from services.ingest.channel_events import on_channel_gone
from services.ingest.directory import read_person
from services.ingest.event_turn import Turn
from services.ingest.known_channels import ask_for_history, known_channel
from services.ingest.known_people import save_person
from services.ingest.listing import PersonRow
from services.ingest.live_messages import read_bot
from services.ingest.markup import storable
from services.ingest.membership import Membership, add_member, remove_member
from services.ingest.purges import lift_holds, read_hold
from services.ingest.slack_event import channel_kind_of


async def on_member_joined(turn: Turn) -> None:
    """Somebody joined. The app's own joining asks for the channel's history."""
    connection, workspace_id, channel_id = turn.connection, turn.workspace_id, turn.channel_id
    bot = await read_bot(connection, workspace_id)
    if turn.person_id == bot.user_id:
        await lift_holds(connection, workspace_id, channel_id, turn.ts)
    await known_channel(connection, workspace_id, channel_id, channel_kind_of(turn.event))
    await add_member(connection, Membership(workspace_id, channel_id, turn.person_id, turn.ts))
    held = await read_hold(connection, workspace_id, channel_id)
    if turn.person_id == bot.user_id and not held:
        await ask_for_history(connection, workspace_id, channel_id)


async def on_member_left(turn: Turn) -> None:
    """Somebody left. When it is the app itself, nothing of the channel stays."""
    bot = await read_bot(turn.connection, turn.workspace_id)
    if turn.person_id == bot.user_id:
        await on_channel_gone(turn)
        return
    left = Membership(turn.workspace_id, turn.channel_id, turn.person_id, turn.ts)
    await remove_member(turn.connection, left)


async def on_person(turn: Turn) -> None:
    """A person is new or changed. Without the words the next listing tells their name."""
    person = read_person(turn.event.get("user"))
    if person is None or not turn.has_words:
        return
    row = PersonRow(
        person_id=person.person_id,
        display_name=person.display_name,
        real_name=person.real_name,
        handle=storable(string(child(turn.event, "user").get("name"))).strip(),
        team_id=person.team_id,
        is_bot=person.is_bot,
        is_deactivated=person.is_deleted,
    )
    await save_person(turn.connection, turn.workspace_id, row)
