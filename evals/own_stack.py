"""A stack for the evaluation alone, without keys, and imports through the real path."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evals.datasets import Dataset
from services.stack.stack import Stack

Say = Callable[[str], None]

# Keys, addresses and settings of the user's own stack have no place in a measurement.
_FOREIGN = ("RECALL_", "OPENAI_", "OPEN_ROUTER", "DATABASE_URL", "PORT_BASE")
_KEPT = ("RECALL_POSTGRES_BIN",)
# What decides which chunks and vectors an import makes.
_SOURCES = ("services/ingest", "services/embedding")
_STAMP = "built-from"


class ImportFailedError(Exception):
    """A data set could not be imported; the import has said why."""


def environment_of(environ: Mapping[str, str], home: Path, port_base: int) -> dict[str, str]:
    """The environment of the evaluation's stack: the user's without keys and settings."""
    own = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or not name.startswith(_FOREIGN)
    }
    return own | {"RECALL_HOME": str(home), "PORT_BASE": str(port_base)}


@contextmanager
def own_stack(environ: Mapping[str, str], *, fresh: bool, say: Say) -> Iterator[None]:
    """The stack, up inside the block and down after it. Raises StackError.

    Its folder is kept, so that nothing is embedded twice, until the code that makes chunks and
    vectors changes: an index of other code would be measured as if it were this one's.
    """
    stack = Stack(Path(environ["RECALL_HOME"]), environ)
    stamp = stack.home / _STAMP
    built_from = _digest(_SOURCES)
    if stack.home.exists() and (fresh or _read(stamp) != built_from):
        say("ingest or embedding changed since the last run: building the indexes anew")
        stack.down(say)
        shutil.rmtree(stack.home)
    stack.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp.write_text(built_from, "utf-8")
    try:
        stack.up(say)
        yield
    finally:
        stack.down(say)


def import_dataset(dataset: Dataset, environ: Mapping[str, str], *options: str) -> None:
    """``recall import`` and its wait for the vectors. Raises ImportFailedError.

    Its report goes to stderr, where the progress bar is.
    """
    command = (sys.executable, "-m", "services.cli", "import", str(dataset.path))
    done = subprocess.run(
        (*command, "--workspace", dataset.workspace, *options),
        env=dict(environ),
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode != 0:
        raise ImportFailedError(f"{dataset.path} could not be imported (see above).")


def _digest(folders: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""
