"""Fixtures of the unit tests: the tokenizer, which is read-only and slow to load."""

from __future__ import annotations

import pytest

from services.ingest.tokens import O200kEncoder, load_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> O200kEncoder:
    """o200k_base from the packaged ranks."""
    return load_encoder(tmp_path_factory.mktemp("tiktoken"))
