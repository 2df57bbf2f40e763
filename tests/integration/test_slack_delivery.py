"""One visible answer a command, checked at the last moment, whatever dies on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import jobs_pb2
from services.gateway.checking import SUPPRESSED_TEXT
from services.gateway.slack import sharing
from services.gateway.worker import command_loop
from services.runtime.callers import Callers
from tests.scripted_slack import JOB_STATES
from tests.scripted_stages import channel
from tests.slack_desk import PRIVATE, Harbour, buttons, harbour, texts, working
from tests.waiting import until

QUESTION = "ask when is the deploy window?"


@pytest.fixture
async def here(callers: Callers) -> AsyncIterator[Harbour]:
    """Harbour with a worker and one message."""
    async with harbour(callers) as found:
        found.say("engineering", "Tomo", "The deploy window is Tuesday.")
        yield found


@pytest.fixture
async def idle(callers: Callers) -> AsyncIterator[Harbour]:
    """Harbour with one message and no worker yet."""
    async with harbour(callers, works=False) as found:
        found.say("engineering", "Tomo", "The deploy window is Tuesday.")
        yield found


Moment = Callable[[Harbour], None]


def leaves(here: Harbour) -> None:
    """Ines leaves before the delivery's own look at her channels."""
    here.control.before_call(
        "users.conversations", "leave", {"channel": "engineering", "user": "Ines"}, on_call=2
    )


# The pipeline's own last look is the first read, the delivery's the second.
DELIVERYS_READ = 2


def edited(here: Harbour) -> None:
    """Its only source is edited right before the delivery's look at it."""

    def change() -> None:
        here.script.retrieve.messages[0].content_sha256 = "other"

    here.script.retrieve.before_read[DELIVERYS_READ] = change


def deleted(here: Harbour) -> None:
    """Its only source is deleted right before the delivery's look at it."""
    deleted_id = here.script.retrieve.messages[0].message_id
    here.script.retrieve.before_read[DELIVERYS_READ] = lambda: here.script.retrieve.deleted.add(
        deleted_id
    )


@pytest.mark.parametrize("moment", [leaves, edited, deleted])
@pytest.mark.parametrize("text", [QUESTION, "catch-up", "summary", "decisions"])
async def test_an_answer_whose_evidence_changed_on_the_way_is_withheld(
    idle: Harbour, moment: Moment, text: str
) -> None:
    await idle.control.command("Ines", "engineering", text)
    moment(idle)
    async with working(idle):
        await idle.answered()
    idle.control.join("engineering", "Ines")
    shown = [m for m in idle.control.visible("Ines", "engineering") if m.get("is_ephemeral")]
    assert all("Tuesday" not in str(message) for message in shown)
    assert texts(shown[-1]) == SUPPRESSED_TEXT
    assert idle.ingest.delivery_states() == ["suppressed"]


async def test_a_withheld_search_shows_nothing_either(idle: Harbour) -> None:
    leaves(idle)
    await idle.control.command("Ines", "engineering", "search deploy")
    async with working(idle):
        await idle.answered()
    assert idle.ingest.delivery_states() == ["suppressed"]


async def test_what_was_withheld_can_be_asked_again_with_one_button(idle: Harbour) -> None:
    edited(idle)
    await idle.control.command("Ines", "engineering", QUESTION)
    async with working(idle):
        await idle.answered()
        (withheld,) = idle.answers("Ines")
        assert buttons(withheld) == ["ask_again"]
        await idle.control.click("Ines", "engineering", withheld["ts"], "ask_again")
        await idle.answered()
    assert "The deploy window is Tuesday." in texts(idle.answers("Ines")[-1])


@pytest.mark.parametrize("kind", ["error", "http", "reset", "malformed"])
async def test_without_a_fresh_look_at_the_channels_nothing_is_delivered(
    idle: Harbour, kind: Any
) -> None:
    idle.control.add_fault("users.conversations", kind, on_calls=[2], error="internal_error")
    await idle.control.command("Ines", "engineering", QUESTION)
    async with working(idle):
        await idle.answered()
    job = idle.ingest.jobs["j1"]
    assert len(job.failures) == 1
    assert len(idle.answers("Ines")) == 1
    assert idle.ingest.delivery_states() == ["delivered"]


async def _dies_at(here: Harbour, step: str) -> None:
    """A worker that is gone while ingest still has to answer it."""
    here.ingest.hangs_at = step
    task = asyncio.create_task(command_loop(here.desk).work())
    await here.ingest.begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: here.ingest.waiting == 0)
    here.ingest.hangs_at = ""
    here.ingest.abandon("j1")


async def test_a_crash_after_the_record_never_posts_twice_what_only_one_person_sees(
    idle: Harbour,
) -> None:
    await idle.control.command("Ines", "engineering", QUESTION)
    await _dies_at(idle, "finish")
    assert len(idle.answers("Ines")) == 1
    async with working(idle):
        await idle.answered()
    assert len(idle.answers("Ines")) == 1
    assert idle.ingest.delivery_states() == ["in_doubt"]


async def test_a_crash_before_an_ephemeral_post_leaves_it_in_doubt(idle: Harbour) -> None:
    await idle.control.command("Ines", "engineering", QUESTION)
    await _dies_at(idle, "begin")
    async with working(idle):
        await idle.answered()
    assert idle.answers("Ines") == []
    assert idle.ingest.delivery_states() == ["in_doubt"]
    assert idle.ingest.jobs["j1"].state == JOB_STATES.JOB_STATE_DONE


@pytest.mark.parametrize("step", ["begin", "finish"])
async def test_a_crash_around_a_direct_answer_is_resolved_by_looking(
    idle: Harbour, step: str
) -> None:
    opened = idle.control.direct_channel("Ines")
    idle.control.post(opened.channel_id, "Ines", "when is the deploy window?")
    await idle.control.settle()
    await _dies_at(idle, step)
    async with working(idle):
        await idle.answered()
    (answer,) = idle.direct("Ines")
    (delivery,) = idle.ingest.deliveries.values()
    assert idle.ingest.delivery_states() == ["delivered"]
    assert delivery.message_ts == answer["ts"]


async def test_a_post_whose_answer_is_lost_is_found_and_not_posted_again(here: Harbour) -> None:
    here.control.add_fault("chat.postMessage", "reply_lost")
    opened = here.control.direct_channel("Ines")
    here.control.post(opened.channel_id, "Ines", "when is the deploy window?")
    await here.answered()
    assert len(here.direct("Ines")) == 1
    assert here.ingest.delivery_states() == ["delivered"]


async def test_a_post_that_slack_refused_is_tried_again(here: Harbour) -> None:
    here.control.add_fault("chat.postMessage", "error", error="fatal_error")
    opened = here.control.direct_channel("Ines")
    here.control.post(opened.channel_id, "Ines", "when is the deploy window?")
    await here.answered()
    assert len(here.direct("Ines")) == 1
    assert here.ingest.delivery_states() == ["delivered"]
    assert len(here.control.calls("chat.postMessage")) == 2


async def test_slacks_wish_to_wait_is_obeyed(here: Harbour) -> None:
    here.control.add_fault("chat.postMessage", "ratelimited", retry_after=1)
    opened = here.control.direct_channel("Ines")
    here.control.post(opened.channel_id, "Ines", "when is the deploy window?")
    await here.answered()
    first, second = here.control.calls("chat.postMessage")
    assert second.at - first.at >= 1
    assert here.ingest.delivery_states() == ["delivered"]


async def _spent(here: Harbour, user: str = "Ines") -> None:
    """A command whose response_url has given its five answers."""
    ack = await here.control.command(user, "engineering", QUESTION)
    client = await here.desk.installations.client(here.team_id)
    for number in range(5):
        await client.respond(ack.response_url, {"text": f"{number}"})


async def test_a_spent_response_url_falls_back_to_an_ephemeral_post(idle: Harbour) -> None:
    await _spent(idle)
    async with working(idle):
        await idle.answered()
    assert "Tuesday" in texts(idle.answers("Ines")[-1])
    assert len(idle.control.calls("chat.postEphemeral")) == 1


async def test_an_expired_response_url_falls_back_too(idle: Harbour) -> None:
    await idle.control.command("Ines", "engineering", QUESTION)
    idle.control.advance_clock(1_801)
    async with working(idle):
        await idle.answered()
    assert "Tuesday" in texts(idle.answers("Ines")[-1])


async def test_where_no_ephemeral_post_is_possible_the_answer_comes_directly(
    idle: Harbour,
) -> None:
    await _spent(idle)
    idle.control.add_fault("chat.postEphemeral", "error", error="user_not_in_channel")
    async with working(idle):
        await idle.answered()
    (answer,) = idle.direct("Ines")
    assert "Tuesday" in texts(answer)
    assert idle.ingest.delivery_states() == ["delivered"]


async def test_a_revoked_token_ends_the_command_with_a_reason(idle: Harbour) -> None:
    await idle.control.command("Ines", "engineering", QUESTION)
    idle.control.add_fault("users.info", "error", error="token_revoked", times=None)
    async with working(idle):
        await idle.answered()
    job = idle.ingest.jobs["j1"]
    assert job.state == JOB_STATES.JOB_STATE_DEAD
    assert job.failures == [jobs_pb2.FAILURE_KIND_PERMANENT]
    assert job.last_error == "Slack refused: token_revoked"


async def test_a_command_that_somebody_else_took_over_is_dropped(idle: Harbour) -> None:
    idle.script.answer.reply = lambda _: asyncio.Event().wait()
    await idle.control.command("Ines", "engineering", QUESTION)
    async with working(idle):
        await idle.script.answer.begun.wait()
        idle.ingest.jobs["j1"].claim_number += 1
        await idle.script.answer.cancelled.wait()
        idle.script.answer.reply = None
        idle.ingest.abandon("j1")
        await idle.answered()
    assert len(idle.answers("Ines")) == 1


async def test_stopping_lets_what_is_in_progress_end(idle: Harbour) -> None:
    gate = asyncio.Event()
    written = idle.script.answer

    async def slowly(request: Any) -> Any:
        await gate.wait()
        message = request.evidence[0].message
        return _quoting(message)

    written.reply = slowly
    loop = command_loop(idle.desk)
    task = asyncio.create_task(loop.work())
    await idle.control.command("Ines", "engineering", QUESTION)
    await written.begun.wait()
    loop.stop()
    await idle.control.command("Ines", "engineering", QUESTION)
    gate.set()
    await task
    states = [job.state for job in idle.ingest.jobs.values()]
    assert states == [JOB_STATES.JOB_STATE_DONE, JOB_STATES.JOB_STATE_READY]


def _quoting(message: corpus_pb2.Message) -> Any:
    return answer_pb2.WrittenText(
        outcome=corpus_pb2.OUTCOME_ANSWERED,
        text=f"{message.text} [{message.message_id}]",
        cited_message_ids=[message.message_id],
    )


async def _shared_by(here: Harbour, user: str = "Ines") -> str:
    """Ask, press "Share to channel"; what the person is told."""
    answer = await here.ask(user, QUESTION)
    await here.control.click(user, "engineering", answer["ts"], "share_answer")
    await here.answered()
    return texts(here.answers(user)[-1])


def _in_channel(here: Harbour) -> list[dict[str, Any]]:
    bot = here.control.find_installation("").bot_user_id
    shown = here.control.visible("Femi", "engineering")
    return [m for m in shown if m["user"] == bot and not m.get("is_ephemeral")]


async def test_an_answer_is_shared_with_its_sources_and_whoever_shares_it(here: Harbour) -> None:
    assert await _shared_by(here) == sharing.SHARED
    (post,) = _in_channel(here)
    (source,) = here.script.retrieve.messages
    assert f"<@{here.user_id('Ines')}> asked: {QUESTION}" in texts(post)
    assert f"The deploy window is Tuesday. <{source.permalink}|[1]>" in texts(post)
    assert here.ingest.delivery_states() == ["delivered", "delivered", "delivered"]


async def test_an_answer_from_a_private_channel_is_shared_nowhere_else(here: Harbour) -> None:
    here.script.retrieve.messages.clear()
    here.say("leads", "Tomo", "The deploy window is Tuesday.")
    assert await _shared_by(here) == sharing.NOT_FOR_ALL
    assert _in_channel(here) == []


async def test_an_answer_from_a_public_channel_may_be_shared_in_another(here: Harbour) -> None:
    bot = here.control.find_installation("").bot_user_id
    here.control.add_channel("random", members=["Ines", bot])
    random_id = here.channel_id("random")
    here.ingest.workspaces[here.team_id].append(channel(random_id, name="random"))
    here.script.retrieve.messages.clear()
    here.say("random", "Ines", "The deploy window is Tuesday.")
    assert await _shared_by(here) == sharing.SHARED
    here.ingest.workspaces[here.team_id][-1].kind = PRIVATE
    assert await _shared_by(here) == sharing.NOT_FOR_ALL


async def test_what_has_changed_since_is_not_shared(here: Harbour) -> None:
    answer = await here.ask("Ines", QUESTION)
    here.script.retrieve.messages[0].content_sha256 = "other"
    await here.control.click("Ines", "engineering", answer["ts"], "share_answer")
    await here.answered()
    assert texts(here.answers("Ines")[-1]) == sharing.CHANGED
    assert _in_channel(here) == []


async def test_a_crash_while_sharing_shares_once(idle: Harbour) -> None:
    async with working(idle):
        answer = await idle.ask("Ines", QUESTION)
    await idle.control.click("Ines", "engineering", answer["ts"], "share_answer")
    idle.control.add_fault("chat.postMessage", "reply_lost")
    async with working(idle):
        await idle.answered()
    assert len(_in_channel(idle)) == 1
    assert texts(idle.answers("Ines")[-1]) == sharing.SHARED


async def test_a_claimed_job_is_never_left_without_an_end(here: Harbour) -> None:
    await asyncio.gather(*(here.control.command("Ines", "engineering", "help") for _ in range(20)))
    await here.answered()
    await until(lambda: len(here.answers("Ines")) == 20)
    assert here.ingest.delivery_states() == ["delivered"] * 20
