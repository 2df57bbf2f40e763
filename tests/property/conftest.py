"""Fixtures of the interleavings."""

from tests.integration.ingest_fixtures import encoder

__all__ = ["encoder"]
