"""Who wrote a Slack record, in each of the shapes in which records tell it."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.blocks import Json, string
from services.ingest.directory import Directory
from services.ingest.identifiers import storable_id
from services.ingest.markup import one_line, plain, storable


@dataclass(frozen=True)
class Author:
    """The author of one record; fields are empty where the record and the directory are silent."""

    author_id: str
    name: str
    team_id: str
    is_bot: bool


def author_of(record: Json, directory: Directory) -> Author:
    """The author by ``user``, else the comment's user, else the bot, else the posted name.

    A person's name is the directory's, else the record's profile. A bot may post under a name of
    its own choice: that comes before the directory's.
    """
    person_id, user = _person(record)
    bot = child(record, "bot_profile")
    bot_id = string(record.get("bot_id")) or string(bot.get("id"))
    posted_name = plain(string(record.get("username")), directory).strip().removeprefix("@")
    author_id = storable_id(person_id or bot_id or posted_name)
    is_bot = _is_bot(record, author_id, bot_id, directory)
    own_name = posted_name or _profile_name(user) or string(bot.get("name"))
    known_name = directory.person_name(author_id)
    name = (posted_name or known_name or own_name) if is_bot else (known_name or own_name)
    team_id = string(record.get("user_team")) or string(user.get("team"))
    return Author(author_id, one_line(name), _clean(team_id), is_bot)


def child(record: Json, key: str) -> Json:
    """The object under a key; an empty one for anything else."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _person(record: Json) -> tuple[str, Json]:
    """Id and profile of the person; ``user`` is an id, in some tools' exports an object."""
    user = child(record, "user")
    profile = child(record, "user_profile") or child(user, "profile") or user
    person_id = (
        string(record.get("user"))
        or string(user.get("id"))
        or string(child(record, "comment").get("user"))
    )
    return person_id.strip(), profile


def _profile_name(profile: Json) -> str:
    names = (string(profile.get(key)).strip() for key in ("display_name", "real_name", "name"))
    return next((name for name in names if name), "")


def _is_bot(record: Json, author_id: str, bot_id: str, directory: Directory) -> bool:
    if record.get("subtype") in ("bot_message", "slackbot_response") or author_id == "USLACKBOT":
        return True
    known = directory.people.get(author_id)
    # An app that posts in a person's name leaves its bot id on that person's message.
    return known.is_bot if known is not None else bool(bot_id)


def _clean(text: str) -> str:
    return storable(text).strip()
