"""Peak memory of processes, from /proc.

Two figures. ``resident``: the most that was resident since ``forget_peak``, as the kernel counts it
(VmHWM); it misses nothing between samples, and holds memory that several processes share in each
of them.
``proportional``: the sum over a group in which shared pages count once (Pss), at the worst sample.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_SECONDS = 0.5
_KIB = 1024


@dataclass
class Peak:
    """Of one group of processes, in bytes."""

    resident: int = 0
    proportional: int = 0
    processes: int = 0

    def add(self, pids: Iterable[int]) -> None:
        """Take one sample of the group; ``resident`` is that of its largest process."""
        count, proportional = 0, 0
        for pid in pids:
            count += 1
            self.resident = max(self.resident, peak_of(pid))
            proportional += _field(pid, "smaps_rollup", "Pss:")
        self.processes = max(self.processes, count)
        self.proportional = max(self.proportional, proportional)


@dataclass
class Watch:
    """Samples groups of processes in a thread while a block runs; keeps the peaks of all blocks."""

    peaks: dict[str, Peak] = field(default_factory=dict)

    @contextmanager
    def running(self, groups: Callable[[], Mapping[str, Iterable[int]]]) -> Iterator[None]:
        """Sample ``groups()``, process ids by name, until the block ends."""
        done = threading.Event()
        thread = threading.Thread(target=self._sample_until, args=(done, groups), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _sample_until(
        self, done: threading.Event, groups: Callable[[], Mapping[str, Iterable[int]]]
    ) -> None:
        while not done.wait(SAMPLE_SECONDS):
            for name, pids in groups().items():
                self.peaks.setdefault(name, Peak()).add(pids)


def peak_of(pid: int) -> int:
    """The most that a process had resident, in bytes; 0 when it is gone."""
    return _field(pid, "status", "VmHWM:")


def forget_peak(pid: int) -> None:
    """Let the kernel count a process's peak from now on. Raises OSError where it may not."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", "utf-8")


def children_of(parent: int) -> list[int]:
    """Process ids whose parent is ``parent``."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _parent(folder) == parent:
            found.append(int(folder.name))
    return found


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text("utf-8").rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def _field(pid: int, file: str, name: str) -> int:
    """A field of a /proc file in bytes; 0 when the process is gone."""
    try:
        for line in Path(f"/proc/{pid}/{file}").read_text("utf-8").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * _KIB
    except OSError:
        return 0
    return 0
