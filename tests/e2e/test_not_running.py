"""What a person sees when nothing runs, or when it can not be started."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from services.stack.stack import Stack
from tests.e2e.conftest import REPOSITORY, Running, environment


def stack_command(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "services.stack", *arguments),
        env=environ,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_says_how_to_start_what_does_not_run(tmp_path: Path) -> None:
    environ = environment(tmp_path / "home")
    result = Running(Stack(tmp_path / "home", environ)).recall("ask", "q")
    assert result.status == 1
    assert "make up" in result.errors
    assert "Traceback" not in result.errors


def test_a_taken_port_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    environ = environment(tmp_path / "home")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(environ["PORT_BASE"]) + 6))
        taken.listen()
        done = stack_command(environ, "up")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "PORT_BASE" in done.stderr


def test_a_folder_that_is_no_database_is_one_line_and_left_alone(tmp_path: Path) -> None:
    environ = environment(tmp_path / "home")
    precious = tmp_path / "home" / "postgres" / "data" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("keep")
    done = stack_command(environ, "up")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "RECALL_HOME" in done.stderr
    assert precious.read_text() == "keep"


def test_a_bad_setting_is_one_line_that_names_it(tmp_path: Path) -> None:
    done = stack_command(environment(tmp_path) | {"PORT_BASE": "many"}, "up")
    assert done.returncode == 1
    assert "PORT_BASE='many'" in done.stderr


def test_a_missing_export_is_one_line_that_names_it(tmp_path: Path) -> None:
    done = stack_command(environment(tmp_path), "demo", "--export", "nowhere.zip")
    assert done.returncode == 1
    assert "nowhere.zip" in done.stderr


def test_the_demo_answers_prints_the_page_and_stops_everything_on_interrupt(
    tmp_path: Path,
) -> None:
    environ = environment(tmp_path / "home")
    with subprocess.Popen(
        (sys.executable, "-u", "-m", "services.stack", "demo"),
        env=environ,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        shown = []
        deadline = time.monotonic() + 240
        for line in demo.stdout:
            shown.append(line)
            if "The page: http://" in line or time.monotonic() > deadline:
                break
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
        assert demo.wait(timeout=60) == 0, rest
    text = "".join(shown)
    assert "ALTER ROLE beacon PASSWORD" in text
    assert "[synthetic:engineering:e0076]" in text
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(environ["PORT_BASE"]))) != 0
