"""A test double of the embedding models: a text's vector is made of its words. Fast, repeatable."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from services.embedding.identity import Embedder, EmbedderIdentity, Skipped, Vector
from services.embedding.local import IDENTITY
from services.embedding.registry import Embedders


class HashEmbedder:
    """Texts that share words are near each other."""

    identity: EmbedderIdentity = IDENTITY

    async def embed_question(self, text: str) -> Vector:
        """The vector of a question."""
        return vector_of(text)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector | Skipped]:
        """The vectors of texts."""
        return [vector_of(text) for text in texts]

    async def aclose(self) -> None:
        """There is nothing to close."""


class HashEmbedders(Embedders):
    """Every generation's embedder is the double."""

    def by_name(self, name: str) -> Embedder:
        """The double."""
        return HashEmbedder()

    def by_fingerprint(self, fingerprint: str) -> Embedder:
        """The double."""
        return HashEmbedder()


def vector_of(text: str) -> Vector:
    """Each word adds one to the place that its hash names; then a unit vector."""
    counts = np.full(IDENTITY.width, 1e-3, np.float32)
    for word in text.split():
        counts[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % IDENTITY.width] += 1
    unit: Vector = (counts / np.linalg.norm(counts)).astype(np.float32)
    return unit
