"""Recall's five services and what they share.

Who calls whom:

    edge (Slack, page, gRPC, CLI) -> gateway -> retrieve -> PostgreSQL (read only), embedder
                                             -> rerank   -> Decisions API
                                             -> answer   -> OpenAI
                                             -> ingest   -> PostgreSQL (the only writer)
    ingest worker -> PostgreSQL, embedder
    cli -> gateway, ingest

Services never import each other; they meet in the protos. ``corpus`` holds the shared nouns,
``runtime`` the bootstrap that knows no stage, ``embedding`` the embedders that ingest and
retrieve share, ``stack`` starts all processes on one machine.
"""
