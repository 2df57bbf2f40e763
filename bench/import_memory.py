"""Peak memory of an import: ``python -m bench.import_memory [MEGABYTES]`` (default 200).

Starts a database and ingest of its own, without the embedding worker, imports a generated archive
with the ``recall`` command, imports it again, and prints the peak resident memory of each process.
For PostgreSQL it is the largest backend without the shared buffers that all of them map.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.generate_archive import write_archive
from services.ingest.migrate import migrate, read_migrations
from services.runtime.callers import write_default_callers
from services.stack.postgres import EmbeddedPostgres

LIMIT_MEGABYTES = 300
SAMPLE_SECONDS = 0.5


@dataclass
class Peaks:
    """Peak megabytes by process."""

    megabytes: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        """Keep the larger of the value and what is known."""
        self.megabytes[name] = max(value, self.megabytes.get(name, 0.0))


def main() -> int:
    """Measure; status 1 when a process needs more than it may."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        peaks = _measure(Path(folder), megabytes)
    for name, peak in sorted(peaks.megabytes.items()):
        print(f"{name:10} {peak:6.1f} MB")
    return int(max(peaks.megabytes.values()) > LIMIT_MEGABYTES)


def _measure(folder: Path, megabytes: int) -> Peaks:
    archive = folder / "generated.zip"
    messages = write_archive(archive, megabytes)
    print(f"{megabytes} MB of JSON, {messages} messages", flush=True)
    postgres = EmbeddedPostgres(folder / "postgres", _free_port())
    url = postgres.start()
    try:
        migrate(url, read_migrations())
        return _import_twice(folder, archive, url)
    finally:
        postgres.stop()


def _import_twice(folder: Path, archive: Path, url: str) -> Peaks:
    home = folder / "home"
    write_default_callers(home, ("operator",))
    environ = {
        **os.environ,
        "RECALL_HOME": str(home),
        "DATABASE_URL": url,
        "RECALL_INGEST_PORT": str(_free_port()),
        "OPENAI_API_KEY": "",
    }
    peaks = Peaks()
    with (folder / "ingest.log").open("wb") as log:
        ingest = subprocess.Popen(
            (sys.executable, "-m", "services.ingest"), env=environ, stdout=log
        )
    try:
        _wait_for(int(environ["RECALL_INGEST_PORT"]))
        for name in ("first", "again"):
            began = time.monotonic()
            _import(archive, environ, lambda command: _sample(peaks, ingest.pid, command))
            print(f"{name} import: {time.monotonic() - began:.1f} s", flush=True)
    finally:
        ingest.terminate()
        ingest.wait()
    return peaks


def _import(archive: Path, environ: Mapping[str, str], sample: Callable[[int], None]) -> None:
    command = subprocess.Popen(
        (
            *(sys.executable, "-m", "services.cli", "import", str(archive)),
            *("--workspace", "bench", "--no-wait"),
        ),
        env=dict(environ),
    )
    while command.poll() is None:
        sample(command.pid)
        time.sleep(SAMPLE_SECONDS)
    if command.returncode:
        raise SystemExit(f"the import ended with status {command.returncode}")


def _sample(peaks: Peaks, ingest: int, command: int) -> None:
    peaks.note("ingest", _status(ingest, "VmHWM"))
    peaks.note("recall", _status(command, "VmHWM"))
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _is_backend(process):
            peaks.note("postgres", _status(int(process.name), "RssAnon"))


def _is_backend(process: Path) -> bool:
    try:
        return (process / "cmdline").read_bytes().startswith(b"postgres: recall")
    except OSError:
        return False


def _status(pid: int, key: str) -> float:
    """Megabytes of one line of /proc/<pid>/status; 0 when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    found = [line for line in lines if line.startswith(f"{key}:")]
    return int(found[0].split()[1]) / 1000 if found else 0.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("ingest did not start; run it alone to see why")


if __name__ == "__main__":
    sys.exit(main())
