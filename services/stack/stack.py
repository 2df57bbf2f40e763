"""One machine's stack: the database, the five services and the worker, up and down."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import psycopg
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.ingest.migrate import MigrationError, migrate, read_migrations
from services.runtime.callers import (
    FILE_NAME,
    CallersFileError,
    read_callers,
    write_default_callers,
)
from services.runtime.config import (
    Settings,
    remember_port_base,
    remembered_port_base,
    with_remembered_port_base,
)
from services.stack.postgres import EmbeddedPostgres, PostgresError
from services.stack.processes import PROGRAMS, Processes, Program

READY_SECONDS = 60.0
CALLERS = ("operator", "gateway")
DEMO_WORKSPACE = "RECALL_DEMO_WORKSPACE"
_DATABASE_NAMES = ("DATABASE_URL", "RECALL_INGEST_DATABASE_URL", "RECALL_RETRIEVE_DATABASE_URL")

Say = Callable[[str], None]


class StackError(Exception):
    """The stack can not be started or stopped; one line that says what and how to mend it."""


@dataclass(frozen=True)
class Stack:
    """A stack under one RECALL_HOME, configured by one environment."""

    home: Path
    environ: Mapping[str, str]

    def up(self, say: Say, demo_workspace: str = "") -> None:
        """Start what does not run yet and wait until it serves. Raises StackError.

        The page shows ``demo_workspace``, else the environment's.
        """
        self._start(say, demo_workspace or demo_workspace_of(self.environ))

    def running(self) -> list[str]:
        """Names of the processes that run, "postgres" for the embedded database."""
        database = ["postgres"] if self._postgres().running_pid() else []
        return [*database, *Processes(self.home).running()]

    def _start(self, say: Say, demo_workspace: str) -> None:
        self._require_same_ports()
        self._prepare_home()
        url = self._database(say)
        processes = Processes(self.home)
        if self._demo_changed(demo_workspace):
            processes.stop(("gateway",))
        running = processes.running()
        wanted = [program for program in PROGRAMS if program.is_wanted(self.environ)]
        missing = [program for program in wanted if program.name not in running]
        for program in missing:
            self._require_free_ports(program)
        for program in missing:
            processes.start(program, self._environ_of(program, url, demo_workspace))
        if missing:
            say(f"starting {', '.join(program.name for program in missing)}")
        for program in wanted:
            self._wait_until_serving(program, processes)

    def down(self, say: Say) -> None:
        """Stop the services, then the database."""
        running = self.running()
        say(f"stopping {', '.join(running)}" if running else "nothing runs here")
        self.stop(running)

    def stop(self, names: Sequence[str]) -> None:
        """Stop some of the processes that ``running`` names."""
        processes = Processes(self.home)
        # The front first, so that nobody is answered by half a stack.
        processes.stop(name for name in names if name == "gateway")
        processes.stop(names)
        if "postgres" in names:
            self._postgres().stop()

    def port(self, name: str) -> int:
        """A process's port."""
        settings = Settings(self.environ)
        port = settings.port(name)
        settings.done()
        return port

    def _require_same_ports(self) -> None:
        """A home serves from one PORT_BASE at a time; the command finds it without being told."""
        remembered, wanted = remembered_port_base(self.home), str(self.port("gateway_http"))
        if remembered not in ("", wanted) and self.running():
            raise StackError(
                f"Recall runs already from {self.home}, with PORT_BASE={remembered}. Stop it with "
                "`make down`, or set another RECALL_HOME."
            )

    def _prepare_home(self) -> None:
        try:
            write_default_callers(self.home, CALLERS)
            remember_port_base(self.home, self.port("gateway_http"))
            read_callers(self.home / FILE_NAME)
        except OSError as error:
            raise StackError(
                f"{self.home} can not be used ({error.strerror}). Set another RECALL_HOME."
            ) from None
        except CallersFileError as error:
            raise StackError(str(error)) from None

    def _database(self, say: Say) -> str:
        given = self.environ.get("DATABASE_URL", "")
        try:
            if given:
                say(f"using the database of DATABASE_URL ({_shown(given)})")
            elif not self._postgres().running_pid():
                say("starting PostgreSQL")
            url = given or self._postgres().start()
            migrate(url, read_migrations())
        except (PostgresError, MigrationError) as error:
            raise StackError(str(error)) from None
        except psycopg.Error as error:
            named = "The database of DATABASE_URL" if given else "The database"
            raise StackError(f"{named} can not be used: {str(error).strip()}") from None
        return url

    def _postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.home / "postgres", self.port("postgres"))

    def _environ_of(self, program: Program, url: str, demo_workspace: str) -> dict[str, str]:
        environ = {name: v for name, v in self.environ.items() if name not in _DATABASE_NAMES}
        environ |= {"RECALL_HOME": str(self.home), DEMO_WORKSPACE: demo_workspace}
        if program.uses_database:
            given = {name: self.environ[name] for name in _DATABASE_NAMES if name in self.environ}
            environ |= given | {"DATABASE_URL": url}
        return environ

    def shown_workspace(self) -> str:
        """The workspace that the page shows."""
        marker = self._demo_marker()
        return marker.read_text("utf-8") if marker.exists() else demo_workspace_of(self.environ)

    def _demo_changed(self, demo_workspace: str) -> bool:
        before = self.shown_workspace()
        self._demo_marker().write_text(demo_workspace, "utf-8")
        return before != demo_workspace

    def _demo_marker(self) -> Path:
        return self.home / "demo-workspace"

    def _ports(self, program: Program) -> list[int]:
        names = [program.port_name] if program.port_name else []
        if program.name == "gateway":
            names.append("gateway_http")
        return [self.port(name) for name in names]

    def _require_free_ports(self, program: Program) -> None:
        for port in self._ports(program):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    raise StackError(
                        f"Port {port} is taken, {program.name} can not listen on it. Stop what "
                        "uses it, or set another PORT_BASE."
                    ) from None

    def _wait_until_serving(self, program: Program, processes: Processes) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while program.name in processes.running():
            if program.port_name is None or _serving(self.port(program.port_name)):
                return
            if time.monotonic() > deadline:
                raise StackError(
                    f"{program.name} did not become ready in {READY_SECONDS:.0f} s; "
                    f"{processes.log_path(program.name)} says why."
                )
            time.sleep(0.1)
        log, last = processes.log_path(program.name), processes.last_line(program.name)
        why = f"{log} says why." if last.startswith("{") else last
        raise StackError(f"{program.name} ended at once: {why}")


def demo_workspace_of(environ: Mapping[str, str]) -> str:
    """The workspace that the page shows unless a command names one."""
    return environ.get(DEMO_WORKSPACE) or "beacon"


def _shown(url: str) -> str:
    """A database's address without its password."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'local socket'}{parts.path}"


def _serving(port: int) -> bool:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        try:
            reply = health.Check(health_pb2.HealthCheckRequest(), timeout=1.0)
        except grpc.RpcError:
            return False
    serving: int = health_pb2.HealthCheckResponse.SERVING
    return bool(reply.status == serving)


def stack_of(environ: Mapping[str, str] = os.environ) -> Stack:
    """The stack that an environment describes. Raises ConfigError with every fault."""
    environ = with_remembered_port_base(environ)
    settings = Settings(environ)
    home = settings.home()
    for name in ("gateway_http", "postgres"):
        settings.port(name)
    settings.done()
    return Stack(home, environ)
