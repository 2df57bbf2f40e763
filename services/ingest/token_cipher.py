"""Tokens of installed apps at rest: encrypted, and encrypted anew when the key changes."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from recall.error.v1 import error_pb2
from services.runtime.errors import CallError


def is_key(text: str) -> bool:
    """Whether a text can be a key: 32 bytes, URL-safe base64."""
    try:
        Fernet(text)
    except ValueError:
        return False
    return True


class TokenCipher:
    """The first key encrypts; every key decrypts, so that a new one can be put before the old."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._fernets = [Fernet(key) for key in keys]

    def encrypt(self, token: str) -> bytes:
        """The token as it is stored. Raises CallError when no key is set."""
        return self._all().encrypt(token.encode())

    def decrypt(self, stored: bytes) -> str:
        """A stored token. Raises CallError when no key opens it."""
        try:
            return self._all().decrypt(stored).decode()
        except InvalidToken:
            raise _not_set_up(
                "RECALL_TOKEN_KEY does not open this installation's token. Put the key that was "
                "used before behind the new one, separated by a comma, or install the app anew."
            ) from None

    def is_current(self, stored: bytes) -> bool:
        """Whether the first key encrypted it."""
        try:
            self._fernets[0].decrypt(stored)
        except InvalidToken:
            return False
        return True

    def _all(self) -> MultiFernet:
        if not self._fernets:
            raise _not_set_up(
                "RECALL_TOKEN_KEY is not set where ingest runs, so that no Slack app can be "
                "installed or used. docs/slack.md says how to make a key."
            )
        return MultiFernet(self._fernets)


def _not_set_up(message: str) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION, error_pb2.ERROR_REASON_SLACK_NOT_SET_UP, message
    )
