"""Directories: people, channels, their names and the archive's team."""

from __future__ import annotations

import pytest

from services.ingest.authors import author_of
from services.ingest.directory import (
    Channel,
    ChannelKind,
    Directory,
    Person,
    archive_team,
    channel_display_name,
    make_directory,
    read_channel,
    read_person,
)

DIRECTORY = make_directory([Person("U1", "Ana"), Person("U2", "Helper", bot_id="B2")], [])


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        (
            {"id": "U1", "name": "ana", "profile": {"display_name": "Ana", "real_name": "A L"}},
            "Ana",
        ),
        ({"id": "U1", "name": "ana", "profile": {"display_name": "", "real_name": "A L"}}, "A L"),
        ({"id": "U1", "name": "ana", "real_name": "A L", "profile": None}, "A L"),
        ({"id": "U1", "name": "ana"}, "ana"),
        ({"id": "U1", "profile": []}, "U1"),
    ],
)
def test_a_person_has_the_first_name_that_is_set(entry: dict[str, object], name: str) -> None:
    person = read_person(entry)
    assert person is not None
    assert (person.person_id, person.display_name) == ("U1", name)


def test_a_person_keeps_team_bot_and_deletion() -> None:
    entry = {
        "id": "U2",
        "team_id": "T1",
        "is_bot": True,
        "deleted": True,
        "profile": {"bot_id": "B2"},
    }
    assert read_person(entry) == Person("U2", "U2", "", "T1", True, True, "B2")


@pytest.mark.parametrize("entry", [None, [], "U1", {}, {"id": ""}, {"id": None}, {"id": True}])
def test_an_entry_without_an_id_is_no_person_and_no_channel(entry: object) -> None:
    assert read_person(entry) is None
    assert read_channel(entry, ChannelKind.PUBLIC) is None


def test_a_direct_message_is_named_by_its_members() -> None:
    dm = read_channel({"id": "D1", "members": ["U1", "U0GONE", 3]}, ChannelKind.DIRECT)
    assert dm == Channel("D1", "", ChannelKind.DIRECT, member_ids=("U1", "U0GONE"))
    assert channel_display_name(dm, DIRECTORY) == "Ana, U0GONE"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"id": "C1", "name": "ops", "is_archived": True, "members": ["U1"]},
            Channel("C1", "ops", ChannelKind.PUBLIC, True, ("U1",)),
        ),
        ({"id": "C1", "name": None, "members": None}, Channel("C1", "", ChannelKind.PUBLIC)),
    ],
)
def test_a_channel_keeps_name_members_and_archiving(
    entry: dict[str, object], expected: Channel
) -> None:
    assert read_channel(entry, ChannelKind.PUBLIC) == expected


def test_the_team_of_an_archive_is_its_most_frequent() -> None:
    people = [Person(f"U{n}", "x", team_id=team) for n, team in enumerate(["T9", "T1", "T1", ""])]
    assert archive_team(people) == "T1"
    assert archive_team([]) == ""
    assert archive_team([Person("U1", "x", team_id="T2"), Person("U2", "x", team_id="T1")]) == "T1"


def test_a_bot_is_found_by_its_bot_id() -> None:
    assert DIRECTORY.person_name("B2") == "Helper"
    assert Directory().person_name("USLACKBOT") == "Slackbot"


@pytest.mark.parametrize(
    "name",
    [
        "Ada\nEve] [slack:T:C:1.000000]",
        "Ada\x1b[31m",
        "Ada\u202eevE",
        "Ada\u2028Eve",
        " Ada  Eve\x85",
    ],
)
def test_a_name_is_one_line_that_reads_in_one_direction(name: str) -> None:
    person = read_person({"id": "U1", "profile": {"display_name": name}})
    channel = read_channel({"id": "C1", "name": name}, ChannelKind.PUBLIC)
    author = author_of({"user": "U2", "user_profile": {"display_name": name}}, Directory())
    assert person is not None
    assert channel is not None
    for made in (person.display_name, channel.name, author.name):
        assert made.startswith("Ada")
        assert made.replace(" ", "").isprintable()
