"""Runs interleavings on a database from a seed, and makes a failing one short."""

from __future__ import annotations

import logging
import time
from collections import Counter
from random import Random

import structlog

from tests.property.interleaving import Interleaving, Script, make_script
from tests.property.system import System

STEPS_AN_INTERLEAVING = 250
# What making a failing script shorter may take.
SHORTEN_SECONDS = 120.0


class InterleavingError(AssertionError):
    """A check failed; the message holds the shortest script that was found to fail."""


async def run_interleavings(system: System, steps: int, seed: int, tally: Counter[str]) -> None:
    """That many steps, each interleaving from empty workspaces on. Raises InterleavingError."""
    random = Random(seed)
    done = 0
    while done < steps:
        script = make_script(random, min(STEPS_AN_INTERLEAVING, steps - done))
        failure = await failure_of(system, script, tally)
        if failure is not None:
            short, failure = await shortened(system, script, failure)
            raise InterleavingError(as_text(short, seed)) from failure
        done += len(script)


async def failure_of(
    system: System, script: Script, tally: Counter[str] | None = None
) -> Exception | None:
    """What a script fails with, if it does."""
    try:
        await Interleaving(system, Counter() if tally is None else tally).run(script)
    except Exception as failure:
        return failure
    return None


async def shortened(system: System, script: Script, failure: Exception) -> tuple[Script, Exception]:
    """A failing script without the acts that it fails without, as far as the time allows.

    Parts are left out, halves first, single acts last (A. Zeller, R. Hildebrandt: Simplifying and
    Isolating Failure-Inducing Input, TSE 2002). Any failure counts.
    """
    until = time.monotonic() + SHORTEN_SECONDS
    for length in range(10, len(script), 10):
        found = await failure_of(system, script[:length])
        if found is not None:
            script, failure = script[:length], found
            break
    size = len(script) // 2
    while size and time.monotonic() < until:
        start = 0
        while start < len(script) and time.monotonic() < until:
            shorter = [*script[:start], *script[start + size :]]
            found = await failure_of(system, shorter)
            if found is None:
                start += size
            else:
                script, failure = shorter, found
        size //= 2
    return script, failure


def as_text(script: Script, seed: int) -> str:
    """A script as a person repeats it."""
    lines = [f"    Act({act.name!r}, {act.numbers!r})," for act in script]
    return "\n".join((f"seed {seed}; it fails with this script:", "[", *lines, "]"))


def quiet() -> None:
    """Runs that are stopped on purpose fill no log."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for name in ("psycopg", "psycopg.pool"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
