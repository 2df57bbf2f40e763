"""Random interleavings of everything that happens to a Slack workspace; each step is checked.

Nothing deleted or unreadable is ever returned, nothing visible is missing once the queue is empty,
every job took effect once. `make soak` runs as many more from seeds that nobody has tried.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from services.ingest.chunking import Encoder
from tests.property.running import STEPS_AN_INTERLEAVING, quiet, run_interleavings
from tests.property.system import opened

# Together 10,000 steps. Of the last two one showed that a channel's purge took along what was
# posted after it had been asked for, the other a fault of the account itself.
SEEDS = (*range(1, 39), 9261, 413_349_177_830)


def test_every_interleaving_shows_what_slack_shows(database_url: str, encoder: Encoder) -> None:
    tally: Counter[str] = Counter()
    quiet()
    asyncio.run(_run(database_url, encoder, tally))
    assert tally["steps"] == len(SEEDS) * STEPS_AN_INTERLEAVING
    assert min(tally[f"{kind} job"] for kind in ("event", "purge", "backfill", "embedding")) > 0
    assert min(tally[f"job {end}"] for end in ("cancelled", "failed", "killed", "two_holders")) > 0


async def _run(database_url: str, encoder: Encoder, tally: Counter[str]) -> None:
    for seed in SEEDS:
        async with opened(database_url, encoder) as system:
            await run_interleavings(system, STEPS_AN_INTERLEAVING, seed, tally)
