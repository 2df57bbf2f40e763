"""The front door: two listeners, the order of the stages, and nothing that touches a database.

``ask`` and ``window`` are the walks; ``context`` decides what an asker may read; ``clients``
reaches the stages; ``ranking``, ``checking`` and ``render`` are pure. ``grpc_service`` is the
listener for callers with an identity, ``http`` the demo page's.
"""
