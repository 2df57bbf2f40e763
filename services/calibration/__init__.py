"""How a confidence is made of signals, and when a threshold on it may be trusted. Pure.

Ingest fits and certifies here, retrieve applies: both by the same code.
"""
