"""Fixtures that several integration tests share."""

from tests.integration.ingest_fixtures import (
    embedders,
    encoder,
    ingest,
    resources,
    rows,
    upkeep,
)

__all__ = ["embedders", "encoder", "ingest", "resources", "rows", "upkeep"]
