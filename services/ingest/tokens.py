"""The o200k_base tokenizer, offline: the ranks are package data, checked by their SHA-256."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tiktoken

RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_PACKED_RANKS = Path(__file__).parent / "data" / "o200k_base.tiktoken.gz"
# tiktoken looks in its cache folder for a file named by the SHA-1 of this address.
_RANKS_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_CACHE_SETTING = "TIKTOKEN_CACHE_DIR"
_SETTING_LOCK = threading.Lock()

# tiktoken needs time quadratic in the length of a run without a word boundary, and its regular
# expression aborts on very long ones. Runs are cut at this length: 1,000,000 characters then take
# about 0.1 s, and no ordinary word is that long.
_MAX_RUN_CHARACTERS = 400
_LONG_RUN = re.compile(rf"\S{{{_MAX_RUN_CHARACTERS}}}|\s{{{_MAX_RUN_CHARACTERS}}}")


class RanksError(Exception):
    """The ranks file is damaged or cannot be put in place. Says what to mend."""


class O200kEncoder:
    """o200k_base. Safe on any text: control-token look-alikes are ordinary text.

    Runs of more than 400 characters with or without whitespace are encoded in parts, so the count
    of such a text is an estimate: a little above the true one.
    """

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    def encode(self, text: str) -> list[int]:
        """Tokens of a text. Lone surrogates must have been replaced before."""
        tokens: list[int] = []
        start = 0
        for run in _LONG_RUN.finditer(text):
            tokens += self._encoding.encode_ordinary(text[start : run.end()])
            start = run.end()
        return tokens + self._encoding.encode_ordinary(text[start:])

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens; half a character becomes a replacement character."""
        return self._encoding.decode(tokens, errors="replace")


def load_encoder(cache_folder: Path) -> O200kEncoder:
    """The encoder, with its ranks unpacked into ``cache_folder`` when they are not there yet.

    Several processes may do this at once. Raises RanksError.
    """
    try:
        _unpack_ranks(cache_folder)
        with _setting(_CACHE_SETTING, str(cache_folder)):
            return O200kEncoder(tiktoken.get_encoding("o200k_base"))
    except OSError as error:
        raise RanksError(
            f"The tokenizer's ranks cannot be kept in {cache_folder}: {error}. "
            "Make the folder writable or choose another RECALL_HOME."
        ) from error


def _unpack_ranks(cache_folder: Path) -> None:
    """Put the ranks where tiktoken looks, unless they are there and whole."""
    target = cache_folder / hashlib.sha1(_RANKS_URL.encode(), usedforsecurity=False).hexdigest()
    if target.exists() and _is_whole(target.read_bytes()):
        return
    cache_folder.mkdir(parents=True, exist_ok=True)
    # Renamed into place: another process never reads half a file.
    with tempfile.NamedTemporaryFile(dir=cache_folder, delete=False) as unpacked:
        unpacked.write(_packaged_ranks())
    Path(unpacked.name).replace(target)


def _packaged_ranks() -> bytes:
    try:
        ranks = gzip.decompress(_PACKED_RANKS.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise RanksError(f"{_PACKED_RANKS} is damaged ({error}). Install Recall again.") from error
    if not _is_whole(ranks):
        raise RanksError(f"{_PACKED_RANKS} holds other ranks. Install Recall again.")
    return ranks


def _is_whole(ranks: bytes) -> bool:
    return hashlib.sha256(ranks).hexdigest() == RANKS_SHA256


@contextmanager
def _setting(name: str, value: str) -> Iterator[None]:
    """An environment variable for as long as the block runs."""
    with _SETTING_LOCK:
        before = os.environ.get(name)
        os.environ[name] = value
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
