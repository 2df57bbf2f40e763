"""``make bench``. Exit status 0 when every figure is within its limit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench.ack import acknowledgement
from bench.documents import PeerError, documents
from bench.handling import handling
from bench.job_queue import job_queue
from bench.memory import ImportFailedError, import_memory
from services.runtime.config import ConfigError
from services.stack.stack import StackError
from tests.slack_stack import NotInstalledError

PORT_BASE = 7700
QUICK_MEGABYTES = (20, 60)
QUICK_SECONDS = 15.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one measurement, or say what there is and run the quick set; faults are one line."""
    command = parser()
    options = command.parse_args(arguments)
    if options.measurement is None:
        command.print_help()
        print()
    try:
        if options.measurement == "queue":
            within = job_queue(options.port_base, _say)
        elif options.measurement == "events":
            within = handling(options.port_base, _say)
        elif options.measurement == "documents":
            within = documents(options.port_base, _say)
        elif options.measurement == "ack":
            within = acknowledgement(options.seconds, options.port_base, _say)
        else:
            within = import_memory(options.megabytes, options.port_base, _say)
    except (StackError, ConfigError, ImportFailedError, NotInstalledError, PeerError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if within else 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the product from outside, on a stack of its own. Without a "
        "measurement, the quick set runs: the memory of imports of 20 and 60 MB.",
    )
    command.set_defaults(megabytes=QUICK_MEGABYTES, port_base=PORT_BASE)
    measurements = command.add_subparsers(dest="measurement", metavar="measurement")
    memory = measurements.add_parser(
        "import-memory", help="peak memory of every process while a large archive is imported"
    )
    memory.add_argument(
        "--megabytes",
        type=int,
        nargs="+",
        default=QUICK_MEGABYTES,
        metavar="N",
        help="sizes of the archives (default: 20 60); several show how memory grows",
    )
    queue = measurements.add_parser(
        "queue", help="claims among 100,000 ready jobs, and how soon a recorded job starts"
    )
    handled = measurements.add_parser("events", help="events a second that one worker handles")
    built = measurements.add_parser(
        "documents", help="building 2,000 documents, and again, against recall-rag"
    )
    ack = measurements.add_parser(
        "ack", help="acknowledgement of 100 signed events a second, and that none is lost"
    )
    ack.add_argument("--seconds", type=float, default=QUICK_SECONDS, help="how long (default: 15)")
    for each in (memory, queue, handled, built, ack):
        each.add_argument("--port-base", type=int, default=PORT_BASE, help="of the own stack")
    return command


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
