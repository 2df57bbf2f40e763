"""What an embedder is, and what it answers. Imports no model and no client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

# One-dimensional float32 of the embedder's width, L2-normalised.
Vector: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class EmbedderIdentity:
    """Everything that decides which vector a text gets.

    ``name`` is what a person chooses ("local", "openai"); it changes no vector and is not part of
    the fingerprint. ``revision`` is the sha256 of the model's file, or the date of a hosted model.
    ``window_tokens`` is where a longer text is cut.
    """

    name: str
    provider: str
    model: str
    revision: str
    width: int
    tokenizer: str
    pooling: str
    normalisation: str
    window_tokens: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical JSON of every field that changes vectors."""
        deciding = {
            "model": self.model,
            "normalisation": self.normalisation,
            "pooling": self.pooling,
            "provider": self.provider,
            "revision": self.revision,
            "tokenizer": self.tokenizer,
            "width": self.width,
            "window_tokens": self.window_tokens,
        }
        canonical = json.dumps(deciding, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


# Here and not in its adapter, so that a process that never asks OpenAI does not load the client
# (31 MB).
OPENAI = EmbedderIdentity(
    name="openai",
    provider="openai",
    model="text-embedding-3-small",
    # The API has no dated name for it; this is the day it was released.
    revision="2024-01-25",
    width=1536,
    tokenizer="cl100k_base",
    pooling="server",
    normalisation="l2",
    # Tokens are counted as UTF-8 bytes, of which a token has at least one.
    window_tokens=8_191,
)


@dataclass(frozen=True)
class Skipped:
    """A text that has no vector and never will, and why, for a person."""

    reason: str


EMPTY = Skipped("the text is empty")


class Embedder(Protocol):
    """Turns texts into unit vectors. Equal texts get equal vectors, whatever stands beside them."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Known without loading the model or reaching the provider."""
        ...

    async def embed_question(self, text: str) -> Vector:
        """The vector of one question; what exceeds the model's window is cut.

        Raises CallError INVALID_ARGUMENT for an empty text, UNAVAILABLE
        (EMBEDDER_UNAVAILABLE) when the model can not be reached.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector | Skipped]:
        """One result a text, in the texts' order; what exceeds the model's window is cut.

        An empty text, or one that the model refuses, is ``Skipped`` and fails no other. Raises
        CallError UNAVAILABLE (EMBEDDER_UNAVAILABLE) when the model can not be reached.
        """
        ...
