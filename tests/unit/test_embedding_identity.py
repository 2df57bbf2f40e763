"""Rules of embedder identities, of the registry, and of the pure parts of both embedders."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.error.v1 import error_pb2
from services.embedding import local, openai_embedder
from services.embedding.openai_embedder import MalformedReplyError, cut, packed, vectors_of
from services.embedding.registry import IDENTITIES, Embedders, EmbeddingSettings
from services.runtime.errors import CallError

# Recorded with every generation: a change here makes every stored vector unusable.
FINGERPRINTS = {
    "local": "be6cf17ce1f3572133b1a1264e8aabc760e81ad8dec5dd3ca3bd88fa86fbe537",
    "openai": "f7344cd05245d8d7c86f3a72d7305076055320c1fb256298f23061742ee43951",
}


def test_fingerprints_stay_what_generations_recorded() -> None:
    assert {name: identity.fingerprint for name, identity in IDENTITIES.items()} == FINGERPRINTS


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "other"},
        {"model": "other"},
        {"revision": "other"},
        {"width": 1536},
        {"tokenizer": "other"},
        {"pooling": "cls"},
        {"normalisation": "none"},
        {"window_tokens": 256},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_changes_vectors_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert replace(local.IDENTITY, **change).fingerprint != local.IDENTITY.fingerprint


def test_the_name_changes_no_vector() -> None:
    assert replace(local.IDENTITY, name="x").fingerprint == local.IDENTITY.fingerprint


def test_the_default_embedder_is_openai_only_with_a_key() -> None:
    assert Embedders(EmbeddingSettings()).default_name() == "local"
    assert Embedders(EmbeddingSettings(openai_api_key="k")).default_name() == "openai"


@pytest.mark.parametrize("name", sorted(IDENTITIES))
def test_a_recorded_embedder_is_found_by_its_fingerprint(name: str) -> None:
    embedders = Embedders(EmbeddingSettings(openai_api_key="k"))
    assert embedders.by_fingerprint(FINGERPRINTS[name]).identity.name == name
    assert embedders.by_name(name).identity == IDENTITIES[name]


def test_a_generation_of_openai_without_a_key_names_the_remedy() -> None:
    with pytest.raises(CallError) as caught:
        Embedders(EmbeddingSettings()).by_fingerprint(FINGERPRINTS["openai"])
    assert caught.value.code is grpc.StatusCode.FAILED_PRECONDITION
    assert caught.value.reason == error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE
    assert "text-embedding-3-small: set OPENAI_API_KEY" in caught.value.message


def test_an_unknown_fingerprint_is_refused_with_its_remedy() -> None:
    with pytest.raises(CallError) as caught:
        Embedders(EmbeddingSettings()).by_fingerprint("f" * 64)
    assert caught.value.reason == error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE
    assert "build a new generation" in caught.value.message


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CallError) as caught:
        Embedders(EmbeddingSettings()).by_name("word2vec")
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "local, openai" in caught.value.message


@given(st.lists(st.integers(0, 512), max_size=60))
def test_local_batches_hold_every_text_that_has_words_once(lengths: list[int]) -> None:
    batches = list(local.batches(lengths))
    held = [position for batch in batches for position in batch]
    assert sorted(held) == [i for i, length in enumerate(lengths) if length > local.MARKS]
    for batch in batches:
        padded = len(batch) * max(lengths[i] for i in batch)
        assert len(batch) <= local.BATCH_TEXTS and padded <= local.BATCH_WORDPIECES


@given(st.lists(st.text(), max_size=40))
def test_openai_requests_hold_every_text_once_within_the_limits(texts: list[str]) -> None:
    pieces = {position: cut(text * 500) for position, text in enumerate(texts)}
    batches = list(packed(pieces))
    assert [position for batch in batches for position in batch] == list(pieces)
    for batch in batches:
        assert sum(len(pieces[i].encode()) for i in batch) <= openai_embedder.MAX_REQUEST_BYTES


def test_openai_requests_hold_at_most_2048_texts() -> None:
    sizes = [len(batch) for batch in packed({i: "a" for i in range(5_000)})]
    assert sizes == [2_048, 2_048, 904]


@given(st.text(st.characters(codec=None), max_size=40).map(lambda text: text * 400))
def test_a_cut_text_is_a_beginning_within_the_window(text: str) -> None:
    piece = cut(text)
    whole = text.encode("utf-8", "replace").decode()
    assert whole.startswith(piece)
    assert len(piece.encode()) <= openai_embedder.WINDOW_BYTES
    assert piece == whole or len(piece.encode()) > openai_embedder.WINDOW_BYTES - 4


def item(index: int, values: list[float]) -> dict[str, Any]:
    encoded = base64.b64encode(np.array(values, "<f4").tobytes()).decode()
    return {"index": index, "embedding": encoded}


def axis(position: int, length: float = 1.0) -> list[float]:
    values = [0.0] * 1536
    values[position] = length
    return values


def reply(*items: dict[str, Any]) -> bytes:
    return json.dumps({"data": list(items)}).encode()


def test_vectors_follow_the_reply_s_indexes_and_have_length_one() -> None:
    first, second = vectors_of(reply(item(1, axis(7, 3.0)), item(0, axis(2))), 2)
    assert first.argmax() == 2 and second.argmax() == 7
    assert first.dtype == np.float32 and second.max() == 1.0


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"data": null}',
        reply({"index": 0}),
        reply({"index": 0, "embedding": None}),
        reply({"index": 0, "embedding": "%%%"}),
        reply({"index": 0, "embedding": "AAAA"}),
        reply(item(0, axis(0))),
        reply(item(0, axis(0)), item(0, axis(1))),
        reply(item(1, axis(0)), item(2, axis(1))),
        reply(item(0, axis(0)), item(1, axis(1)), item(2, axis(2))),
        reply(item(0, axis(0)), item(1, [1.0] * 8)),
        reply(item(0, axis(0)), item(1, [0.0] * 1536)),
        reply(item(0, axis(0)), item(1, [float("nan")] * 1536)),
        reply({"index": [], "embedding": ""}, item(1, axis(0))),
    ],
)
def test_a_reply_that_does_not_match_its_texts_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        vectors_of(content, 2)
