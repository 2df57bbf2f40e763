"""Permalinks open the exact message, a reply inside its thread."""

from __future__ import annotations

import pytest

from services.retrieve.permalinks import permalink

ROOT = "slack:T1:C1:1700000000.000100"
REPLY = "slack:T1:C1:1700000050.000200"


@pytest.mark.parametrize(
    ("message_id", "root_id", "domain", "link"),
    [
        (ROOT, ROOT, "acme", "https://acme.slack.com/archives/C1/p1700000000000100"),
        (
            REPLY,
            ROOT,
            "acme",
            "https://acme.slack.com/archives/C1/p1700000050000200"
            "?thread_ts=1700000000.000100&cid=C1",
        ),
        (ROOT, ROOT, "", "https://slack.com/archives/C1/p1700000000000100"),
        (
            "slack:T1:C1:1700000000.000000",
            "slack:T1:C1:1700000000.000000",
            "acme",
            "https://acme.slack.com/archives/C1/p1700000000000000",
        ),
        ("synthetic:ops:p12", "synthetic:ops:p12", "acme", ""),
        ("document:handbook:a.md#1", "document:handbook:a.md#1", "acme", ""),
        ("slack:T1:C1:not-a-ts", "slack:T1:C1:not-a-ts", "acme", ""),
    ],
)
def test_a_link_opens_the_message_where_it_stands(
    message_id: str, root_id: str, domain: str, link: str
) -> None:
    assert permalink(message_id, root_id, domain) == link
