"""What the use cases of ingest work with, made once a process."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from services.embedding.registry import Embedders
from services.ingest.chunkers import CHUNKERS, Chunkers
from services.ingest.chunking import Encoder
from services.ingest.pacing import Pace
from services.ingest.queue import TERMS, Terms
from services.ingest.token_cipher import TokenCipher
from services.ingest.wakeups import Wakeups
from services.runtime import db


@dataclass(frozen=True)
class Resources:
    """``pool`` acts as the ingest role, ``queue_pool`` as the queue role, which lists tenants."""

    pool: db.Pool
    queue_pool: db.Pool
    encoder: Encoder
    embedders: Embedders
    new_generation_id: Callable[[], str]
    job_terms: Terms = TERMS
    wakeups: Wakeups = field(default_factory=Wakeups)
    tokens: TokenCipher = field(default_factory=lambda: TokenCipher(()))
    # Gives [0, 1), so that retries do not come all at once.
    jitter: Callable[[], float] = random.random
    chunkers: Chunkers = field(default_factory=lambda: CHUNKERS)
    # Whether a generation may serve only with a certified calibration.
    is_production: bool = False
    # Slack's pace where a workspace sets none.
    history_pace: Pace = field(default_factory=Pace)
