"""Kills processes without warning and starts them again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from services.stack.processes import Processes
from tests.faults.stage import Say, Stage

POSTGRES = "postgres"
TARGETS = ("ingest", "ingest-worker", "gateway", "gateway-worker", "retrieve", POSTGRES)
# Between a start that is complete and the next kill.
LONGEST_CALM_SECONDS = 2.0
TWO_AT_ONCE = 0.2
POLL_SECONDS = 0.01


@dataclass
class Killer:
    """``kills`` by process; ``ended`` are processes that ended although nobody killed them."""

    stage: Stage
    random: Random
    say: Say
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TARGETS, 0))
    ended: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Kills so far."""
        return sum(self.kills.values())

    async def kill(self, wanted: int) -> None:
        """Kill so many times; whatever was killed is started again at once."""
        while self.count < wanted:
            await asyncio.sleep(self.random.uniform(0, LONGEST_CALM_SECONDS))
            at_once = 2 if self.random.random() < TWO_AT_ONCE else 1
            victims = self._next(min(at_once, wanted - self.count))
            self._note_ended(())
            for name in victims:
                self._kill(name)
            self._note_ended(victims)
            self.say(f"{self.count} of {wanted}: {', '.join(victims)}")
            await self.stage.up(_silent)

    def _next(self, number: int) -> list[str]:
        """The next of a random order that comes to everybody before anybody's second turn."""
        if len(self.order) < number:
            self.order = self.random.sample(TARGETS, len(TARGETS))
        return [self.order.pop() for _ in range(number)]

    def _kill(self, name: str) -> None:
        pid = self._pid(name)
        if pid is None:
            return
        os.kill(pid, signal.SIGKILL)
        self.kills[name] += 1
        # Its ports are free once its last thread is gone.
        if name == POSTGRES:
            while self._pid(name) is not None:
                time.sleep(POLL_SECONDS)
        else:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def _pid(self, name: str) -> int | None:
        if name == POSTGRES:
            return self.stage.postgres.running_pid()
        return Processes(self.stage.stack.home).running().get(name)

    def _note_ended(self, killed: Sequence[str]) -> None:
        gone = set(TARGETS) - set(self.stage.stack.running()) - set(killed)
        self.ended += sorted(gone)


def _silent(line: str) -> None:
    """What is started again says nothing."""
