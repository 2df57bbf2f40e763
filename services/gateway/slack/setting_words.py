"""What somebody types after "/recall settings" to change something, and how settings read. Pure."""

from __future__ import annotations

from recall.ingest.v1 import slack_pb2

RETENTION, BOTS = "retention", "bots"
INTERVAL, PAGE_SIZE = "history-interval", "history-page-size"
NAMES = (RETENTION, BOTS, INTERVAL, PAGE_SIZE)
DEFAULT = "default"
# A name, a value and its unit.
MOST_WORDS = 3
MOST_DAYS = 36_500

HOW_TO_CHANGE = (
    "To change a setting, an admin of this workspace types one of:\n"
    "• `/recall settings retention 90` – days that messages are kept; older ones are deleted\n"
    "• `/recall settings bots off` – leave out messages of bots; `on` reads them\n"
    "• `/recall settings history-interval 60` – seconds between two pages of history\n"
    "• `/recall settings history-page-size 15` – messages in a page of history, 1 to 999\n"
    "`default` instead of a value goes back to what is usual."
)
ONLY_ADMINS = (
    "Only an admin or owner of this workspace can change settings. Ask one of them to type "
    "`/recall settings {typed}`."
)


def names_a_setting(rest: str) -> bool:
    """Whether words after "settings" are about changing one, and not a question."""
    words = rest.split()
    return len(words) <= MOST_WORDS and bool(words) and words[0].lower() in NAMES


def read_change(rest: str) -> slack_pb2.Settings | None:
    """What is to be changed; None when the value is none that the setting takes.

    Whether a number is in its range is for the settings' keeper to say.
    """
    words = rest.lower().split()
    if len(words) < 2:
        return None
    name, value = words[0], words[1]
    if name == BOTS:
        switched = {"on": True, "off": False, DEFAULT: True}.get(value)
        return None if switched is None else slack_pb2.Settings(index_bots=switched)
    number = 0.0 if value == DEFAULT else _number(value)
    if number is None or (value != DEFAULT and number <= 0):
        return None
    if name == INTERVAL:
        return slack_pb2.Settings(history_interval_seconds=number)
    if number != int(number) or number > MOST_DAYS:
        return None
    if name == RETENTION:
        return slack_pb2.Settings(retention_days=int(number))
    return slack_pb2.Settings(history_page_size=int(number))


def setting_lines(kept: slack_pb2.Settings) -> list[str]:
    """The settings in force, a line each."""
    retention = f"{kept.retention_days} days" if kept.HasField("retention_days") else "no limit"
    bots = kept.index_bots if kept.HasField("index_bots") else True
    lines = [
        f"*Messages are kept for:* {retention}",
        f"*Messages of bots:* {'read' if bots else 'left out'}",
    ]
    if kept.HasField("history_interval_seconds"):
        lines.append(f"*Seconds between two pages of history:* {kept.history_interval_seconds:g}")
    if kept.HasField("history_page_size"):
        lines.append(f"*Messages in a page of history:* {kept.history_page_size}")
    return lines


def _number(value: str) -> float | None:
    is_number = value.isascii() and value.replace(".", "", 1).isdigit() and len(value) <= 9
    return float(value) if is_number else None
