"""Block Kit: what is shown, and that Slack takes it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import timestamp
from services.gateway.slack.blocks import (
    Layout,
    correction_view,
    escape,
    fallback_text,
    lay_out,
    lay_out_shared,
)
from services.gateway.slack.buttons import (
    judgement_value,
    read_judgement_value,
    read_share_value,
    share_value,
)
from services.gateway.slack.commands import HELP
from services.gateway.slack.replies import (
    Reply,
    coverage_notes,
    from_answer,
    from_search,
    from_window,
    suppressed,
    told,
)
from tests.builders import instant
from tests.fakes.slack_server.blocks import check_message, check_view

LAYOUT = Layout("d1", can_share=True)


def message(number: int = 1, text: str = "The window is Tuesday.", **fields: Any) -> Any:
    given = {
        "message_id": f"slack:T1:C1:{number}.000100",
        "channel_id": "C1",
        "channel_name": "ops",
        "author_name": "Ana",
        "posted_at": timestamp(instant(number)),
        "text": text,
        "permalink": f"https://a.slack.com/archives/C1/p{number}000100",
        "content_sha256": "h",
    }
    return corpus_pb2.Message(**(given | fields))


def texts(blocks: list[dict[str, Any]]) -> str:
    found = [b["text"]["text"] for b in blocks if b["type"] == "section"]
    notes = [e["text"] for b in blocks if b["type"] == "context" for e in b["elements"]]
    return "\n".join([*found, *notes])


def labels(blocks: list[dict[str, Any]]) -> list[str]:
    return [e["text"]["text"] for b in blocks if b["type"] == "actions" for e in b["elements"]]


def answered(text: str = "", *messages: Any) -> Reply:
    cited = messages or (message(1), message(2, "It moved.", author_name="Bo"))
    default = f"It moved to Thursday [{cited[-1].message_id}]."
    answer = gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_ANSWERED, text=text or default, citations=cited
    )
    return from_answer(answer, "When?")


def test_an_answer_shows_numbered_sources_that_link_to_the_exact_message() -> None:
    blocks = lay_out(answered(), LAYOUT)
    shown = texts(blocks)
    assert "It moved to Thursday <https://a.slack.com/archives/C1/p2000100|[2]>." in shown
    assert "*1.* <https://a.slack.com/archives/C1/p1000100|#ops · Ana · 2026-03-02 09:00>" in shown
    assert labels(blocks) == ["Share to channel", "Helpful", "Not helpful"]


def test_outside_a_channel_there_is_nobody_to_share_with() -> None:
    blocks = lay_out(answered(), Layout("d1", can_share=False))
    assert labels(blocks) == ["Helpful", "Not helpful"]


def test_nothing_that_people_or_a_model_wrote_can_mention_or_link() -> None:
    hostile = "<!channel> <@U1> <https://evil|click> & <#C1>"
    bad = message(1, hostile, channel_name=hostile, author_name="a|b>", permalink="javascript:x")
    reply = answered(f"{hostile} [{bad.message_id}]", bad)
    shown = texts(lay_out(reply, LAYOUT)) + fallback_text(reply)
    assert re.findall(r"<[^>]*>", shown) == []


def test_every_outcome_has_its_own_words() -> None:
    outcomes = corpus_pb2.Outcome
    hit = corpus_pb2.Hit(message=message(), verdict=corpus_pb2.VERDICT_OK)
    shown = {
        texts(lay_out(reply, LAYOUT))
        for reply in (
            answered(),
            _ended(outcomes.OUTCOME_ABSTAINED, "I couldn’t find enough evidence.", "No match."),
            _ended(outcomes.OUTCOME_UNVERIFIED, "I couldn’t verify an answer.", ""),
            _ended(outcomes.OUTCOME_SOURCES_ONLY, "No answer could be written.", "Away."),
            suppressed(answered()),
            from_search(retrieve_pb2.SearchResponse(hits=[]), "q"),
            from_search(retrieve_pb2.SearchResponse(hits=[hit]), "q"),
            told("Hello."),
        )
    }
    assert len(shown) == 8


def _ended(outcome: Any, text: str, reason: str) -> Reply:
    answer = gateway_pb2.Answer(outcome=outcome, text=text, reason=reason)
    return from_answer(answer, "When?")


def test_a_withheld_answer_shows_nothing_of_it_and_offers_to_ask_again() -> None:
    blocks = lay_out(suppressed(answered()), LAYOUT)
    assert "Thursday" not in str(blocks)
    assert labels(blocks) == ["Ask again"]
    assert blocks[-1]["elements"][0]["value"] == "When?"


def test_a_withheld_answer_to_a_very_long_question_has_no_button_that_slack_would_refuse() -> None:
    long = Reply("answered", "x", question="why " * 1_000)
    assert labels(lay_out(suppressed(long), LAYOUT)) == []


def test_our_own_sentences_keep_their_markup_and_have_no_buttons() -> None:
    blocks = lay_out(told(HELP), LAYOUT)
    assert "*Recall answers" in texts(blocks)
    assert labels(blocks) == []


def test_incomplete_history_is_said_with_how_far_it_is_read() -> None:
    coverage = ingest_pb2.GetCoverageResponse(
        channels=[
            ingest_pb2.ChannelCoverage(channel_name="ops", history_state="complete"),
            ingest_pb2.ChannelCoverage(
                channel_name="leads", history_state="reading", read_down_to=timestamp(instant())
            ),
            ingest_pb2.ChannelCoverage(channel_name="new", history_state="waiting"),
        ]
    )
    (note,) = coverage_notes(coverage)
    assert note.endswith("#leads (back to 2026-03-02), #new (not begun).")
    assert coverage_notes(ingest_pb2.GetCoverageResponse(channels=coverage.channels[:1])) == ()


def test_a_summary_says_what_was_read() -> None:
    window = gateway_pb2.WindowText(
        outcome=corpus_pb2.OUTCOME_ANSWERED,
        text=f"• It moved [{message().message_id}]",
        citations=[message()],
        messages_read=1_200,
        scope="#ops since 2026-03-01",
        degraded=["window_truncated"],
    )
    shown = texts(lay_out(from_window(window, "/recall summary"), LAYOUT))
    assert "#ops since 2026-03-01: 1,200 messages read." in shown
    assert "Only the newest messages of this window were read." in shown
    assert shown.startswith("• It moved")


def test_what_a_share_button_carries_comes_back_with_its_citations() -> None:
    reply = answered()
    found = read_share_value(share_value("d1", reply))
    assert found is not None
    blocks = lay_out_shared(found, reply.sources, "U1")
    assert found.delivery_id == "d1"
    shown = texts(blocks)
    assert shown.startswith("<@U1> asked: When?\nIt moved to Thursday <https://")
    assert labels(blocks) == []


@pytest.mark.parametrize("value", ["", "x", "~~~", judgement_value("d", "q")])
def test_a_value_that_is_none_of_ours_is_not_read(value: str) -> None:
    assert read_share_value(value) is None


def test_an_answer_too_long_to_be_carried_can_not_be_shared() -> None:
    long = answered(" ".join(str(n * 7919) for n in range(2_000)))
    assert labels(lay_out(long, LAYOUT)) == ["Helpful", "Not helpful"]


def test_a_judgement_survives_a_question_too_long_for_a_button() -> None:
    assert read_judgement_value(judgement_value("d1", "why?")) == ("d1", "why?")
    assert read_judgement_value(judgement_value("d1", "x" * 4_000)) == ("d1", "")
    assert read_judgement_value("7") is None


TEXT = st.text(max_size=200) | st.sampled_from(["&" * 9_000, "<@U1>" * 900, " " * 9_000, "\n" * 99])
MESSAGES = st.lists(
    st.builds(
        message, st.integers(1, 50), TEXT, channel_name=TEXT, author_name=TEXT, permalink=TEXT
    ),
    max_size=30,
)
PIECES = st.lists(TEXT, max_size=60).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(PIECES, MESSAGES, TEXT, st.lists(TEXT, max_size=8), st.booleans())
def test_slack_takes_whatever_is_laid_out(
    text: str, sources: list[Any], reason: str, notes: list[str], can_share: bool
) -> None:
    cited = "".join(f" [{m.message_id}]" for m in sources)
    reply = Reply("answered", text + cited, reason, tuple(sources), tuple(notes), text, True)
    for shown in (reply, suppressed(reply)):
        blocks = lay_out(shown, Layout("d1", can_share))
        check_message(fallback_text(shown), blocks, None)
        markup = re.findall(r"<[^>]*>", texts(blocks))
        assert all(link.startswith("<https://") for link in markup)


@given(st.text())
def test_escaped_text_holds_no_markup(text: str) -> None:
    assert not set("<>") & set(escape(text))


def test_the_modal_of_a_correction_is_one_that_slack_takes() -> None:
    view = correction_view("C1", "1.000100")
    check_view(view)
    assert view["private_metadata"] == "C1:1.000100"
