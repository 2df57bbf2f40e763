"""The checks of the interleavings notice a Recall that loses something without a word."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from services.ingest.chunking import Encoder
from tests.property.interleaving import make_script
from tests.property.running import STEPS_AN_INTERLEAVING, failure_of, quiet
from tests.property.system import opened

# Far more than any of these losses needs to be seen.
MOST_INTERLEAVINGS = 5

LOSSES = {
    "a deletion leaves no tombstone": "BEFORE INSERT ON tombstones",
    "an edit is not stored": "BEFORE UPDATE ON messages",
    "a deleted message stays stored": "BEFORE DELETE ON messages",
    "an event is not recorded": "BEFORE INSERT ON jobs",
}


@pytest.fixture(params=list(LOSSES.values()), ids=list(LOSSES))
def losing_database_url(request: pytest.FixtureRequest, database_url: str) -> Iterator[str]:
    """A database that silently leaves out one kind of write."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
        connection.execute(
            f"CREATE TRIGGER lose {request.param} FOR EACH ROW "
            "WHEN (current_user = 'recall_ingest') EXECUTE FUNCTION lose()"
        )
        try:
            yield database_url
        finally:
            connection.execute("DROP FUNCTION lose CASCADE")


async def test_a_silent_loss_is_noticed(losing_database_url: str, encoder: Encoder) -> None:
    quiet()
    for seed in range(MOST_INTERLEAVINGS):
        script = make_script(Random(seed), STEPS_AN_INTERLEAVING)
        async with opened(losing_database_url, encoder) as system:
            failure = await failure_of(system, script)
        if failure is not None:
            assert isinstance(failure, AssertionError)
            return
    raise AssertionError("no check noticed")
