"""Chunking: nothing lost, nothing over 600 tokens from Slack, ids distinct and stable."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.corpus import Message, Source
from services.ingest.chunking import (
    CHUNKER_VERSION,
    MAX_CHUNK_TOKENS,
    Chunk,
    chunk_thread,
    render,
    split_text,
    thread_windows,
)
from services.ingest.tokens import O200kEncoder

START = datetime(2026, 3, 2, 9, 14, tzinfo=UTC)
ROOT_ID = "slack:T1:C1:1.000000"


def message(number: int, text: str, author: str = "Ana", root_id: str = ROOT_ID) -> Message:
    return Message(
        message_id=f"slack:T1:C1:{number}.000000",
        workspace_id="T1",
        channel_id="C1",
        channel_name="ops",
        author_id=f"U{author}",
        author_name=author,
        posted_at=START + timedelta(minutes=number),
        text=text,
        thread_root_id=root_id,
    )


def words(count: int) -> str:
    """A text of exactly ``count`` tokens after a header."""
    return " ".join(["word"] * count)


def thread_chunks(chunks: list[Chunk]) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk.kind.startswith("thread")]


def numbers(chunk: Chunk) -> list[int]:
    return [int(each.rsplit(":", 1)[1].split(".")[0]) for each in chunk.message_ids]


def slack_texts() -> st.SearchStrategy[str]:
    """Short words mostly; some texts near and over the limit, runs, emoji and other scripts."""
    short = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
    long = st.builds(
        lambda piece, times: piece * times,
        st.sampled_from(
            ["word ", "a", "漢字", "\U0001f9d1\u200d\U0001f680 ", "\n", "^", "e\u0301"]
        ),
        st.integers(50, 2_500),
    )
    return st.one_of(short, short, short, long)


def threads() -> st.SearchStrategy[list[Message]]:
    return st.lists(slack_texts(), min_size=1, max_size=8).map(
        lambda texts: [message(number, text) for number, text in enumerate(texts, start=1)]
    )


def test_a_message_is_rendered_with_channel_minute_and_author() -> None:
    assert render(message(0, "Use make db")) == "[#ops · 2026-03-02 09:14 · Ana] Use make db"


def test_the_rendered_time_is_utc() -> None:
    moved = dataclasses.replace(
        message(0, "hi"), posted_at=START.astimezone(timezone(timedelta(hours=9)))
    )
    assert render(moved).startswith("[#ops · 2026-03-02 09:14 ·")


def test_an_author_whom_nobody_names_is_shown_by_id() -> None:
    nameless = dataclasses.replace(message(0, "hi"), author_name="", author_id="U0GONE")
    assert render(nameless).startswith("[#ops · 2026-03-02 09:14 · U0GONE] ")


def test_each_line_of_a_thread_says_who_wrote_it(encoder: O200kEncoder) -> None:
    thread = [
        message(1, "I can not reproduce", "A"),
        message(2, "I reproduced it on 3.2", "B"),
    ]
    [chunk] = thread_chunks(chunk_thread(thread, Source.SLACK, encoder))
    assert chunk.text == (
        "[#ops · 2026-03-02 09:15 · A] I can not reproduce\n"
        "[#ops · 2026-03-02 09:16 · B] I reproduced it on 3.2"
    )


def test_a_message_alone_makes_no_thread_chunk(encoder: O200kEncoder) -> None:
    [chunk] = chunk_thread([message(1, "hello")], Source.SLACK, encoder)
    assert (chunk.kind, chunk.message_ids) == ("message", (ROOT_ID,))
    assert chunk.token_count == len(encoder.encode(chunk.text))


def test_a_chunk_id_is_the_hash_of_version_kind_and_message_ids(encoder: O200kEncoder) -> None:
    thread = [message(1, "one"), message(2, "two")]
    first, _, whole = chunk_thread(thread, Source.SLACK, encoder)
    second_id = thread[1].message_id
    for chunk, parts in (
        (first, (CHUNKER_VERSION, "message", ROOT_ID)),
        (whole, (CHUNKER_VERSION, "thread", ROOT_ID, second_id)),
    ):
        assert chunk.chunk_id == hashlib.sha256("\n".join(parts).encode()).hexdigest()


def test_the_next_piece_starts_with_the_root_and_the_previous_reply(encoder: O200kEncoder) -> None:
    thread = [message(1, words(50)), *(message(number, words(150)) for number in range(2, 8))]
    chunks = thread_chunks(chunk_thread(thread, Source.SLACK, encoder))
    assert [numbers(chunk) for chunk in chunks] == [[1, 2, 3, 4], [1, 4, 5, 6], [1, 6, 7]]


def test_a_piece_restarts_from_the_root_alone_when_the_previous_reply_does_not_fit(
    encoder: O200kEncoder,
) -> None:
    thread = [message(1, words(50)), message(2, words(400)), message(3, words(300))]
    chunks = thread_chunks(chunk_thread(thread, Source.SLACK, encoder))
    assert [numbers(chunk) for chunk in chunks] == [[1, 2], [1, 3]]


def test_the_limit_counts_the_whole_joined_rendering(encoder: O200kEncoder) -> None:
    def total(last: int) -> int:
        thread = [message(1, words(200)), message(2, words(200)), message(3, words(last))]
        return len(encoder.encode("\n".join(map(render, thread))))

    fitting = next(last for last in range(300, 0, -1) if total(last) == MAX_CHUNK_TOKENS)
    for last, windows in ((fitting, 1), (fitting + 1, 2)):
        thread = [message(1, words(200)), message(2, words(200)), message(3, words(last))]
        assert len(thread_windows(thread, encoder)) == windows


@pytest.mark.parametrize("source", [Source.SYNTHETIC, Source.DOCUMENT])
def test_only_slack_chunks_are_split(encoder: O200kEncoder, source: Source) -> None:
    thread = [message(1, words(700)), message(2, "reply")]
    whole = chunk_thread(thread, source, encoder)
    assert [chunk.kind for chunk in whole] == ["message", "message", "thread"]
    assert whole[0].text == render(thread[0])
    split = chunk_thread(thread, Source.SLACK, encoder)
    assert [chunk.kind for chunk in split] == [
        "message",
        "message/2",
        "message",
        "thread",
        "thread",
    ]
    assert max(chunk.token_count for chunk in split) <= MAX_CHUNK_TOKENS


def test_a_piece_names_only_the_messages_it_shows(encoder: O200kEncoder) -> None:
    thread = [message(1, words(700)), message(2, "the reply")]
    first, second = thread_chunks(chunk_thread(thread, Source.SLACK, encoder))
    assert (numbers(first), numbers(second)) == ([1], [1, 2])
    assert first.text + second.text == "\n".join(map(render, thread))


def test_a_long_root_is_not_repeated_for_every_reply(encoder: O200kEncoder) -> None:
    thread = [message(1, words(1_250)), *(message(n, f"reply {n}") for n in range(2, 22))]
    chunks = thread_chunks(chunk_thread(thread, Source.SLACK, encoder))
    pieces = Counter(str(numbers(chunk)) for chunk in chunks)
    assert pieces == {"[1]": 2} | {f"[1, {number}]": 1 for number in range(2, 22)}


class Measuring:
    """The real encoder, and how many characters it had to encode."""

    def __init__(self, encoder: O200kEncoder) -> None:
        self.characters = 0
        self._encoder = encoder

    def encode(self, text: str) -> list[int]:
        self.characters += len(text)
        return self._encoder.encode(text)

    def decode(self, tokens: list[int]) -> str:
        return self._encoder.decode(tokens)


def test_a_reply_to_a_long_root_does_not_cost_the_length_of_the_root(
    encoder: O200kEncoder,
) -> None:
    root = message(1, " ".join(str(Random(number).random()) for number in range(2_000)))
    costs = []
    for replies in (10, 60):
        measuring = Measuring(encoder)
        thread = [root, *(message(number, "fine with me") for number in range(2, replies + 2))]
        chunk_thread(thread, Source.SLACK, measuring)
        costs.append(measuring.characters)
    assert (costs[1] - costs[0]) / 50 < len(root.text)


def test_replies_without_their_root_are_chunked_in_order(encoder: O200kEncoder) -> None:
    orphans = [message(3, "later"), message(2, "earlier")]
    [chunk] = thread_chunks(chunk_thread(orphans, Source.SLACK, encoder))
    assert numbers(chunk) == [2, 3]


def test_text_like_a_control_token_is_chunked_as_text(encoder: O200kEncoder) -> None:
    text = "the tokenizer prints <|endoftext|> and <|im_start|>"
    [chunk] = chunk_thread([message(1, text)], Source.SLACK, encoder)
    assert chunk.text.endswith(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "\U0001f9d1\u200d\U0001f680" * 2_000,
        "\ufffd" * 3_000,
        "漢字" * 3_000,
        "e" + "\u0301" * 5_000,
        " " * 20_000 + "x",
        words(601),
    ],
    ids=["letters", "emoji", "replacement", "han", "marks", "spaces", "words"],
)
def test_pieces_are_whole_text_within_the_limit(encoder: O200kEncoder, text: str) -> None:
    pieces = list(split_text(text, encoder))
    assert "".join(pieces) == text
    assert all(0 < len(encoder.encode(piece)) <= MAX_CHUNK_TOKENS for piece in pieces)
    assert text.count("\ufffd") == sum(piece.count("\ufffd") for piece in pieces)
    # Each piece takes what fits: two neighbours never fit into one.
    for piece, following in pairwise(pieces):
        assert len(encoder.encode(piece + following[:10])) > MAX_CHUNK_TOKENS - 10


class CostlyEnds:
    """A tokenizer in whose "abc" the "a" is one token, but two where the text ends after it."""

    def encode(self, text: str) -> list[int]:
        tokens = [ord(part[0]) for part in re.findall("a|bc|x", text)]
        return [*tokens, 0] if text.endswith("a") else tokens

    def decode(self, tokens: list[int]) -> str:
        texts = {0: "", ord("a"): "a", ord("b"): "bc", ord("x"): "x"}
        return "".join(texts[token] for token in tokens)


def test_a_cut_that_would_need_more_tokens_alone_is_moved_back() -> None:
    text = "x" + "abc" * 1_000
    pieces = list(split_text(text, CostlyEnds()))
    assert "".join(pieces) == text
    assert max(len(CostlyEnds().encode(piece)) for piece in pieces) <= MAX_CHUNK_TOKENS


@settings(max_examples=60, deadline=None)
@given(threads(), st.sampled_from(list(Source)))
def test_no_message_is_lost(encoder: O200kEncoder, thread: list[Message], source: Source) -> None:
    chunks = chunk_thread(thread, source, encoder)
    for each in thread:
        alone = [
            chunk.text
            for chunk in chunks
            if chunk.message_ids == (each.message_id,) and chunk.kind.startswith("message")
        ]
        assert "".join(alone) == render(each)
    if len(thread) > 1:
        shown = {each for chunk in thread_chunks(chunks) for each in chunk.message_ids}
        assert shown == {each.message_id for each in thread}


@settings(max_examples=60, deadline=None)
@given(threads())
def test_no_slack_chunk_is_over_the_limit(encoder: O200kEncoder, thread: list[Message]) -> None:
    for chunk in chunk_thread(thread, Source.SLACK, encoder):
        assert chunk.token_count == len(encoder.encode(chunk.text)) <= MAX_CHUNK_TOKENS


@settings(max_examples=60, deadline=None)
@given(threads(), st.sampled_from(list(Source)))
def test_no_two_chunks_have_one_id(
    encoder: O200kEncoder, thread: list[Message], source: Source
) -> None:
    chunks = chunk_thread(thread, source, encoder)
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


@settings(max_examples=30, deadline=None)
@given(threads(), st.randoms(use_true_random=False))
def test_chunks_are_the_same_on_every_run_and_in_any_order_of_reading(
    encoder: O200kEncoder, thread: list[Message], random: Random
) -> None:
    shuffled = list(thread)
    random.shuffle(shuffled)
    again = chunk_thread([*shuffled, *thread], Source.SLACK, encoder)
    assert again == chunk_thread(thread, Source.SLACK, encoder)


@settings(max_examples=30, deadline=None)
@given(threads(), slack_texts())
def test_a_new_last_reply_leaves_the_other_chunks_but_the_last_as_they_are(
    encoder: O200kEncoder, thread: list[Message], text: str
) -> None:
    before = chunk_thread(thread, Source.SLACK, encoder)
    longer = [*thread, message(len(thread) + 1, text)]
    after = set(chunk_thread(longer, Source.SLACK, encoder))
    kept_windows = thread_windows(thread, encoder)[:-1]
    kept_ids = {tuple(each.message_id for each in window) for window in kept_windows}
    for chunk in before:
        if chunk.kind.startswith("message") or chunk.message_ids in kept_ids:
            assert chunk in after


@settings(max_examples=30, deadline=None)
@given(threads(), slack_texts())
def test_an_edit_changes_no_message_chunk_of_another_message(
    encoder: O200kEncoder, thread: list[Message], text: str
) -> None:
    edited = [dataclasses.replace(thread[0], text=text), *thread[1:]]
    before = chunk_thread(thread, Source.SLACK, encoder)
    after = set(chunk_thread(edited, Source.SLACK, encoder))
    others = {chunk for chunk in before if thread[0].message_id not in chunk.message_ids}
    assert {chunk for chunk in others if chunk.kind.startswith("message")} <= after
