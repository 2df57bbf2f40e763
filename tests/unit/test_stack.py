"""The stack's pure parts."""

from __future__ import annotations

import pytest

from services.stack.stack import demo_workspace_of


@pytest.mark.parametrize(
    ("environ", "workspace"),
    [
        ({}, "beacon"),
        ({"RECALL_DEMO_WORKSPACE": ""}, "beacon"),
        ({"RECALL_DEMO_WORKSPACE": "acme"}, "acme"),
    ],
)
def test_the_page_shows_the_workspace_of_the_environment(
    environ: dict[str, str], workspace: str
) -> None:
    assert demo_workspace_of(environ) == workspace
