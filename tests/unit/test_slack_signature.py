"""Signatures: bytes, age and digest."""

from __future__ import annotations

import json

import pytest
from slack_sdk.signature import SignatureVerifier

from services.gateway.slack.signature import Refusal, refusal, sign

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
BODY = '{"text": "Grüße",  "n": 1.0}'.encode()
NOW = 1_772_442_000.4
STAMP = "1772442000"
GOOD = sign(SECRET, STAMP, BODY)


def test_what_slack_signs_is_accepted_and_agrees_with_slack_sdk() -> None:
    theirs = SignatureVerifier(SECRET).generate_signature(timestamp=STAMP, body=BODY)
    assert theirs == GOOD
    assert refusal(SECRET, STAMP, GOOD, BODY, NOW) is None


@pytest.mark.parametrize(
    ("offset", "found"),
    [(0, None), (300, None), (-300, None), (301, Refusal.AGE), (-301, Refusal.AGE)],
)
def test_five_minutes_of_skew_are_allowed_either_way(offset: int, found: Refusal | None) -> None:
    assert refusal(SECRET, STAMP, GOOD, BODY, int(STAMP) + offset) is found


def test_a_clock_six_minutes_slow_is_told_apart_from_a_wrong_digest() -> None:
    assert refusal(SECRET, STAMP, GOOD, BODY, NOW - 360) is Refusal.AGE
    assert refusal("other", STAMP, GOOD, BODY, NOW) is Refusal.DIGEST


def test_a_body_parsed_and_written_again_has_another_digest() -> None:
    again = json.dumps(json.loads(BODY)).encode()
    assert refusal(SECRET, STAMP, GOOD, again, NOW) is Refusal.DIGEST


@pytest.mark.parametrize(
    ("stamp", "signature"),
    [("", GOOD), (STAMP, ""), ("yesterday", GOOD), ("-5", GOOD), ("٣", GOOD), ("1" * 400, GOOD)],
)
def test_missing_or_malformed_headers_are_refused(stamp: str, signature: str) -> None:
    assert refusal(SECRET, stamp, signature, BODY, NOW) is Refusal.MISSING


@pytest.mark.parametrize("signature", ["v1=" + GOOD[3:], GOOD[:-1], GOOD.upper(), "ü", "\udc80"])
def test_any_other_signature_is_refused(signature: str) -> None:
    assert refusal(SECRET, STAMP, signature, BODY, NOW) is Refusal.DIGEST
