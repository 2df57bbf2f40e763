"""The gateway's settings and the shares of a deadline."""

from __future__ import annotations

import pytest

from services.gateway.config import Config, read_config
from services.gateway.deadline import Deadline, Stopwatch, deadline_in
from services.runtime.config import ConfigError, Settings
from services.runtime.errors import CallError


def config(**environ: str) -> Config:
    return read_config(Settings(environ))


def test_by_default_both_listeners_are_on_loopback_and_the_page_shows_beacon() -> None:
    found = config()
    assert (found.http.host, found.http.port) == ("127.0.0.1", 7400)
    assert (found.grpc.host, found.grpc.port) == ("127.0.0.1", 7401)
    assert found.demo_workspace == "beacon"
    assert found.targets["rerank"] == "127.0.0.1:7404"
    assert found.trusted_proxies == ()


def test_only_beacon_is_shown_to_other_machines() -> None:
    with pytest.raises(ConfigError, match="RECALL_DEMO_WORKSPACE='ours'"):
        config(RECALL_DEMO_WORKSPACE="ours", RECALL_GATEWAY_HTTP_HOST="0.0.0.0")
    assert config(RECALL_DEMO_WORKSPACE="ours").demo_workspace == "ours"
    assert config(RECALL_GATEWAY_HTTP_HOST="0.0.0.0").demo_workspace == "beacon"


@pytest.mark.parametrize(
    ("environ", "allowed"),
    [
        ({}, ("127.0.0.1", "::1", "localhost")),
        ({"RECALL_GATEWAY_HTTP_HOST": "0.0.0.0"}, ()),
        (
            {"RECALL_GATEWAY_ALLOWED_HOSTS": "Demo.example, other.example,"},
            ("127.0.0.1", "::1", "localhost", "demo.example", "other.example"),
        ),
    ],
)
def test_on_loopback_only_loopback_and_listed_names_are_served(
    environ: dict[str, str], allowed: tuple[str, ...]
) -> None:
    assert config(**environ).allowed_hosts == allowed


def test_every_fault_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        config(PORT_BASE="1", RECALL_GATEWAY_ASKS_PER_MINUTE="often")
    faults = {line.split("=")[0] for line in str(raised.value).splitlines()}
    assert faults == {"PORT_BASE", "RECALL_GATEWAY_ASKS_PER_MINUTE"}


@pytest.mark.parametrize(
    ("left", "cap", "part", "share"),
    [
        (60.0, 15.0, 1.0, 15.0),
        (60.0, 5.0, 0.4, 5.0),
        (10.0, 40.0, 1.0, 9.0),
        (5.0, 40.0, 1.0, 4.5),
        (5.0, 5.0, 0.4, 1.8),
    ],
)
def test_a_share_keeps_time_to_report(left: float, cap: float, part: float, share: float) -> None:
    assert Deadline(lambda: 0.0, left).share(cap, part) == pytest.approx(share)


def test_with_no_time_left_nothing_is_begun() -> None:
    with pytest.raises(CallError):
        Deadline(lambda: 10.0, 10.0).share(5.0)


def test_the_nearer_end_counts() -> None:
    assert deadline_in(lambda: 100.0, 60.0).ends_at == 160.0
    assert deadline_in(lambda: 100.0, 60.0, callers_end=103.0).ends_at == 103.0
    assert deadline_in(lambda: 100.0, 60.0, callers_end=900.0).ends_at == 160.0


def test_a_stopwatch_books_laps_and_their_total() -> None:
    instants = iter((1.0, 1.25, 3.0, 3.5))
    stopwatch = Stopwatch(lambda: next(instants))
    stopwatch.lap("retrieve")
    stopwatch.lap("answer")
    assert stopwatch.milliseconds() == {"retrieve": 250.0, "answer": 1750.0, "total": 2500.0}
