"""Twenty kills under load: CI's share of ``make faults-kill``."""

from __future__ import annotations

from pathlib import Path

from tests.faults.kill import run

KILLS = 20
SEED = 20_261_130
# Of this test alone, so that other stacks can run beside it.
PORT_BASE = 7930


async def test_whatever_is_killed_nothing_is_lost_doubled_or_left(tmp_path: Path) -> None:
    outcome = await run(tmp_path / "home", PORT_BASE, KILLS, SEED, print)
    print("\n".join(outcome.lines()))
    assert outcome.broken == []
    assert sum(outcome.kills.values()) == KILLS
    assert outcome.answers.ended["answered"] > 0
