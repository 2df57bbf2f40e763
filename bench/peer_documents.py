"""Builds a folder with recall-rag, in its own environment; prints the seconds as JSON.

Arguments: database URL, folder, vectors (a JSON object of SHA-256 of the text to vector). It runs
with the peer's Python, not ours, and imports nothing of ours.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

WIDTH = 384


class Precomputed:
    """The embedder of both sides: a vector for every text, ready before the clock starts."""

    name = "precomputed"
    dim = WIDTH

    def __init__(self, path: str) -> None:
        self._vectors: dict[str, list[float]] = json.loads(Path(path).read_text("utf-8"))

    def embed(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        return [self._vectors[hashlib.sha256(text.strip().encode()).hexdigest()] for text in texts]


def main() -> None:
    """Migrate an empty database, build twice."""
    url, folder, vectors = sys.argv[1:]
    schema = importlib.import_module("recall.schema")
    schema.apply_migrations(url, dim=WIDTH)
    embedder = Precomputed(vectors)
    seconds = [_build(url, Path(folder), embedder) for _ in range(2)]
    print(json.dumps({"first": seconds[0], "again": seconds[1]}))


def _build(url: str, folder: Path, embedder: Precomputed) -> float:
    """Seconds from reading the manifest to the promotion."""
    builds: Any = importlib.import_module("recall.generation_build")
    generations: Any = importlib.import_module("recall.generations")
    manifests: Any = importlib.import_module("recall.manifest")
    began = time.monotonic()
    manifest = _manifest(folder)
    manager = generations.GenerationManager(url, "bench", environment="development")
    reader = manifests.reader_for_manifest(manifest, local_roots=[folder])
    request = builds.BuildRequest(unverified=True, commit_root=None)
    stats = builds.build_generation(manager, manifest, reader, embedder, request)
    manager.validate(stats.generation_id)
    manager.promote(stats.generation_id, unsafe_development=True)
    return time.monotonic() - began


def _manifest(folder: Path) -> Any:
    lineage: Any = importlib.import_module("recall.lineage")
    objects = []
    for path in sorted(folder.rglob("*.md")):
        content = path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        objects.append(
            lineage.ManifestObjectV1(path.as_uri(), sha256, "text/markdown", len(content), sha256)
        )
    return lineage.IndexManifestV1("bench", "1", tuple(objects))


if __name__ == "__main__":
    main()
