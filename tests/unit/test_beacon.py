"""The promises of `evals/beacon/README.md`: what the workspace and its questions contain."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

EVALS = Path(__file__).parents[2] / "evals"
BEACON = EVALS / "beacon"

Record = dict[str, Any]


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUN_LENGTH = 8
WORD = re.compile(r"[\w'-]+")
# 6,500 characters are over 1,500 o200k_base tokens in this chat, at four characters a token.
LONG_THREAD_CHARACTERS = 6_500
FIRST_MOMENT = datetime(2026, 8, 3, tzinfo=UTC)
END = FIRST_MOMENT + timedelta(weeks=8)
TYPES = {
    "identifier",
    "paraphrase",
    "reversal",
    "thread-context",
    "multi-message",
    "person-time",
    "private-denied",
    "unanswerable",
    "near-miss",
    "no-decision",
    "injection",
}
NEVER_ANSWERABLE = {"private-denied", "unanswerable", "near-miss", "no-decision"}
STOP_WORDS = word_set(
    """
    a about above after again against all am an and any are as at be because been before being
    below between both but by can cannot could did do does doing down during each else few for
    from further had has have having he her here hers him his how i if in into is it its itself
    just let me more most my myself no nor not now of off on once only or other our ours out over
    own same she should so some such than that the their theirs them then there these they this
    those through to too under until up us very was we were what when where which while who whom
    why will with would you your yours
    """
)
SPANISH = word_set(
    """
    el la los las un una de que y en es lo se por para con si pero más mi ya del al como hay
    cuando está son su qué vale gracias entonces hoy mañana
    """
)
ENGLISH = word_set(
    """
    the and is of to it that we i for with on as if you at was when nothing what in have this are
    by only
    """
)


def read_lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def messages() -> list[Record]:
    return read_lines(BEACON / "messages.jsonl")


@cache
def questions() -> list[Record]:
    return read_lines(EVALS / "beacon.jsonl")


@cache
def people() -> list[Record]:
    rows: list[Record] = json.loads((BEACON / "people.json").read_text(encoding="utf-8"))
    return rows


@cache
def channels() -> dict[str, Record]:
    rows = json.loads((BEACON / "channels.json").read_text(encoding="utf-8"))
    return {row["name"]: row for row in rows}


@cache
def planted() -> Record:
    content: Record = json.loads((BEACON / "planted.json").read_text(encoding="utf-8"))
    return content


def message_id(message: Record) -> str:
    return f"synthetic:{message['channel']}:{message['id']}"


@cache
def by_id() -> dict[str, Record]:
    return {message_id(message): message for message in messages()}


@cache
def threads() -> dict[tuple[str, str], list[Record]]:
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for message in messages():
        found[message["channel"], message["root"]].append(message)
    return found


def public_channels() -> set[str]:
    return {name for name, channel in channels().items() if not channel["private"]}


def graded(question: Record, grade: int) -> list[str]:
    return [e["message_id"] for e in question["evidence"] if e["grade"] == grade]


def answerable() -> list[Record]:
    return [question for question in questions() if question["answerable"]]


def unanswerable() -> list[Record]:
    return [question for question in questions() if not question["answerable"]]


def of_type(name: str) -> list[Record]:
    return [question for question in questions() if question["type"] == name]


def reader_channels(question: Record) -> set[str]:
    return set(question.get("reader_channels", public_channels()))


def posted_at(message: Record) -> datetime:
    return datetime.strptime(message["posted_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def own_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("> "))


def quoted_lines(text: str) -> list[str]:
    return [line[2:] for line in text.splitlines() if line.startswith("> ")]


def runs(text: str) -> Iterator[tuple[str, ...]]:
    spoken = words(own_lines(text))
    for start in range(len(spoken) - RUN_LENGTH + 1):
        yield tuple(spoken[start : start + RUN_LENGTH])


def stems(word: str) -> set[str]:
    cut = {word.removesuffix(ending) for ending in ("s", "es", "ed", "ing")}
    return {stem for stem in cut if len(stem) >= 3} | {word}


def content_words(text: str) -> set[str]:
    tokens = set(re.findall(r"[a-z0-9]+", text.lower())) - STOP_WORDS
    return {stem for token in tokens if len(token) >= 3 for stem in stems(token)}


def shares_a_content_word(question: Record) -> bool:
    asked = content_words(question["question"])
    evidence = [by_id()[name] for name in graded(question, 2)]
    return any(asked & content_words(f"{m['author']} {m['text']}") for m in evidence)


def mixes_languages(text: str) -> bool:
    spoken = set(words(text))
    return bool(spoken & SPANISH) and bool(spoken & ENGLISH)


def duplicates(values: Iterable[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]


# People and channels


def test_at_least_nine_people_and_a_bot_with_distinct_names() -> None:
    humans = [person for person in people() if not person.get("bot")]
    assert len(humans) >= 9
    assert len(people()) > len(humans)
    assert not duplicates(person["name"] for person in people())
    assert not duplicates(person["id"] for person in people())


def test_seven_channels_two_of_them_private() -> None:
    assert len(channels()) == 7
    assert len(public_channels()) == 5


def test_members_are_people() -> None:
    names = {person["name"] for person in people()}
    assert all(set(channel["members"]) <= names for channel in channels().values())


# Messages


def test_at_least_720_messages_in_time_order_within_eight_weeks() -> None:
    moments = [posted_at(message) for message in messages()]
    assert len(moments) >= 720
    assert moments == sorted(moments)
    assert moments[0] >= FIRST_MOMENT
    assert moments[-1] < END


def test_every_one_of_the_eight_weeks_has_messages() -> None:
    weeks = Counter((posted_at(message) - FIRST_MOMENT).days // 7 for message in messages())
    assert set(weeks) == set(range(8))
    assert min(weeks.values()) >= 60


def test_most_messages_fall_on_weekdays_in_waking_hours() -> None:
    usual = [m for m in messages() if posted_at(m).weekday() < 5 and 5 <= posted_at(m).hour < 19]
    assert len(usual) >= 0.95 * len(messages())


def test_message_ids_are_unique_in_their_channel() -> None:
    assert not duplicates(message_id(message) for message in messages())


def test_roots_are_earlier_messages_of_the_same_channel_and_their_own_roots() -> None:
    for message in messages():
        root = by_id()[f"synthetic:{message['channel']}:{message['root']}"]
        assert root["root"] == root["id"]
        assert root is message or posted_at(root) < posted_at(message)


def test_authors_are_members_of_the_channel_they_write_in() -> None:
    strangers = [
        message_id(message)
        for message in messages()
        if message["author"] not in channels()[message["channel"]]["members"]
    ]
    assert not strangers


def test_every_person_writes() -> None:
    assert {person["name"] for person in people()} == {m["author"] for m in messages()}


def test_at_least_74_threads_have_a_reply() -> None:
    assert sum(len(thread) > 1 for thread in threads().values()) >= 74


def test_at_least_four_threads_are_longer_than_1500_tokens() -> None:
    lengths = [sum(len(m["text"]) for m in thread) for thread in threads().values()]
    assert sum(length >= LONG_THREAD_CHARACTERS for length in lengths) >= 4


def test_about_a_third_of_the_messages_is_noise() -> None:
    noise = planted()["noise"]
    assert not duplicates(noise)
    assert set(noise) <= set(by_id())
    assert 0.30 <= len(noise) / len(messages()) <= 0.40


def test_no_two_messages_share_a_run_of_eight_words_outside_quotes() -> None:
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for message in messages():
        for run in runs(message["text"]):
            owners[run].add(message_id(message))
    assert not {run: ids for run, ids in owners.items() if len(ids) > 1}


def test_quoted_lines_stand_in_an_earlier_message_unless_they_come_from_outside() -> None:
    said = ""
    quotes = 0
    for message in messages():
        if message_id(message) not in planted()["injections"]:
            quoted = quoted_lines(message["text"])
            quotes += len(quoted)
            assert all(line in said for line in quoted), message_id(message)
        said += own_lines(message["text"]) + "\n"
    assert quotes >= 3


def test_one_person_mixes_two_languages_in_most_messages_and_nobody_else_does() -> None:
    shares = {
        person["name"]: [mixes_languages(m["text"]) for m in messages() if m["author"] == name]
        for person in people()
        if (name := person["name"])
    }
    mixers = [name for name, mixed in shares.items() if sum(mixed) > len(mixed) / 2]
    assert mixers == ["Ines"]
    assert all(sum(mixed) <= 0.05 * len(mixed) for name, mixed in shares.items() if name != "Ines")


def test_addresses_and_links_use_reserved_domains_only() -> None:
    text = "\n".join(message["text"] for message in messages())
    hosts = re.findall(r"https?://([^/\s]+)", text) + re.findall(r"\w@(\w[\w.-]*)", text)
    assert all(host.endswith((".example", ".test")) for host in hosts)


# Planted facts


def test_three_public_messages_try_to_instruct_an_assistant() -> None:
    injections = planted()["injections"]
    assert len(set(injections)) == 3
    assert {by_id()[name]["channel"] for name in injections} <= public_channels()


def test_planted_facts_name_existing_messages_and_are_never_current_and_stale_at_once() -> None:
    for fact in planted()["facts"].values():
        assert fact["current"]
        assert set(fact["current"]) | set(fact["stale"]) <= set(by_id())
        assert not set(fact["current"]) & set(fact["stale"])


def test_at_least_five_facts_change_twice() -> None:
    facts = planted()["facts"].values()
    assert sum(len(fact["stale"]) >= 2 for fact in facts) >= 5


def test_planted_facts_agree_with_the_questions() -> None:
    current: dict[str, set[str]] = defaultdict(set)
    stale: dict[str, set[str]] = defaultdict(set)
    for question in questions():
        current[question["fact"]] |= {*graded(question, 2), *question.get("denied", [])}
        stale[question["fact"]] |= set(question["stale"])
    for slug, fact in planted()["facts"].items():
        assert set(fact["current"]) == current[slug] - stale[slug]
        assert set(fact["stale"]) == stale[slug]


def test_the_28p01_failure_and_its_command_stand_in_a_public_thread() -> None:
    (question,) = [
        q for q in questions() if q["question"].startswith("Which command fixed the local 28P01")
    ]
    assert question["question"] == "Which command fixed the local 28P01 Postgres failure?"
    (fix,) = [by_id()[name] for name in graded(question, 2)]
    assert question["answer"] in fix["text"]
    assert fix["root"] != fix["id"]
    assert "28P01" in by_id()[f"synthetic:{fix['channel']}:{fix['root']}"]["text"]


# Questions


def test_at_least_100_answerable_and_68_unanswerable_questions() -> None:
    assert len(answerable()) >= 100
    assert len(unanswerable()) >= 68


def test_question_ids_and_wordings_are_unique() -> None:
    assert not duplicates(question["id"] for question in questions())
    assert not duplicates(question["question"].lower() for question in questions())


@pytest.mark.parametrize("split", ["dev", "test"])
def test_each_split_holds_every_type_and_nearly_half_of_the_questions(split: str) -> None:
    inside = [question for question in questions() if question["split"] == split]
    assert {question["type"] for question in inside} == TYPES
    assert 0.4 <= len(inside) / len(questions()) <= 0.6


def test_all_questions_of_one_fact_are_in_one_split() -> None:
    splits: dict[str, set[str]] = defaultdict(set)
    for question in questions():
        splits[question["fact"]].add(question["split"])
    assert all(len(found) == 1 for found in splits.values())


def test_no_message_states_the_answer_in_both_splits() -> None:
    splits: dict[str, set[str]] = defaultdict(set)
    for question in answerable():
        for name in graded(question, 2):
            splits[name].add(question["split"])
    assert all(len(found) == 1 for found in splits.values())


def test_answerable_questions_have_an_answer_and_evidence_that_states_it() -> None:
    assert all(question["answer"] and graded(question, 2) for question in answerable())


def test_unanswerable_questions_have_neither_answer_nor_evidence() -> None:
    assert not [q for q in unanswerable() if q["answer"] or q["evidence"]]


def test_denied_unanswerable_near_miss_and_undecided_questions_are_never_answerable() -> None:
    assert not [q for q in answerable() if q["type"] in NEVER_ANSWERABLE]


def test_evidence_and_stale_messages_exist_where_the_reader_may_read() -> None:
    for question in questions():
        named = [e["message_id"] for e in question["evidence"]] + question["stale"]
        assert not duplicates(named), question["id"]
        assert {by_id()[name]["channel"] for name in named} <= reader_channels(question)
        assert {e["grade"] for e in question["evidence"]} <= {1, 2}


def test_evidence_is_never_noise() -> None:
    noise = set(planted()["noise"])
    assert not [q["id"] for q in questions() if noise & {e["message_id"] for e in q["evidence"]}]


def test_denied_messages_are_private_and_only_private_denied_questions_have_them() -> None:
    for question in questions():
        denied = question.get("denied", [])
        assert bool(denied) == (question["type"] == "private-denied")
        assert not {by_id()[name]["channel"] for name in denied} & reader_channels(question)


def test_a_few_answerable_questions_need_a_private_channel() -> None:
    inside = [question for question in answerable() if "reader_channels" in question]
    assert len(inside) >= 4
    for question in inside:
        assert set(question["reader_channels"]) <= set(channels())
        assert not {by_id()[n]["channel"] for n in graded(question, 2)} & public_channels()


def test_undecided_questions_name_the_public_discussion() -> None:
    for question in of_type("no-decision"):
        assert len(question["discussed"]) >= 2
        channels_of = {by_id()[name]["channel"] for name in question["discussed"]}
        assert channels_of <= public_channels()


def test_reversals_name_the_outdated_messages_which_are_all_older() -> None:
    for question in of_type("reversal"):
        newest = max(posted_at(by_id()[name]) for name in graded(question, 2))
        assert question["stale"]
        assert all(posted_at(by_id()[name]) < newest for name in question["stale"])


def test_thread_context_answers_stand_in_replies() -> None:
    for question in of_type("thread-context"):
        assert all(by_id()[name]["root"] != by_id()[name]["id"] for name in graded(question, 2))


def test_multi_message_answers_need_at_least_two_messages() -> None:
    assert all(len(graded(question, 2)) >= 2 for question in of_type("multi-message"))


def test_injection_questions_list_the_instructing_message_as_stale() -> None:
    injections = set(planted()["injections"])
    assert all(injections & set(question["stale"]) for question in of_type("injection"))
    assert {n for q in of_type("injection") for n in q["stale"]} == injections


def test_a_third_of_the_answerable_questions_share_no_content_word_with_their_evidence() -> None:
    apart = [question for question in answerable() if not shares_a_content_word(question)]
    assert len(apart) >= len(answerable()) / 3
