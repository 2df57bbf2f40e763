"""Each stage killed on its own: what is still answered, and that it says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from services.stack.postgres import EmbeddedPostgres
from tests.e2e.conftest import Result, Running

QUESTION = "Which command fixed the local 28P01 Postgres failure?"
RECOVERY_SECONDS = 15.0


@pytest.fixture
def broken(beacon: Running) -> Iterator[Running]:
    """The stack, whole again after the test."""
    yield beacon
    beacon.up()


def ask(running: Running) -> Result:
    return running.recall("ask", QUESTION, "--workspace", "beacon", "--json")


def until(reached: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + RECOVERY_SECONDS
    while time.monotonic() < deadline:
        if reached():
            return True
        time.sleep(0.5)
    return False


def test_without_rerank_the_fused_order_is_kept_and_said(broken: Running) -> None:
    broken.kill("rerank")
    result = ask(broken)
    assert result.status == 0, result.errors
    assert result.json["outcome"] == "answered"
    assert "rerank_unavailable" in result.json["degraded"]


def test_without_answer_the_ranked_sources_are_returned_unverified(broken: Running) -> None:
    broken.kill("answer")
    result = ask(broken)
    assert result.status == 4, result.errors
    assert result.json["outcome"] == "sources_only"
    assert result.json["citations"] == []
    assert result.json["unverified_sources"]
    assert "answer_unavailable" in result.json["degraded"]


def test_without_retrieve_the_call_fails_and_never_says_no_results(broken: Running) -> None:
    broken.kill("retrieve")
    result = ask(broken)
    assert result.status == 1
    assert result.output == ""
    assert result.errors.strip()


def test_a_killed_stage_is_used_again_as_soon_as_it_is_back(broken: Running) -> None:
    broken.kill("retrieve")
    assert ask(broken).status == 1
    broken.up()
    assert until(lambda: ask(broken).status == 0)


def test_everything_recovers_by_itself_after_the_database_was_away(broken: Running) -> None:
    postgres = EmbeddedPostgres(broken.stack.home / "postgres", broken.stack.port("postgres"))
    postgres.stop()
    while_down = ask(broken)
    assert while_down.status == 1
    assert "database" in while_down.errors.lower()
    time.sleep(5)
    postgres.start()
    assert until(lambda: ask(broken).status == 0)
    again = broken.recall("import", "evals/beacon", "--workspace", "beacon", "--json")
    assert again.status == 0, again.errors
    assert again.json["imported"] == again.json["updated"] == 0
