"""What defines a generation beside its content, as one fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

# How chunks are indexed for the lexical arm, and the constants of fusion.
TEXT_SEARCH = "simple"
PROFILE = "recallhq"


@dataclass(frozen=True)
class Pipeline:
    """The parts; two generations with equal parts give equal chunks and vectors of equal texts."""

    embedder_fingerprint: str
    width: int
    chunker_version: str
    text_search: str = TEXT_SEARCH
    profile: str = PROFILE

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the parts as canonical JSON: sorted keys, no spaces."""
        written = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(written.encode()).hexdigest()
