"""Ids out of records: any text as one that every key of the database can hold."""

from __future__ import annotations

import hashlib

from services.corpus import encode_part
from services.ingest.markup import storable

# Characters of an id as it stands inside a message id. A key of an index holds 2,704 bytes: the
# workspace (800 at most), an author or channel, and a message id of up to three such parts.
MAX_ENCODED_CHARACTERS = 400
_KEPT_CHARACTERS = 24


def storable_id(text: str) -> str:
    """The text, storable and stripped; a longer one keeps its beginning and gets its SHA-256.

    The same text always gives the same id, and no two texts give one.
    """
    cleaned = storable(text).strip()
    if len(encode_part(cleaned)) <= MAX_ENCODED_CHARACTERS:
        return cleaned
    digest = hashlib.sha256(cleaned.encode()).hexdigest()
    return f"{cleaned[:_KEPT_CHARACTERS]}~{digest}"
