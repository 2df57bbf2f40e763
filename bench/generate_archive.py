"""Writes a Slack export of a chosen size: ``python -m bench.generate_archive PATH MEGABYTES``.

The size is that of the JSON inside. Records have the shapes of a recent export: blocks that repeat
the text, profiles, threads, reactions, edits, mentions, links. The same arguments give the same
archive.
"""

from __future__ import annotations

import json
import random
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
CHANNELS = 20
PEOPLE = 300
RECORDS_A_DAY = 400
_SYLLABLES = "ba de fi go ku la me ni po ru sa te vi wo xe za lor min tak sen".split()

Json = dict[str, object]


def write_archive(path: Path, megabytes: int, seed: int = 1) -> int:
    """Write a zip whose day files hold about ``megabytes`` MB. Returns the number of messages."""
    dice = random.Random(seed)
    vocabulary = ["".join(dice.choices(_SYLLABLES, k=dice.randint(1, 4))) for _ in range(8_000)]
    left, messages = megabytes * 1_000_000, 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("users.json", json.dumps([_person(n) for n in range(PEOPLE)]))
        archive.writestr("channels.json", json.dumps([_channel(n) for n in range(CHANNELS)]))
        for day in _days():
            for channel in range(CHANNELS):
                if left <= 0:
                    return messages
                records = list(_records(dice, vocabulary, day))
                content = json.dumps(records, indent=4).encode()
                archive.writestr(f"channel-{channel}/{day:%Y-%m-%d}.json", content)
                left -= len(content)
                messages += len(records)
    return messages


def _days() -> Iterator[datetime]:
    day = FIRST_DAY
    while True:
        yield day
        day += timedelta(days=1)


def _person(number: int) -> Json:
    name = f"Person {number}"
    return {
        "id": f"U{number:08d}",
        "team_id": "T00000001",
        "name": f"person{number}",
        "profile": {"real_name": name, "display_name": name, "email": f"p{number}@example.test"},
    }


def _channel(number: int) -> Json:
    return {
        "id": f"C{number:08d}",
        "name": f"channel-{number}",
        "members": [f"U{person:08d}" for person in range(PEOPLE)],
        "purpose": {"value": "Generated"},
    }


def _records(dice: random.Random, vocabulary: list[str], day: datetime) -> Iterator[Json]:
    second = int(day.timestamp())
    root = ""
    for _ in range(RECORDS_A_DAY):
        second += dice.randint(20, 300)
        ts = f"{second}.{dice.randint(100, 999_999):06d}"
        is_reply = bool(root) and dice.random() < 0.5
        root = root if is_reply else ts
        yield _record(dice, vocabulary, ts, root)


def _record(dice: random.Random, vocabulary: list[str], ts: str, root: str) -> Json:
    person = dice.randrange(PEOPLE)
    words = dice.choices(vocabulary, k=int(dice.lognormvariate(2.8, 0.8)) + 1)
    if dice.random() < 0.2:
        words.insert(0, f"<@U{dice.randrange(PEOPLE):08d}>")
    if dice.random() < 0.1:
        words.append(f"<https://example.test/{dice.choice(vocabulary)}|{dice.choice(vocabulary)}>")
    text = " ".join(words)
    elements = [{"type": "text", "text": " ".join(words)}]
    record: Json = {
        "client_msg_id": f"{dice.getrandbits(128):032x}",
        "type": "message",
        "text": text,
        "user": f"U{person:08d}",
        "ts": ts,
        "thread_ts": root,
        "team": "T00000001",
        "user_profile": {"display_name": f"Person {person}", "team": "T00000001"},
        "blocks": [
            {
                "type": "rich_text",
                "elements": [{"type": "rich_text_section", "elements": elements}],
            }
        ],
    }
    if dice.random() < 0.05:
        record["edited"] = {"user": f"U{person:08d}", "ts": f"{int(ts[:10]) + 60}.000000"}
    if dice.random() < 0.1:
        record["reactions"] = [{"name": "eyes", "users": [f"U{person:08d}"], "count": 1}]
    return record


def main() -> None:
    """Write the archive that the command line names."""
    path, megabytes = Path(sys.argv[1]), int(sys.argv[2])
    print(f"{write_archive(path, megabytes)} messages")


if __name__ == "__main__":
    main()
