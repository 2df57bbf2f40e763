"""Texts to vectors, for ingest (passages) and retrieve (questions). Knows no stage.

``registry.Embedders`` is the way in; ``identity`` holds the shapes.
"""
