"""One interleaving: acts from a script, each followed by a look at what readers see.

An act is a name and some numbers; what a number means depends on what is there, so that any part
of a script is a script too, and a failing one can be made shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.property.checks import check_drained, check_like_slack, check_surface
from tests.property.driver import EVENT_KINDS, Driver, Mishap
from tests.property.slack_pages import broken, lost_cursor, rate_limited
from tests.property.slack_world import BOT_USER, CHANNELS, PEOPLE, TEAMS, Posted
from tests.property.system import System

MOST_MESSAGES = 40
MISHAPS = tuple(Mishap)
# A run waits some dozens of times; it is stopped at one of the first so many.
MOST_WAITS = 70
NUMBERS = 5

# How often each act comes, in parts.
WEIGHTS = {
    "post": 14, "reply": 16, "edit": 14, "show_a_link": 4, "delete": 9, "rename": 1,
    "come_or_go": 2, "the_app_comes_or_goes": 3, "purge": 1,
    "deliver": 50, "deliver_again": 5, "deliver_and_hang_up": 4,
    "work": 20, "handle_an_event": 30, "work_with_a_mishap": 14, "two_workers_at_once": 4,
    "retry_the_dead": 2, "time_passes": 3,
    "read_again": 2, "restart": 1, "read_history_while_events_come": 4,
    "read_history_in_trouble": 2, "ask": 10, "drain": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Act:
    """One step."""

    name: str
    numbers: tuple[int, ...]


Script = Sequence[Act]


def make_script(random: Random, length: int) -> list[Act]:
    """A script of that many steps."""
    names = random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length)
    return [Act(name, tuple(random.choices(range(1_000), k=NUMBERS))) for name in names]


class Interleaving:
    """Three workspaces of a Slack, the real Recall, and an account of what it must show."""

    def __init__(self, system: System, tally: Counter[str]) -> None:
        self._driver = Driver(system, tally=tally)
        self._tally = tally
        self._surface = 0

    async def run(self, script: Script) -> None:
        """Every act, each step checked; in the end Recall shows what Slack shows."""
        for act in script:
            do: Callable[..., Awaitable[str]] = getattr(self, f"_{act.name}")
            team = await do(*act.numbers)
            self._tally["steps"] += 1
            await self._look(team)
        await self._driver.settle()
        for team in TEAMS:
            await check_drained(self._driver, team)
        check_like_slack(self._driver)

    async def _look(self, team: str) -> None:
        """Whoever reads now sees nothing that they must not: ways to read and rights take turns."""
        self._surface += 1
        channels = CHANNELS if self._surface % 4 else CHANNELS[self._surface % 3 :][:1]
        await check_surface(self._driver, team, channels, self._surface)

    # People. Each act returns the workspace that it touched. -------------------------------------

    async def _post(self, a: int, b: int, c: int, *_: int) -> str:
        team, channel = _place(a, b)
        if self._has_room(team):
            self._driver.world.post(team, channel, PEOPLE[c % 3])
        return team

    async def _reply(self, a: int, b: int, c: int, d: int, e: int) -> str:
        team, channel = _place(a, b)
        root = self._chosen(team, channel, c)
        if root and self._has_room(team):
            broadcast = e % 4 == 0
            self._driver.world.post(team, channel, PEOPLE[d % 3], root, is_broadcast=broadcast)
        return team

    async def _edit(self, a: int, b: int, c: int, d: int, *_: int) -> str:
        team, channel = _place(a, b)
        if message := self._chosen(team, channel, c):
            self._driver.world.edit(team, channel, message, is_blank=d % 12 == 99)
        return team

    async def _show_a_link(self, a: int, b: int, c: int, *_: int) -> str:
        team, channel = _place(a, b)
        if message := self._chosen(team, channel, c):
            self._driver.world.unfurl(team, channel, message)
        return team

    async def _delete(self, a: int, b: int, c: int, d: int, *_: int) -> str:
        team, channel = _place(a, b)
        if message := self._chosen(team, channel, c):
            self._driver.world.delete(team, channel, message, d % 3)
        return team

    async def _rename(self, a: int, b: int, *_: int) -> str:
        team, channel = _place(a, b)
        self._driver.world.rename(team, channel)
        return team

    async def _come_or_go(self, a: int, b: int, c: int, *_: int) -> str:
        team, channel = _place(a, b)
        self._driver.world.come_or_go(team, channel, PEOPLE[c % 3])
        return team

    async def _the_app_comes_or_goes(self, a: int, b: int, c: int, *_: int) -> str:
        """Where it is gone nothing happens: it comes back soon, and stays long."""
        team, channel = _place(a, b)
        if c % 4 == 0 or not self._driver.world.channel(team, channel).has_bot:
            self._driver.world.come_or_go(team, channel, BOT_USER)
        return team

    # Events and jobs ----------------------------------------------------------------------------

    async def _deliver(self, a: int, *_: int) -> str:
        """Mostly in order, some before those that happened earlier."""
        return await self._deliver_one(0 if a % 2 else a // 2 % 7)

    async def _deliver_again(self, a: int, *_: int) -> str:
        return await self._deliver_one(a, again=True)

    async def _deliver_and_hang_up(self, a: int, b: int, *_: int) -> str:
        return await self._deliver_one(a % 5, stop_at=1 + b % 30)

    async def _deliver_one(self, which: int, *, again: bool = False, stop_at: int = 0) -> str:
        told = await self._driver.deliver(which, again=again, stop_at=stop_at)
        if told is None:
            return TEAMS[0]
        # From its acknowledgement on a deletion holds, whichever way one reads.
        if told.event.get("previous_message"):
            await check_surface(self._driver, told.fact.team_id, CHANNELS, 1)
            await check_surface(self._driver, told.fact.team_id, CHANNELS, 3)
        return told.fact.team_id

    async def _work(self, a: int, *_: int) -> str:
        await self._driver.work()
        return TEAMS[a % 3]

    async def _handle_an_event(self, a: int, *_: int) -> str:
        await self._driver.work(EVENT_KINDS)
        return TEAMS[a % 3]

    async def _work_with_a_mishap(self, a: int, b: int, c: int, d: int, *_: int) -> str:
        mishap = MISHAPS[a % len(MISHAPS)]
        step = 1 + b % MOST_WAITS
        if d % 3:
            await self._driver.work(EVENT_KINDS, mishap, step)
        else:
            await self._driver.work(mishap=mishap, step=step)
        return TEAMS[c % 3]

    async def _two_workers_at_once(self, a: int, *_: int) -> str:
        await self._driver.work_together()
        return TEAMS[a % 3]

    async def _retry_the_dead(self, a: int, *_: int) -> str:
        await self._driver.retry_the_dead()
        return TEAMS[a % 3]

    async def _time_passes(self, a: int, *_: int) -> str:
        self._driver.world.tick(90)
        self._driver.system.hurry()
        await self._driver.work()
        return TEAMS[a % 3]

    # History and operators ----------------------------------------------------------------------

    async def _read_again(self, a: int, b: int, *_: int) -> str:
        team, channel = _place(a, b)
        await self._driver.read_again(team, channel)
        return team

    async def _restart(self, a: int, *_: int) -> str:
        await self._driver.restart()
        return TEAMS[a % 3]

    async def _read_history_while_events_come(self, a: int, b: int, *_: int) -> str:
        self._driver.system.hurry()
        await self._driver.read_while_events_come(1 + b % 4)
        return TEAMS[a % 3]

    async def _read_history_in_trouble(self, a: int, b: int, c: int, *_: int) -> str:
        troubles = (rate_limited, broken, lost_cursor)
        self._driver.pages.troubles = [troubles[b % 3]()]
        self._driver.system.hurry()
        await self._driver.work(("backfill",), MISHAPS[c % 4], 1 + c % MOST_WAITS)
        self._driver.pages.troubles = []
        return TEAMS[a % 3]

    async def _purge(self, a: int, b: int, *_: int) -> str:
        team, channel = _place(a, b)
        await self._driver.purge(team, channel)
        return team

    async def _ask(self, a: int, b: int, *_: int) -> str:
        """Of any set of channels, the empty one too."""
        team = TEAMS[a % 3]
        channels = [channel for n, channel in enumerate(CHANNELS) if b >> n & 1]
        await check_surface(self._driver, team, channels, 1)
        return team

    async def _drain(self, a: int, *_: int) -> str:
        await self._driver.drain()
        await check_drained(self._driver, TEAMS[a % 3])
        return TEAMS[a % 3]

    def _has_room(self, team: str) -> bool:
        channels = self._driver.world.teams[team].values()
        return sum(len(channel.alive()) for channel in channels) < MOST_MESSAGES

    def _chosen(self, team: str, channel: str, which: int) -> Posted | None:
        alive = self._driver.world.channel(team, channel).alive()
        return alive[-1 - which % len(alive)] if alive else None


def _place(a: int, b: int) -> tuple[str, str]:
    return TEAMS[a % 3], CHANNELS[b % 3]
