"""The embedded server after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psycopg

from services.stack.postgres import EmbeddedPostgres
from tests.conftest import free_port

# The server only notices its end between statements.
BUSY = """
DO $$ BEGIN
    WHILE clock_timestamp() < now() + interval '1 hour' LOOP END LOOP;
END $$"""


def test_a_killed_server_starts_again_while_its_last_process_still_works(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path, free_port(), durable=False)
    url = server.start()
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        # Nobody but the supervisor ends this.
        busy = psycopg.connect(url, autocommit=True)
        busy.pgconn.send_query(BUSY.encode())
        pid = server.running_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while server.running_pid() is not None:
            time.sleep(0.01)
        server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (1,)
        busy.close()
    finally:
        server.stop()


def test_a_killed_server_starts_again_before_anybody_has_collected_it(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path, free_port(), durable=False)
    server.start()
    # A process that ended, and that its parent, this test, has not collected.
    ended = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    try:
        assert ended.stdout is not None and ended.stdout.read() == b""
        pid = server.running_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while server.running_pid() is not None:
            time.sleep(0.01)
        lock = server.data / "postmaster.pid"
        lines = lock.read_text("utf-8").splitlines()
        lock.write_text("\n".join([str(ended.pid), *lines[1:], ""]), "utf-8")
        server.start()
        assert server.running_pid() not in (None, pid, ended.pid)
    finally:
        server.stop()
        ended.wait()
