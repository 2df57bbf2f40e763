"""Reading settings from the environment, with every fault reported at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

DEFAULT_PORT_BASE = 7400
# Offsets from PORT_BASE. One place, so that two processes can not disagree.
PORT_OFFSETS = {
    "gateway_http": 0,
    "gateway": 1,
    "ingest": 2,
    "retrieve": 3,
    "rerank": 4,
    "answer": 5,
    "postgres": 6,
}


# Under RECALL_HOME: the PORT_BASE that its stack was last started with.
_PORT_BASE_FILE = "port-base"


class ConfigError(Exception):
    """The environment can not be used; one line a fault."""


class Settings:
    """Reads typed values from a mapping and collects what is wrong with them.

    Call ``done()`` after the last read: it raises ``ConfigError`` with every fault.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._faults: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        """The value without surrounding white space; an empty value counts as unset."""
        return self._environ.get(name, "").strip() or default

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        """A number between ``low`` and ``high``."""
        return self._parsed(name, default, lambda raw: _between(float(raw), low, high))

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number between ``low`` and ``high``."""
        return self._parsed(name, default, lambda raw: int(_between(_whole(raw), low, high)))

    def flag(self, name: str, default: bool) -> bool:
        """on/off, true/false, yes/no or 1/0."""
        return self._parsed(name, default, _flag)

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of ``allowed``."""
        return self._parsed(name, default, lambda raw: _one_of(raw, allowed))

    def home(self) -> Path:
        """RECALL_HOME, default ``.recall`` in the current folder, absolute."""
        return Path(self.text("RECALL_HOME", ".recall")).expanduser().absolute()

    def port(self, process: str) -> int:
        """The port of one process: RECALL_<PROCESS>_PORT, or PORT_BASE plus its offset."""
        base = self.integer("PORT_BASE", DEFAULT_PORT_BASE, low=1024, high=65000)
        name = f"RECALL_{process.upper()}_PORT"
        return self.integer(name, base + PORT_OFFSETS[process], low=1, high=65535)

    def target(self, process: str) -> str:
        """Where to call a process: RECALL_<PROCESS>_TARGET, or its port on loopback."""
        return self.text(f"RECALL_{process.upper()}_TARGET", f"127.0.0.1:{self.port(process)}")

    def fault(self, line: str) -> None:
        """Report a fault of the caller's own."""
        self._faults.append(line)

    def done(self) -> None:
        """Raise ``ConfigError`` when anything was wrong."""
        if self._faults:
            raise ConfigError("\n".join(self._faults))

    def _parsed(self, name: str, default: T, parse: Callable[[str], T]) -> T:
        raw = self.text(name)
        if not raw:
            return default
        try:
            return parse(raw)
        except ValueError as error:
            self._faults.append(f"{name}={raw!r}: {error}. Unset it to use {default!r}.")
            return default


def with_remembered_port_base(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment, with the PORT_BASE that the stack of its RECALL_HOME was started with.

    A PORT_BASE that is set stays.
    """
    remembered = remembered_port_base(Settings(environ).home())
    if environ.get("PORT_BASE") or not remembered:
        return environ
    return {**environ, "PORT_BASE": remembered}


def remembered_port_base(home: Path) -> str:
    """The PORT_BASE that a home's stack was last started with; empty when none was."""
    try:
        return (home / _PORT_BASE_FILE).read_text("utf-8").strip()
    except OSError:
        return ""


def remember_port_base(home: Path, port_base: int) -> None:
    """Keep the PORT_BASE of a home's stack for the commands that look for it."""
    (home / _PORT_BASE_FILE).write_text(str(port_base), "utf-8")


def _between(value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise ValueError(f"must be between {low:g} and {high:g}")
    return value


def _whole(raw: str) -> int:
    if not raw.lstrip("-").isdecimal():
        raise ValueError("must be a whole number")
    return int(raw)


def _flag(raw: str) -> bool:
    lowered = raw.lower()
    if lowered in ("1", "on", "true", "yes"):
        return True
    if lowered in ("0", "off", "false", "no"):
        return False
    raise ValueError("must be on or off")


def _one_of(raw: str, allowed: tuple[str, ...]) -> str:
    if raw.lower() not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}")
    return raw.lower()
