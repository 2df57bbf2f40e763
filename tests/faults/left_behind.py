"""Processes of a stack, found by what they were started with."""

from __future__ import annotations

from pathlib import Path


def processes_of(home: Path) -> list[str]:
    """Command lines of the processes that name a home in their arguments or their environment."""
    wanted = str(home).encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            arguments = (folder / "cmdline").read_bytes()
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        # A process that has ended and was not collected yet has neither.
        if wanted in arguments or b"RECALL_HOME=" + wanted in environment.split(b"\0"):
            found.append(arguments.replace(b"\0", b" ").decode("utf-8", "replace").strip())
    return sorted(found)
