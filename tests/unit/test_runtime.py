"""The bootstrap's pure parts: settings, callers, errors, statements, redaction."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from recall.error.v1 import error_pb2
from services.runtime import sql
from services.runtime.callers import (
    Callers,
    CallersFileError,
    read_callers,
    require_channels,
    require_workspace,
    write_default_callers,
)
from services.runtime.config import ConfigError, Settings
from services.runtime.db import url_as_role
from services.runtime.errors import CallError
from services.runtime.logs import redact


def test_every_fault_of_the_environment_is_reported_at_once() -> None:
    settings = Settings({"PORT_BASE": "80", "FLAG": "perhaps", "N": "x"})
    settings.port("ingest")
    settings.flag("FLAG", True)
    settings.integer("N", 3, low=1, high=5)
    with pytest.raises(ConfigError) as raised:
        settings.done()
    assert [line.split("=")[0] for line in str(raised.value).splitlines()] == [
        "PORT_BASE",
        "FLAG",
        "N",
    ]


def test_ports_follow_port_base_and_can_be_set_singly() -> None:
    settings = Settings({"PORT_BASE": "9000", "RECALL_RERANK_PORT": "1234"})
    assert settings.port("retrieve") == 9003
    assert settings.port("rerank") == 1234
    assert settings.target("answer") == "127.0.0.1:9005"


def test_a_callers_file_open_to_others_is_refused(tmp_path: Path) -> None:
    path = write_default_callers(tmp_path, ("operator",))
    path.chmod(0o644)
    with pytest.raises(CallersFileError, match="chmod 600"):
        read_callers(path)


def test_an_existing_callers_file_keeps_its_tokens(tmp_path: Path) -> None:
    first = write_default_callers(tmp_path, ("operator",)).read_text()
    assert write_default_callers(tmp_path, ("operator",)).read_text() == first


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", "wrong"])
def test_an_unknown_token_is_unauthenticated(tmp_path: Path, authorization: str) -> None:
    callers = Callers(write_default_callers(tmp_path, ("operator",)))
    with pytest.raises(CallError) as raised:
        callers.identify(authorization)
    assert raised.value.code == grpc.StatusCode.UNAUTHENTICATED
    assert raised.value.reason == error_pb2.ERROR_REASON_CALLER_UNKNOWN


def test_a_caller_reads_only_what_it_is_listed_for(tmp_path: Path) -> None:
    path = write_default_callers(tmp_path, ("bot",))
    path.write_text(
        '{"callers": [{"name": "bot", "token": "0123456789abcdef", "workspaces": ["T1"],'
        ' "channels": ["C1"]}]}'
    )
    bot = Callers(path).identify("Bearer 0123456789abcdef")
    require_workspace(bot, "T1")
    require_channels(bot, ["C1"])
    with pytest.raises(CallError) as workspace_denied:
        require_workspace(bot, "T2")
    with pytest.raises(CallError) as channel_denied:
        require_channels(bot, ["C1", "C2"])
    for raised in (workspace_denied, channel_denied):
        assert raised.value.code == grpc.StatusCode.PERMISSION_DENIED


def test_statements_are_found_by_name_and_take_only_known_widths() -> None:
    statements = sql.parse("-- name: one\nSELECT 1\n\n-- name: two\nSELECT 2 FROM vectors_{width}")
    assert statements["one"] == b"SELECT 1"
    assert statements.for_width("two", 384) == b"SELECT 2 FROM vectors_384"
    with pytest.raises(sql.StatementError):
        statements.for_width("two", 12)
    with pytest.raises(sql.StatementError):
        statements["two"]


def test_a_statements_name_may_not_stand_twice() -> None:
    with pytest.raises(sql.StatementError):
        sql.parse("-- name: one\nSELECT 1\n-- name: one\nSELECT 2")


def test_the_role_is_added_to_the_owners_url() -> None:
    url = url_as_role("postgresql://o:p@h:1/d?sslmode=require", "recall_ingest")
    assert url == "postgresql://o:p@h:1/d?sslmode=require&options=-c%20role%3Drecall_ingest"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("token xoxb-12-abc leaked", "token [redacted] leaked"),
        ("Bearer abc.def-123", "[redacted]"),
        ("mail ines@beacon.example now", "mail [redacted] now"),
        ("postgresql://me:secret@h/d", "postgresql://[redacted]@h/d"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_logs_carry_no_secret(text: str, kept: str) -> None:
    assert redact(text) == kept
