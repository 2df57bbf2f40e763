"""What people ask in a Slack for tests, answered by a real worker over real gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import grpc
import httpx
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from recall.ingest.v1 import ingest_pb2, slack_pb2
from services.gateway.grpc_service import SERVICE_NAME, RecallService
from services.gateway.slack import commands
from services.gateway.slack.blocks import escape
from services.gateway.slack.run_command import TOO_LATE
from services.gateway.slack.setting_words import HOW_TO_CHANGE
from services.runtime.callers import Callers
from services.runtime.errors import CallError
from services.runtime.server import Servicers
from tests.builders import instant
from tests.conftest import Serve
from tests.scripted_slack import JOB_STATES
from tests.scripted_stages import failing
from tests.slack_desk import Harbour, buttons, harbour, texts, working
from tests.waiting import until

QUESTION = "ask when is the deploy window?"


@pytest.fixture
async def here(callers: Callers) -> AsyncIterator[Harbour]:
    """Harbour with a worker and a message in each channel."""
    async with harbour(callers) as found:
        found.say("engineering", "Tomo", "The deploy window is Tuesday.")
        found.say("leads", "Tomo", "The deploy budget is halved.")
        yield found


async def test_a_slash_command_is_answered_to_the_asker_alone_with_its_source(
    here: Harbour,
) -> None:
    answer = await here.ask("Femi", QUESTION)
    (message, _) = here.script.retrieve.messages
    assert "The deploy window is Tuesday." in texts(answer)
    assert f"<{message.permalink}|[1]>" in texts(answer)
    assert here.answers("Ines") == []
    assert here.ingest.delivery_states() == ["delivered"]
    (delivery,) = here.ingest.deliveries.values()
    assert [ref.message_id for ref in delivery.evidence] == [message.message_id]


async def test_people_are_answered_only_from_the_channels_they_are_in(here: Harbour) -> None:
    await here.ask("Femi", QUESTION)
    await here.ask("Ines", QUESTION)
    engineering, leads = here.channel_id("engineering"), here.channel_id("leads")
    asked = [list(context.channel_ids) for context in here.script.retrieve.contexts]
    assert asked == [[engineering], sorted([engineering, leads])]


async def test_a_private_channel_is_answered_like_one_that_does_not_exist(here: Harbour) -> None:
    hidden = await here.ask("Femi", "ask what is halved? in:#leads")
    unknown = await here.ask("Femi", "ask what is halved? in:#treasure")
    by_id = await here.ask("Femi", f"search budget in:<#{here.channel_id('leads')}|leads>")
    assert texts(hidden).replace("leads", "X") == texts(unknown).replace("treasure", "X")
    assert texts(hidden) == escape(commands.NO_CHANNEL.format(name="leads"))
    assert "no channel called" in texts(by_id)
    assert "halved" not in texts(by_id)


async def test_whoever_left_a_channel_hears_nothing_of_it_at_once(here: Harbour) -> None:
    await here.ask("Ines", QUESTION)
    here.control.leave("leads", "Ines")
    await until(lambda: bool(here.ingest.watchers))
    change = ingest_pb2.WatchMembershipResponse(
        workspace_id=here.team_id, person_id=here.user_id("Ines")
    )
    changes = here.desk.access.changes
    here.ingest.watchers[0].put_nowait(change)
    await until(lambda: here.desk.access.changes > changes)
    await here.ask("Ines", QUESTION)
    assert list(here.script.retrieve.contexts[-1].channel_ids) == [here.channel_id("engineering")]


async def test_a_persons_channels_are_asked_of_slack_once_a_minute_and_at_each_delivery(
    here: Harbour,
) -> None:
    for _ in range(3):
        await here.ask("Femi", QUESTION)
    # The first question asks, and each of the three deliveries asks again.
    assert len(here.control.calls("users.conversations")) == 4


async def test_a_deactivated_person_hears_nothing(here: Harbour) -> None:
    here.control.deactivate_user("Femi")
    await here.control.command("Femi", "engineering", QUESTION)
    await here.answered()
    assert here.script.retrieve.contexts == []
    (delivery,) = here.ingest.deliveries.values()
    assert (delivery.outcome, list(delivery.evidence)) == ("told", [])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "/recall catch-up"),
        ("help", "/recall search 28P01"),
        ("ask", commands.EMPTY),
        ("ask 🎉🎉", commands.NO_WORDS),
        ("ask the plan? after:2030-01-01", "is in the future"),
        ("ask the plan? after:soon", "is not a date"),
        ("correct", "/recall correct"),
        ("settings", "#engineering"),
    ],
)
async def test_the_first_hour_gets_answers_that_help(here: Harbour, text: str, part: str) -> None:
    answer = await here.ask("Femi", text)
    assert part in texts(answer)
    assert buttons(answer) == []


@pytest.mark.parametrize("role", ["is_admin", "is_owner"])
async def test_an_admin_changes_settings_and_is_asked_of_slack_each_time(
    here: Harbour, role: str
) -> None:
    ines = here.control.find_user("Ines")
    setattr(ines, role, True)
    changed = await here.ask("Ines", "settings retention 30 days")
    assert "*Messages are kept for:* 30 days" in texts(changed)
    assert here.ingest.settings.retention_days == 30
    off = await here.ask("Ines", "settings bots off")
    assert "*Messages of bots:* left out" in texts(off)
    refused = await here.ask("Ines", "settings history-page-size 1000")
    assert "must be between 1 and 999" in texts(refused)
    unclear = await here.ask("Ines", "settings retention forever")
    assert texts(unclear) == HOW_TO_CHANGE
    setattr(ines, role, False)
    await here.ask("Ines", "settings retention 10")
    assert here.ingest.settings.retention_days == 30


async def test_nobody_else_changes_settings(here: Harbour) -> None:
    told = await here.ask("Femi", "settings retention 1")
    assert "Only an admin or owner of this workspace can change settings." in texts(told)
    assert here.ingest.settings == slack_pb2.Settings(retention_days=90)
    shown = await here.ask("Femi", "settings")
    assert "*Messages are kept for:* 90 days" in texts(shown)
    assert HOW_TO_CHANGE in texts(shown)


async def test_a_question_of_4000_characters_is_answered(here: Harbour) -> None:
    answer = await here.ask("Femi", "when is the deploy window? " * 148)
    assert "The deploy window is Tuesday." in texts(answer)


@pytest.mark.parametrize("verb", ["catch-up", "summary", "decisions", "search deploy"])
async def test_every_command_cites_what_it_shows(here: Harbour, verb: str) -> None:
    answer = await here.ask("Femi", verb)
    assert "*1.* <https://harbour.slack.com/archives/" in texts(answer)
    assert "halved" not in texts(answer)


async def test_history_that_is_still_being_read_is_said(here: Harbour) -> None:
    async def reading(request: object, context: object) -> ingest_pb2.GetCoverageResponse:
        return ingest_pb2.GetCoverageResponse(
            channels=[
                ingest_pb2.ChannelCoverage(channel_name="engineering", history_state="waiting")
            ]
        )

    here.ingest.coverage = reading
    answer = await here.ask("Femi", QUESTION)
    assert "History is still being read" in texts(answer)


async def test_a_mention_is_answered_to_the_asker_alone_in_its_thread(here: Harbour) -> None:
    bot = here.control.find_installation("").bot_user_id
    root = here.say("engineering", "Tomo", "The zeppelin ships on Friday.")
    root_ts = root.message_id.rsplit(":", 1)[1]
    here.control.post("engineering", "Ines", f"<@{bot}> is that still right?", thread=root_ts)
    await here.answered()
    (answer,) = here.answers("Ines", thread=root_ts)
    assert here.answers("Tomo", thread=root_ts) == []
    (request,) = here.script.answer.requests
    assert request.question == "is that still right? (The zeppelin ships on Friday)"
    assert buttons(answer) == ["share_answer", "helpful", "not_helpful"]


async def test_a_model_rewrites_a_question_from_the_thread_that_the_asker_can_read(
    here: Harbour,
) -> None:
    bot = here.control.find_installation("").bot_user_id
    root = here.say("engineering", "Tomo", "The zeppelin ships on Friday.")
    root_ts = root.message_id.rsplit(":", 1)[1]
    here.say("engineering", "Femi", "Saturday, I heard.", root_ts)
    here.script.answer.rewriting = lambda question: "does the zeppelin still ship in:#leads?"
    here.control.post("engineering", "Ines", f"<@{bot}> is that still right?", thread=root_ts)
    await here.answered()
    (rewrite,) = here.script.answer.rewrites
    assert rewrite.question == "is that still right?"
    assert [one.text for one in rewrite.thread] == [
        "The zeppelin ships on Friday.", "Saturday, I heard."
    ]  # fmt: skip
    # What a model writes narrows nothing: filters are the asker's.
    assert here.script.answer.requests[0].question == "does the zeppelin still ship in #leads?"


async def test_a_self_contained_question_in_a_thread_is_asked_as_it_is(here: Harbour) -> None:
    bot = here.control.find_installation("").bot_user_id
    root = here.say("engineering", "Tomo", "The zeppelin ships on Friday.")
    root_ts = root.message_id.rsplit(":", 1)[1]
    question = "when does Tomo deploy the harbour service?"
    here.control.post("engineering", "Ines", f"<@{bot}> {question}", thread=root_ts)
    await here.answered()
    assert here.script.answer.requests[0].question == question


async def test_a_direct_message_is_answered_in_its_own_thread_after_a_status(
    here: Harbour,
) -> None:
    opened = here.control.direct_channel("Ines")
    asked = here.control.post(opened.channel_id, "Ines", "when is the deploy window?")
    await here.answered()
    (answer,) = here.direct("Ines")
    assert answer["thread_ts"] == asked.ts
    assert buttons(answer) == ["helpful", "not_helpful"]
    (status,) = here.control.statuses()
    assert (status["status"], "ended_at" in status) == ("is looking…", True)


async def test_a_follow_up_in_a_direct_conversation_is_asked_with_what_was_asked_before(
    here: Harbour,
) -> None:
    opened = here.control.direct_channel("Ines")
    asked = here.control.post(opened.channel_id, "Ines", "ask when does the zeppelin ship?")
    await here.answered()
    here.control.post(opened.channel_id, "Ines", "and who decided that?", thread=asked.ts)
    await here.answered()
    # What Recall answered is no context: what it rests on may be gone by now.
    assert here.script.answer.requests[-1].question == (
        "and who decided that? (when does the zeppelin ship)"
    )
    here.script.answer.rewriting = lambda question: "who decided when the zeppelin ships?"
    here.control.post(opened.channel_id, "Ines", "and who paid for it?", thread=asked.ts)
    await here.answered()
    assert [one.text for one in here.script.answer.rewrites[-1].thread] == [
        "when does the zeppelin ship?", "and who decided that?"
    ]  # fmt: skip
    assert here.script.answer.requests[-1].question == "who decided when the zeppelin ships?"
    assert len(here.direct("Ines")) == 3


async def test_without_slack_a_follow_up_is_asked_as_it_is(here: Harbour) -> None:
    opened = here.control.direct_channel("Ines")
    asked = here.control.post(opened.channel_id, "Ines", "when does the zeppelin ship?")
    await here.answered()
    here.control.add_fault("conversations.replies", kind="error", error="internal_error")
    here.control.post(opened.channel_id, "Ines", "and who decided that?", thread=asked.ts)
    await here.answered()
    assert here.script.answer.requests[-1].question == "and who decided that?"


async def test_a_thread_is_summarised_from_a_messages_menu(here: Harbour) -> None:
    root = here.say("engineering", "Tomo", "The zeppelin ships on Friday.")
    root_ts = root.message_id.rsplit(":", 1)[1]
    reply = here.say("engineering", "Femi", "No, on Monday.", thread=root_ts)
    reply_ts = reply.message_id.rsplit(":", 1)[1]
    await here.control.shortcut("Ines", "engineering", reply_ts, "summarise_thread")
    await here.answered()
    (request,) = here.script.answer.requests
    assert [m.text for m in request.messages] == [root.text, reply.text]
    (answer,) = here.answers("Ines", thread=root_ts)
    assert "this thread: 2 messages read." in texts(answer)


async def test_a_message_is_marked_as_corrected_by_a_link_to_a_newer_one(here: Harbour) -> None:
    newer = here.say("engineering", "Tomo", "The deploy window is Thursday.")
    older = here.script.retrieve.messages[0]
    older_ts = older.message_id.rsplit(":", 1)[1]
    await here.control.shortcut("Ines", "engineering", older_ts, "mark_corrected")
    await here.answered()
    (view,) = here.control.views("Ines")
    values = {"newer": {"link": {"type": "plain_text_input", "value": newer.permalink}}}
    await here.control.submit_view("Ines", view.view_id, values)
    await here.answered()
    (stored,) = here.ingest.corrections
    assert (stored.message_id, stored.corrected_by_id) == (older.message_id, newer.message_id)
    assert texts(here.answers("Ines")[-1]) == commands.CORRECTED


async def test_a_correction_needs_two_messages_that_its_author_may_read(here: Harbour) -> None:
    first, secret = here.script.retrieve.messages
    answer = await here.ask("Femi", f"correct {first.permalink} {secret.permalink}")
    same = await here.ask("Femi", f"correct {first.permalink} {first.permalink}")
    backwards = await here.ask("Ines", f"correct {secret.permalink} {first.permalink}")
    assert texts(answer) == commands.NOT_BOTH_READABLE
    assert texts(same) == commands.SAME_MESSAGE
    assert texts(backwards) == commands.NOT_NEWER
    assert here.ingest.corrections == []


async def test_a_modal_that_comes_too_late_is_told(callers: Callers) -> None:
    async with harbour(callers, works=False) as here:
        posted = here.control.post("engineering", "Ines", "It is Tuesday.")
        await here.control.shortcut("Ines", "engineering", posted.ts, "mark_corrected")
        here.control.advance_clock(5)
        async with working(here):
            await here.answered()
        (answer,) = here.answers("Ines")
    assert texts(answer) == TOO_LATE


async def test_a_judgement_is_kept_with_its_question(here: Harbour) -> None:
    answer = await here.ask("Femi", QUESTION)
    await here.control.click("Femi", "engineering", answer["ts"], "not_helpful")
    await here.answered()
    (kept,) = here.ingest.judgements
    assert (kept.is_helpful, kept.question) == (False, QUESTION)
    assert kept.person_id == here.user_id("Femi")
    assert kept.delivery_id == next(iter(here.ingest.deliveries))


async def test_an_outage_of_retrieve_is_waited_for_and_never_finds_nothing(
    here: Harbour,
) -> None:
    error = CallError(
        grpc.StatusCode.UNAVAILABLE, error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE, "Away."
    )
    here.script.retrieve.search_reply = failing(error)
    await here.control.command("Femi", "engineering", QUESTION)
    job = here.ingest.jobs["j1"]
    await until(lambda: len(job.failures) > 1)
    assert here.answers("Femi") == []
    assert job.attempts == 0
    here.script.retrieve.search_reply = None
    await here.answered()
    assert len(here.answers("Femi")) == 1


async def test_after_a_minute_of_outage_the_person_is_told(here: Harbour) -> None:
    error = CallError(
        grpc.StatusCode.UNAVAILABLE, error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE, "Away."
    )
    here.script.retrieve.search_reply = failing(error)
    await here.control.command("Femi", "engineering", QUESTION)
    here.ingest.jobs["j1"].created_at = datetime.now(UTC) - timedelta(minutes=2)
    await here.answered()
    (answer,) = here.answers("Femi")
    assert texts(answer).startswith("I can not answer just now: Away.")


async def test_a_workspace_whose_app_was_removed_is_given_up(here: Harbour) -> None:
    here.ingest.tokens.clear()
    await here.control.command("Femi", "engineering", QUESTION)
    await here.answered()
    assert here.ingest.jobs["j1"].state == JOB_STATES.JOB_STATE_DEAD


async def test_the_same_trigger_twice_is_one_command(here: Harbour) -> None:
    await here.ask("Femi", QUESTION)
    (recorded,) = here.ingest.commands.values()
    again = await here.stages.ingester.RecordCommand(recorded)
    await here.answered()
    assert again.recorded == 2
    assert len(here.answers("Femi")) == 1


async def test_a_token_is_rotated_by_whoever_is_given_the_duty(callers: Callers) -> None:
    async with harbour(callers) as here:
        installation = here.control.find_installation("")
        installation.rotating = True
        installation.refresh_token = "xoxe-1-old"
        here.ingest.tokens[here.team_id].refresh_token = "xoxe-1-old"
        await here.ask("Femi", "help")
        await here.ask("Femi", "help")
        (rotated,) = here.ingest.rotations
        assert rotated.bot_token == installation.access_token
        assert rotated.refresh_token == installation.refresh_token
        assert rotated.token_expires_at.seconds > instant().timestamp()


async def test_one_question_has_the_same_evidence_and_text_at_every_door(
    here: Harbour, serve: Serve
) -> None:
    bot = here.control.find_installation("").bot_user_id
    question = "when is the deploy window in the harbour?"
    here.say("engineering", "Ines", "The deploy window moved to Thursday.")
    told = await here.ask("Femi", f"ask {question}")
    await here.ask("Femi", question)
    here.control.post("engineering", "Femi", f"<@{bot}> {question}")
    opened = here.control.direct_channel("Femi")
    here.control.post(opened.channel_id, "Femi", question)
    await here.answered()
    async with httpx.AsyncClient(base_url=here.url) as client:
        headers = {"accept": "application/json"}
        page = (await client.post("/api/ask", json={"question": question}, headers=headers)).json()
    async with serve(recall_service(here)) as peer:
        stub = gateway_pb2_grpc.RecallServiceStub(peer.channel())
        reader = gateway_pb2.Reader(workspace_id=here.team_id)
        asked = stub.Ask(gateway_pb2.AskRequest(reader=reader, question=question))
        over_grpc = [event async for event in asked][-1].answer
    requests = here.script.answer.requests
    assert len(requests) == 6
    evidence = [[e.message.message_id for e in request.evidence] for request in requests]
    assert len(evidence[0]) == 2
    assert all(found == evidence[0] for found in evidence)
    assert {request.question for request in requests} == {question}
    contexts: list[corpus_pb2.QueryContext] = here.script.retrieve.contexts
    assert all(context == contexts[0] for context in contexts)
    assert page["text"] == over_grpc.text
    mention, typed, slash = (texts(one) for one in reversed(here.answers("Femi")))
    direct = texts(here.direct("Femi")[-1])
    assert slash == texts(told) == typed == mention == direct
    assert slash.startswith(page["text"].split(" [")[0])


def recall_service(here: Harbour) -> Servicers:
    """The front door for callers with an identity, before the same stages."""
    service = RecallService(here.stages, here.desk.directory)
    return Servicers(
        lambda server: gateway_pb2_grpc.add_RecallServiceServicer_to_server(service, server),
        (SERVICE_NAME,),
    )
