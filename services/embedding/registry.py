"""The embedders of this process, by name and by fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from recall.error.v1 import error_pb2
from services.embedding import local
from services.embedding.identity import OPENAI, Embedder, EmbedderIdentity
from services.embedding.local import LocalEmbedder
from services.runtime.config import Settings
from services.runtime.errors import CallError, invalid

if TYPE_CHECKING:
    from services.embedding.openai_embedder import OpenAIEmbedder

IDENTITIES = {identity.name: identity for identity in (local.IDENTITY, OPENAI)}


@dataclass(frozen=True)
class EmbeddingSettings:
    """What the environment says about embedders. An empty key means that OpenAI is not used."""

    openai_api_key: str = ""
    openai_base_url: str = ""
    local_threads: int = 1


def read_settings(settings: Settings, *, local_threads: int = 1) -> EmbeddingSettings:
    """OPENAI_API_KEY and OPENAI_BASE_URL; the threads of the local model are the process's own."""
    return EmbeddingSettings(
        openai_api_key=settings.text("OPENAI_API_KEY"),
        openai_base_url=settings.text("OPENAI_BASE_URL"),
        local_threads=local_threads,
    )


class Embedders:
    """Makes each embedder at its first use and keeps it. ``aclose`` when the process ends."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._made: dict[str, LocalEmbedder | OpenAIEmbedder] = {}

    def default_name(self) -> str:
        """The embedder of a new generation for which nobody chose one."""
        return "openai" if self._settings.openai_api_key else "local"

    def by_name(self, name: str) -> Embedder:
        """The embedder that a person chose.

        Raises CallError INVALID_ARGUMENT for an unknown name, FAILED_PRECONDITION
        (EMBEDDER_UNAVAILABLE) when it is not set up here.
        """
        if name not in IDENTITIES:
            raise invalid("embedder", f"must be one of {', '.join(sorted(IDENTITIES))}")
        if name == "openai" and not self._settings.openai_api_key:
            raise _unavailable("The embedder openai needs a key: set OPENAI_API_KEY.")
        return self._kept(name)

    def by_fingerprint(self, fingerprint: str) -> Embedder:
        """The embedder that a generation recorded.

        Raises CallError FAILED_PRECONDITION (EMBEDDER_UNAVAILABLE) with the remedy.
        """
        for identity in IDENTITIES.values():
            if identity.fingerprint == fingerprint:
                return self._recorded(identity)
        raise _unavailable(
            f"This generation was built with an embedder that this version does not have "
            f"(fingerprint {fingerprint[:12]}): build a new generation and promote it."
        )

    async def aclose(self) -> None:
        """Close the connections of the embedders that were used."""
        for embedder in self._made.values():
            await embedder.aclose()

    def _recorded(self, identity: EmbedderIdentity) -> Embedder:
        if identity.name == "openai" and not self._settings.openai_api_key:
            raise _unavailable(
                f"This generation was built with OpenAI {identity.model}: set OPENAI_API_KEY."
            )
        return self._kept(identity.name)

    def _kept(self, name: str) -> Embedder:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> LocalEmbedder | OpenAIEmbedder:
        settings = self._settings
        if name == "openai":
            from services.embedding.openai_embedder import OpenAIEmbedder

            return OpenAIEmbedder(settings.openai_api_key, settings.openai_base_url)
        return LocalEmbedder(settings.local_threads)


def _unavailable(message: str) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION, error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE, message
    )
