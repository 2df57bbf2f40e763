"""Writes a Slack export of any size as a stream; the same arguments give the same archive.

It is shaped like the exports of today: JSON with rich-text blocks and profiles around short
texts, most of them in a few channels, a quarter of them replies. Words are invented; their
frequencies fall as those of a language do. One day file holds a twentieth of everything and one
message a pasted log of a megabyte, since both exist.
"""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import IO

TEAM = "T0BENCH"
FIRST_DAY = date(2020, 1, 6)
MEGABYTE = 1_000_000

_CHANNELS = 60
_PEOPLE = 2_000
_WORDS = 50_000
_FLOOD_SHARE = 0.05
_LOG_BYTES = MEGABYTE
_DAY_FILE_BYTES = 250_000
_REPLY_SHARE = 0.25
_SYLLABLES = [c + v for c in "bcdfghjklmnprstvwz" for v in ("a", "e", "i", "o", "u", "ai", "or")]


@dataclass(frozen=True)
class Written:
    """What an archive holds."""

    size_bytes: int
    records: int


def write_export(path: Path, megabytes: int, seed: int = 20_260_101) -> Written:
    """Write an export whose day files hold about this many megabytes, uncompressed."""
    writer = _Writer(random.Random(seed))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("users.json", json.dumps(list(writer.people())))
        archive.writestr("channels.json", json.dumps(list(writer.channels())))
        _write_file(archive, writer, 0, FIRST_DAY, int(megabytes * MEGABYTE * _FLOOD_SHARE))
        day = 0
        while writer.written < megabytes * MEGABYTE:
            day += 1
            for channel in range(_CHANNELS):
                # A few channels hold most of what is written.
                size = _DAY_FILE_BYTES // (channel + 1)
                _write_file(archive, writer, channel, FIRST_DAY + timedelta(days=day), size)
                if writer.written >= megabytes * MEGABYTE:
                    break
    return Written(path.stat().st_size, writer.records)


def _write_file(
    archive: zipfile.ZipFile, writer: _Writer, channel: int, day: date, size: int
) -> None:
    with archive.open(f"{_channel_name(channel)}/{day.isoformat()}.json", "w") as stream:
        writer.write_day(stream, day, size)


class _Writer:
    """Invents records and counts what was written."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        self._words = ["".join(random_.choices(_SYLLABLES, k=1 + n % 4)) for n in range(_WORDS)]
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(_WORDS)))
        self.written = 0
        self.records = 0

    def people(self) -> Iterator[dict[str, object]]:
        """users.json."""
        for number in range(_PEOPLE):
            profile = {"real_name": self._name(number), "display_name": self._name(number)}
            yield {"id": _person(number), "team_id": TEAM, "name": f"p{number}", "profile": profile}

    def channels(self) -> Iterator[dict[str, object]]:
        """channels.json."""
        for number in range(_CHANNELS):
            members = [_person(n) for n in range(number, _PEOPLE, 7)]
            yield {"id": f"C{number:08d}", "name": _channel_name(number), "members": members}

    def write_day(self, stream: IO[bytes], day: date, size: int) -> None:
        """An array of about ``size`` bytes of records."""
        begin = self.written
        seconds = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        roots: list[str] = []
        separator = b"["
        while self.written - begin < size:
            ts = f"{int(seconds)}.{self.records % 1_000_000:06d}"
            seconds += 86_000 / (size / 900)
            raw = json.dumps(self._record(ts, roots), ensure_ascii=False).encode()
            stream.write(separator + raw)
            separator = b",\n"
            self.written += len(raw) + 2
            self.records += 1
        stream.write(b"]" if self.written > begin else b"[]")

    def _record(self, ts: str, roots: list[str]) -> dict[str, object]:
        author = min(int(self._random.expovariate(1 / 150)), _PEOPLE - 1)
        text = self._pasted_log() if self.records == 1_000 else self._text()
        record: dict[str, object] = {
            "client_msg_id": f"{self._random.getrandbits(128):032x}",
            "type": "message", "user": _person(author), "text": text, "ts": ts, "team": TEAM,
            "user_team": TEAM, "source_team": TEAM,
            "user_profile": {
                "avatar_hash": f"{author:012x}", "image_72": f"https://ex.test/a/{author}_72.png",
                "real_name": self._name(author), "display_name": self._name(author),
                "team": TEAM, "name": f"p{author}", "is_restricted": False,
            },
            "blocks": [_rich_text(text)],
        }  # fmt: skip
        if roots and self._random.random() < _REPLY_SHARE:
            # Most replies follow a recent root.
            record["thread_ts"] = roots[-1 - min(int(self._random.expovariate(1)), len(roots) - 1)]
        else:
            roots.append(ts)
        return record

    def _text(self) -> str:
        count = min(2 + int(self._random.expovariate(1 / 16)), 400)
        return " ".join(self._pick(count))

    def _pasted_log(self) -> str:
        return " ".join(self._pick(_LOG_BYTES // 6))

    def _pick(self, count: int) -> Sequence[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def _name(self, number: int) -> str:
        return f"{self._words[number].title()} {self._words[number + _PEOPLE].title()}"


def _rich_text(text: str) -> dict[str, object]:
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "block_id": "b1", "elements": [section]}


def _person(number: int) -> str:
    return f"U{number:08d}"


def _channel_name(number: int) -> str:
    return f"channel-{number:02d}"
