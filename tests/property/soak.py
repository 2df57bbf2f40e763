"""``python -m tests.property.soak --steps 200000``: interleavings from random seeds, for long."""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from services.ingest.migrate import migrate, read_migrations
from services.ingest.tokens import load_encoder
from services.stack.postgres import EmbeddedPostgres
from tests.conftest import free_port
from tests.property.running import STEPS_AN_INTERLEAVING, quiet, run_interleavings
from tests.property.system import opened


def main() -> None:
    """Run, and print what happened; an interleaving that fails ends it with a short script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres", free_port(), durable=False)
        url = server.start()
        try:
            migrate(url, read_migrations())
            asyncio.run(_soak(url, Path(folder), given.steps, given.seed))
        finally:
            server.stop()


async def _soak(url: str, folder: Path, steps: int, seed: int) -> None:
    encoder = load_encoder(folder)
    tally: Counter[str] = Counter()
    began = time.monotonic()
    print(f"{steps} steps in interleavings of {STEPS_AN_INTERLEAVING}, seed {seed}", flush=True)
    for done in range(0, steps, STEPS_AN_INTERLEAVING):
        size = min(STEPS_AN_INTERLEAVING, steps - done)
        async with opened(url, encoder) as system:
            await run_interleavings(system, size, seed + done, tally)
    seconds = time.monotonic() - began
    print(f"{tally['steps']} steps, every check held, {seconds:.0f} s")
    for name, count in sorted(tally.items()):
        print(f"  {name:<32} {count}")


if __name__ == "__main__":
    main()
