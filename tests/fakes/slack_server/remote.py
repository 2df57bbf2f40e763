"""Drives a Slack for tests that runs in another process."""

from __future__ import annotations

from typing import Any

import httpx

from tests.fakes.slack_server.state import ControlError


class RemoteControl:
    """``call`` runs one control operation over HTTP."""

    def __init__(self, base_url: str, timeout_seconds: float = 60.0) -> None:
        self._client = httpx.Client(base_url=base_url, timeout=timeout_seconds)

    def call(self, operation: str, **parameters: Any) -> Any:
        """The JSON result; raises ControlError with the server's reason."""
        response = self._client.post(f"/control/{operation}", json=parameters)
        body = response.json()
        if response.status_code != 200:
            raise ControlError(body["error"])
        return body["result"]

    def close(self) -> None:
        """End the connections."""
        self._client.close()
