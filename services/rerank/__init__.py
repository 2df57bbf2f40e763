"""Orders messages by how useful they are as evidence: Jev, then Luna, then the given order.

``scoring``, ``budget``, ``failures`` and ``breaker`` are pure; ``decisions`` is the HTTP client;
``rerank`` is the use case; ``service`` and ``__main__`` are the process.
"""
