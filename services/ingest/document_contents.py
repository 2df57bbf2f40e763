"""The contents of a build as they come: checked against the manifest, in batches."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping

from services.manifest import ManifestObject
from services.runtime.errors import invalid

BATCH_DOCUMENTS = 200
# As much text as one transaction writes at least before it commits.
BATCH_BYTES = 4 * 1024 * 1024

Content = tuple[str, bytes]


async def batches(
    contents: AsyncIterator[Content], wanted: Mapping[str, ManifestObject]
) -> AsyncIterator[list[tuple[ManifestObject, bytes]]]:
    """What comes, with the manifest's word for it, in batches, until all that is wanted came.

    Raises CallError INVALID_ARGUMENT for what was not asked for, or is not what the manifest says.
    """
    waiting = dict(wanted)
    batch: list[tuple[ManifestObject, bytes]] = []
    size = 0
    async for uri, content in contents:
        batch.append((_checked(waiting.pop(uri, None), uri, content), content))
        size += len(content)
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
        if not waiting:
            break
    if batch:
        yield batch


def _checked(known: ManifestObject | None, uri: str, content: bytes) -> ManifestObject:
    if known is None:
        raise invalid("object.uri", f"names {uri!r}, which was not asked for")
    if hashlib.sha256(content).hexdigest() != known.sha256:
        raise invalid(
            "object.content",
            f"of {uri} is not what the manifest says: it changed since. Make the manifest again",
        )
    return known
