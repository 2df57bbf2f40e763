"""Random interleavings of everything that happens to a Slack workspace; each step is checked."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from services.ingest.chunking import Encoder
from tests.property.running import STEPS_AN_INTERLEAVING, quiet, run_interleavings
from tests.property.system import opened

# Together 10,000 steps: nothing deleted or unreadable is ever returned, nothing visible is missing
# once the queue is empty, every job took effect once.
INTERLEAVINGS = 40


def test_every_interleaving_shows_what_slack_shows(database_url: str, encoder: Encoder) -> None:
    tally: Counter[str] = Counter()
    quiet()

    # The same seeds in every run; each run makes a failing script short by itself.
    @settings(
        max_examples=INTERLEAVINGS,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**63))
    def interleave(seed: int) -> None:
        asyncio.run(_run(database_url, encoder, seed, tally))

    interleave()
    assert tally["steps"] >= INTERLEAVINGS * STEPS_AN_INTERLEAVING
    assert min(tally[f"{kind} job"] for kind in ("event", "purge", "backfill", "embedding")) > 0
    assert min(tally[f"job {end}"] for end in ("cancelled", "failed", "killed", "two_holders")) > 0


async def _run(database_url: str, encoder: Encoder, seed: int, tally: Counter[str]) -> None:
    async with opened(database_url, encoder) as system:
        await run_interleavings(system, STEPS_AN_INTERLEAVING, seed, tally)
