"""What was said while no gateway ran."""

from __future__ import annotations

from services.gateway.slack.gap import PACE_SECONDS, RETRY_SECONDS, filling_the_gap
from services.runtime.callers import Callers
from tests.scripted_slack import SlackScript
from tests.scripted_stages import ScriptedRetrieve, served
from tests.waiting import until


async def test_it_is_read_from_history_workspace_by_workspace_once_ingest_answers(
    callers: Callers,
) -> None:
    script = SlackScript(ScriptedRetrieve([]))
    ingest = script.slack
    ingest.teams |= {"T1": "W1", "T2": "W2"}
    # An archive without a Slack team has no history.
    ingest.workspaces |= {"W1": [], "W2": [], "archive": []}
    ingest.is_unlisted = True
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        ingest.is_unlisted = False

    async with served(script, callers) as stages, filling_the_gap(stages, wait):
        await until(lambda: len(waited) == 3)
    assert ingest.backfills == ["W1", "W2"]
    assert waited == [RETRY_SECONDS, PACE_SECONDS, PACE_SECONDS]
