"""Acts on a world, on Recall and on the account of what Recall must show, all three in step."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from services.ingest import queue
from services.ingest.backoff import Failure, NextRun, next_run
from services.ingest.job_loop import failure_of
from services.ingest.jobs import revive
from services.ingest.purge_channel import purge_channel
from services.ingest.queue import KINDS, Job
from services.ingest.reconcile import reconcile_after_restart
from services.ingest.start_backfill import start_backfill
from services.runtime import db
from services.runtime.errors import CallError
from tests.property.adopting import adopt_history
from tests.property.model import Expected
from tests.property.slack_pages import Pages, at_once
from tests.property.slack_world import TEAMS, Tale, Told, World
from tests.property.stopping import End, stopped_at
from tests.property.system import System

EVENT_KINDS = ("purge", "event")
# More than any drain needs: what is claimable for ever is a defect.
MOST_JOBS = 600
# Longer than a page that failed for good rests.
RETRY_SECONDS = 60_000


class Mishap(Enum):
    """What happens to a job beside its own work."""

    NONE = auto()
    CANCELLED = auto()
    FAILED = auto()
    KILLED = auto()
    # Done, but its holder fell silent before it could say so.
    NOT_SAID = auto()
    # A holder that was thought dead works on beside the new one.
    TWO_HOLDERS = auto()
    # Given up, to be retried by a person.
    DEAD = auto()


_ENDS = {
    Mishap.CANCELLED: End.CANCELLED, Mishap.FAILED: End.FAILED, Mishap.KILLED: End.KILLED
}  # fmt: skip


@dataclass
class Driver:
    """One run from empty workspaces on."""

    system: System
    world: World = field(default_factory=World)
    # What happened, for whoever wants to know whether enough did.
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.pages = Pages(self.world)
        self.expected = {team_id: Expected(team_id) for team_id in TEAMS}
        self.told: dict[str, Told] = {}
        self.system.begin(self.world)
        self.handlers = self.system.handlers(self.pages)

    # Deliveries --------------------------------------------------------------------------------

    async def deliver(self, which: int, *, again: bool = False, stop_at: int = 0) -> Told | None:
        """Slack delivers an event that waits, or one that it delivered before."""
        events = self.world.sent if again else self.world.waiting
        if not events:
            return None
        told = events[which % len(events)]
        self.told[told.event_id] = told
        if stop_at and not await stopped_at(self.system.record(told), stop_at, End.CANCELLED):
            self._see_whether_recorded(told)
            return told
        if not stop_at:
            await self.system.record(told)
        self.expected[told.fact.team_id].recorded(told.fact)
        self.tally[f"{told.fact.tale.name.lower()} delivered" + " again" * again] += 1
        if not again:
            self.world.waiting.remove(told)
            self.world.sent.append(told)
        return told

    def _see_whether_recorded(self, told: Told) -> None:
        """Nobody was told, and Slack delivers it again; but all of it is there, or nothing."""
        team_id, fact = told.fact.team_id, told.fact
        expected = self.expected[team_id]
        if self.system.is_recorded(told):
            expected.recorded(fact)
        elif (fact.channel_id, fact.ts) not in expected.deleted:
            assert not self.system.is_buried(team_id, expected.message_id(fact.channel_id, fact.ts))

    # Jobs --------------------------------------------------------------------------------------

    async def work(
        self, kinds: Sequence[str] = KINDS, mishap: Mishap = Mishap.NONE, step: int = 1
    ) -> bool:
        """Claim a job and run it, with a mishap; False when there was none."""
        jobs = await self.system.claim(kinds)
        for job in jobs:
            self.tally[f"{job.kind} job"] += 1
            self.tally[f"job {mishap.name.lower()}"] += 1
            await self._run(job, mishap, step)
        return bool(jobs)

    async def work_together(self) -> None:
        """Two workers at once."""
        jobs = await self.system.claim(("event",), 2)
        await asyncio.gather(*(self.handlers[job.kind](job) for job in jobs))
        for job in jobs:
            self._took_effect(job)
            await self._complete(job)

    async def retry_the_dead(self) -> None:
        """A person has every dead job tried again."""
        for workspace_id, job_id in self.system.dead_jobs():
            async with db.writing(self.system.resources.pool, workspace_id) as connection:
                await revive(connection, workspace_id, job_id)

    async def _run(self, job: Job, mishap: Mishap, step: int) -> None:
        if mishap in _ENDS:
            await self._stop(job, _ENDS[mishap], step)
        elif mishap is Mishap.NOT_SAID and not self.pages.troubles:
            await self._handle(job)
            self._took_effect(job)
            await self._taken_over(job, beside=False)
        elif mishap is Mishap.TWO_HOLDERS and not self.pages.troubles:
            await self._taken_over(job, beside=True)
        elif mishap is Mishap.DEAD and job.kind == "event":
            assert await queue.fail(self._queue, job, NextRun(8, None), "given up") == "dead"
        else:
            await self._run_as_the_worker_does(job)

    async def _run_as_the_worker_does(self, job: Job) -> None:
        try:
            await self._handle(job)
        except CallError as error:
            self._took_effect(job, for_sure=False)
            following = next_run(
                failure_of(error), job.attempts, job.max_attempts, jitter=0.5,
                retry_after_seconds=error.retry_after_seconds,
            )  # fmt: skip
            assert await queue.fail(self._queue, job, following, error.message)
            return
        self._took_effect(job)
        await self._complete(job)

    async def _stop(self, job: Job, end: End, step: int) -> None:
        try:
            done = await stopped_at(self._handle(job), step, end)
        except CallError:
            done = False
        await self.system.at_rest()
        self._took_effect(job, for_sure=done)
        if done:
            await self._complete(job)
        elif end is End.CANCELLED:
            assert await queue.release(self._queue, job)
        elif end is End.FAILED:
            following = next_run(Failure.INFRASTRUCTURE, job.attempts, job.max_attempts, jitter=0.5)
            assert await queue.fail(self._queue, job, following, "stopped") == "ready"
        else:
            self.system.fall_silent(job)

    async def _handle(self, job: Job) -> None:
        await self.handlers[job.kind](job)

    async def _taken_over(self, job: Job, *, beside: bool) -> None:
        """Somebody else holds the job; what the former holder says of it is refused."""
        self.system.fall_silent(job)
        [taken] = await self.system.claim((job.kind,))
        assert (taken.job_id, taken.claim_number) == (job.job_id, job.claim_number + 1)
        before = self.system.message_versions(job.workspace_id)
        holders = [job, taken] if beside else [taken]
        await asyncio.gather(*(self._handle(holder) for holder in holders))
        if not beside and job.kind == "event":
            after = self.system.message_versions(job.workspace_id)
            assert before == after, "a job that was done was done again"
        self._took_effect(taken)
        for refused in (queue.complete, queue.release, queue.heartbeat):
            assert not await refused(self._queue, job), "a lost claim was accepted"
        await self._complete(taken)

    async def _complete(self, job: Job) -> None:
        """A job that was done is over, unless a purge deleted it meanwhile."""
        if not await queue.complete(self._queue, job):
            assert not self.system.is_there(job), "a current claim was refused"

    def _took_effect(self, job: Job, *, for_sure: bool = True) -> None:
        expected = self.expected[job.workspace_id]
        if job.kind == "event":
            told = self.told[job.payload["event_id"]]
            has_words = "envelope" in job.payload
            if for_sure or told.fact.tale not in (Tale.JOINED, Tale.LEFT):
                expected.handled(told.fact, has_words=has_words, for_sure=for_sure)
            else:
                expected.came_or_went(told.fact, *self.system.coming_or_going(told.fact))
        elif job.kind == "purge":
            expected.purged(job.payload["channel_id"], for_sure=for_sure)
        elif job.kind == "backfill":
            adopt_history(expected, self.world, self.pages, self.system.rows)

    @property
    def _queue(self) -> db.Pool:
        return self.system.resources.queue_pool

    # What operators do -------------------------------------------------------------------------

    async def purge(self, team_id: str, channel_id: str) -> None:
        """Everything of a channel that is stored now."""
        newest = self.system.newest_ts(team_id, channel_id)
        try:
            await purge_channel(self.system.resources, team_id, channel_id)
        except CallError:
            return
        channel = self.expected[team_id].channel(channel_id)
        channel.held_ts = max(channel.held_ts, newest)
        told = (each.fact for each in self.told.values() if each.fact.team_id == team_id)
        channel.purged |= {fact.ts for fact in told if fact.channel_id == channel_id}

    async def read_again(self, team_id: str, channel_id: str) -> None:
        """The whole history of a channel."""
        try:
            await start_backfill(self.system.resources, team_id, channel_id)
        except CallError:
            return
        self.expected[team_id].channel(channel_id).held_ts = ""

    async def restart(self) -> None:
        """The worker starts anew, a while later: what is complete is looked at again."""
        self.world.tick(120)
        await reconcile_after_restart(self.system.resources, lambda: self.world.now)

    async def read_while_events_come(self, events: int) -> None:
        """While Slack answers, some events come and are handled."""

        async def meanwhile() -> None:
            for _ in range(events):
                await self.deliver(0)
                await self.work(EVENT_KINDS)

        self.pages.meanwhile = meanwhile
        await self.work(("backfill",))
        self.pages.meanwhile = at_once

    # The end -----------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Run jobs until there is none; what waits for its time has it now."""
        for _ in range(MOST_JOBS):
            # What is hurried looks at this clock, too: a page may rest half a second yet.
            self.world.tick()
            self.system.hurry()
            if not await self.work():
                if not self.system.is_any_waiting():
                    return
                self.world.tick(RETRY_SECONDS)
        raise AssertionError(f"jobs without end: {self.system.open_jobs()}")

    async def settle(self) -> None:
        """Everything arrives, is retried and done, and history is looked at once more."""
        while self.world.waiting:
            await self.deliver(0)
        await self.drain()
        await self.retry_the_dead()
        await self.drain()
        await self.restart()
        await self.drain()
