"""The o200k_base tokenizer, offline: the ranks are package data, checked by their SHA-256."""

from __future__ import annotations

from pathlib import Path


class RanksError(Exception):
    """The ranks file is damaged or cannot be put in place. Says what to mend."""


class O200kEncoder:
    """o200k_base. Safe on any text: control-token look-alikes are ordinary text."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text."""
        raise NotImplementedError

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens."""
        raise NotImplementedError


def load_encoder(cache_folder: Path) -> O200kEncoder:
    """The encoder, with its ranks unpacked into ``cache_folder`` when they are not there yet.

    Several processes may do this at once. Raises RanksError.
    """
    raise NotImplementedError
