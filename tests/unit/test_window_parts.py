"""Decisions of a window that was read in parts, put together."""

from __future__ import annotations

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from services.gateway.window_parts import Written, together


def decided(*decisions: tuple[str, str]) -> Written:
    """Decisions by message id, each with the id of what it replaced."""
    made = [
        answer_pb2.Decision(text=f"Text {name}.", message_id=name, replaces_message_id=replaced)
        for name, replaced in decisions
    ]
    lines = [
        f"- {one.text} [{one.message_id}]"
        + (f" (replaces [{one.replaces_message_id}])" if one.replaces_message_id else "")
        for one in made
    ]
    cited = [name for pair in decisions for name in pair if name]
    text = answer_pb2.WrittenText(
        outcome=corpus_pb2.OUTCOME_ANSWERED, text="\n".join(lines), cited_message_ids=cited
    )
    return Written(text, tuple(made))


def test_every_part_s_decisions_are_kept_though_the_last_writing_missed_some() -> None:
    whole = together([decided(("a", ""), ("b", "")), decided(("c", "b"))], decided(("c", "")))
    assert [one.message_id for one in whole.decisions] == ["a", "b", "c"]
    assert whole.text.text.splitlines() == [
        "- Text a. [a]",
        "- Text b. [b]",
        "- Text c. [c] (replaces [b])",
    ]
    assert list(whole.text.cited_message_ids) == ["a", "b", "c"]


def test_a_decision_that_replaced_one_of_another_part_says_so() -> None:
    whole = together([decided(("a", "")), decided(("c", ""))], decided(("a", ""), ("c", "a")))
    assert [one.replaces_message_id for one in whole.decisions] == ["", "a"]
    assert whole.text.text.splitlines()[1] == "- Text c. [c] (replaces [a])"
    assert list(whole.text.cited_message_ids) == ["a", "c"]


def test_without_a_last_writing_the_parts_stand_as_they_are() -> None:
    whole = together([decided(("a", "")), decided(("c", ""))], None)
    assert [one.message_id for one in whole.decisions] == ["a", "c"]
