"""Fixtures that several integration tests share."""

from tests.integration.app_fixtures import app
from tests.integration.history_fixtures import reader
from tests.integration.ingest_fixtures import (
    embedders,
    encoder,
    ingest,
    resources,
    rows,
    upkeep,
)

__all__ = ["app", "embedders", "encoder", "ingest", "reader", "resources", "rows", "upkeep"]
