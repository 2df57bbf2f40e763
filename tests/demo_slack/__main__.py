"""``python -m tests.demo_slack [--tour]``: what ``make demo-slack`` and its tour run."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from services.runtime.config import ConfigError
from services.stack.stack import StackError
from tests.demo_slack.running import DemoSlack, demo_slack
from tests.demo_slack.tour import MOST_SECONDS, Tour, TourError, warm_up

GUIDE = """
A Slack whose workspace is Beacon runs at {slack}, with Recall installed in it.
Write and ask in it, for example (`curl -s {slack}/control` lists every operation):

  say() {{ curl -s {slack}/control/$1 -d "$2"; echo; }}
  say post '{{"channel": "{channel}", "user": "{user}", "text": "The demo is on Friday."}}'
  say command '{{"channel": "{channel}", "user": "{user}", "text": "ask when is the demo?"}}'
  say visible '{{"channel": "{channel}", "user": "{user}"}}'

Ctrl-C stops everything."""


def main() -> int:
    """Run the demo; a fault is one line on stderr and status 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo_slack")
    parser.add_argument("--tour", action="store_true", help="show each step and stop")
    parser.add_argument(
        "--within",
        type=float,
        default=MOST_SECONDS,
        help="seconds from an event to an answer that rests on it",
    )
    chosen = parser.parse_args()
    try:
        asyncio.run(run(chosen.tour, chosen.within))
    except (StackError, ConfigError, TourError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


async def run(is_tour: bool, within_seconds: float) -> None:
    """The tour, or a demo that stays until it is interrupted."""
    async with demo_slack(say) as demo:
        tour = tour_of(demo, within_seconds)
        if is_tour:
            await warm_up(tour)
            await tour.take()
            say("")
            return
        say(GUIDE.format(slack=demo.slack.base_url, channel=tour.channel, user=tour.asker))
        await _interrupted()


def tour_of(demo: DemoSlack, within_seconds: float) -> Tour:
    """A tour through the first public channel with two people in it."""
    directory = demo.control.directory()
    names = {user["id"]: user["name"] for user in directory["users"] if not user.get("is_bot")}
    real = {user["id"]: user["real_name"] for user in directory["users"] if user["id"] in names}
    for channel in directory["channels"]:
        people = [real[member] for member in channel["members"] if member in real]
        if not channel["is_private"] and len(people) > 1:
            return Tour(demo, say, channel["name"], people[0], people[1], within_seconds)
    raise TourError("Beacon has no public channel with two people.")


async def _interrupted() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def say(line: str) -> None:
    """Print at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
