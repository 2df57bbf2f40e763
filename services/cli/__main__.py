"""The ``recall`` command. Exit status: 0 answered, 1 unavailable, 2 bad usage, 3 no answer,
4 sources only."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import grpc

from services.cli.ask import run_ask, run_search
from services.cli.connection import (
    BAD_USAGE,
    OK,
    UNAVAILABLE,
    Stack,
    UsageError,
    connect,
    explain_callers_fault,
    explain_failure,
    operator_token,
)
from services.cli.facts import add_facts
from services.cli.generations import run_generations
from services.cli.import_archive import run_import
from services.cli.jobs import run_jobs
from services.cli.mcp import add_mcp
from services.cli.operate import run_status
from services.cli.options import check_text, small_number
from services.cli.purge import run_purge
from services.cli.terminal import printable
from services.cli.trust_options import add_calibration, add_documents
from services.cli.window import run_catch_up, run_decisions, run_summary
from services.runtime.callers import CallersFileError
from services.runtime.config import ConfigError
from services.runtime.errors import CallError, from_rpc_error

Run = Callable[[argparse.Namespace, Stack], Awaitable[int]]

INTERRUPTED = 130
_PATHS = ("path", "questions")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; every fault is one line on stderr."""
    options = parser().parse_args(arguments)
    try:
        _check_texts(options)
        if options.command == "token":
            print(operator_token())
            return OK
        return asyncio.run(_run(options.run, options))
    except (UsageError, ConfigError) as error:
        return _fault(str(error), BAD_USAGE)
    except CallersFileError as error:
        return _fault(explain_callers_fault(error), UNAVAILABLE)
    except CallError as error:
        return _fault(*explain_failure(error))
    except grpc.aio.AioRpcError as error:
        return _fault(*explain_failure(from_rpc_error(error)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone (`recall … | head`): nothing is left to say.
        sys.stderr.close()
        return OK


def _check_texts(options: argparse.Namespace) -> None:
    """Raise UsageError for an argument that can not be sent. Paths may hold any bytes."""
    for name, value in vars(options).items():
        if name not in _PATHS:
            check_text(name.replace("_", "-"), value)


async def _run(run: Run, options: argparse.Namespace) -> int:
    async with connect() as stack:
        return await run(options, stack)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="recall", description="Answers questions from a team's chat, citations checked."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_import(commands)
    _add_question(commands, "ask", "answer a question", run_ask)
    search = _add_question(commands, "search", "find messages", run_search)
    search.add_argument(
        "--limit", type=small_number, default=0, help="messages wanted (default 12)"
    )
    search.add_argument("--rerank", action="store_true", help="order hits by the reranker too")
    for name, text, run in (
        ("catch-up", "tell what happened in a window (default: the last 7 days)", run_catch_up),
        ("summary", "summarise a window", run_summary),
        ("decisions", "list the decisions of a window", run_decisions),
    ):
        _add_window(commands.add_parser(name, help=text)).set_defaults(run=run)
    _add_operating(commands)
    return top


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _add_import(commands: Commands) -> None:
    command = commands.add_parser("import", help="import a Slack export or JSON lines")
    command.add_argument("path", help="a Slack export (zip or folder) or a .jsonl file")
    command.add_argument("--team", help="Slack team id, when the export carries none")
    command.add_argument("--embedder", choices=("local", "openai"), help="for a new generation")
    command.add_argument(
        "--skip-bots",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="leave bot messages out (kept as the workspace's setting)",
    )
    command.add_argument("--no-wait", action="store_true", help="do not wait for the vectors")
    _add_common(command)
    command.set_defaults(run=run_import)


def _add_question(commands: Commands, name: str, text: str, run: Run) -> argparse.ArgumentParser:
    command = _add_window(commands.add_parser(name, help=text))
    command.add_argument("question", nargs="*", help="the question; in: from: after: before: work")
    command.add_argument("--collection", help="ask documents of this name")
    command.add_argument("--explain", action="store_true", help="show how it was found")
    command.add_argument(
        "--questions", metavar="FILE.jsonl", help="answer every line of a file, as JSON lines"
    )
    command.add_argument(
        "--trust",
        choices=("strict", "relaxed"),
        help="without a certified calibration: refuse, or mark results as uncalibrated",
    )
    command.add_argument("--as-of", metavar="DATE", help="what held then, by validity")
    command.add_argument("--known-as-of", metavar="DATE", help="what was written by then")
    command.set_defaults(run=run)
    return command


def _add_window(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    command.add_argument("--channel", help="only this channel (name or id)")
    command.add_argument("--after", metavar="DATE", help="posted on or after this date (UTC)")
    command.add_argument("--before", metavar="DATE", help="posted before this date (UTC)")
    command.add_argument("--author", help="only messages by this person")
    command.add_argument(
        "--reader-channels",
        metavar="ID,ID",
        help="what the asker may read (default: every public channel)",
    )
    _add_common(command)
    return command


def _add_operating(commands: Commands) -> None:
    status = commands.add_parser("status", help="show stages and workspaces, or channels")
    status.add_argument("--workspace", help="show how far each of its channels is read")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=run_status)
    _add_generations(commands)
    add_calibration(commands)
    add_documents(commands)
    add_facts(commands)
    add_mcp(commands)
    jobs = commands.add_parser("jobs", help="list background work, or retry what failed for good")
    jobs.add_argument("action", nargs="?", choices=("list", "retry"), default="list")
    jobs.add_argument("job", nargs="?", help="for retry: the job's id")
    _add_common(jobs)
    jobs.set_defaults(run=run_jobs)
    purge = commands.add_parser("purge", help="delete everything of a workspace or a channel")
    purge.add_argument("--channel", help="only this channel (name or id)")
    purge.add_argument("--yes", action="store_true", help="do not ask")
    purge.add_argument("--workspace", help="workspace to delete from")
    purge.add_argument("--json", action="store_true", help="print JSON")
    purge.set_defaults(run=run_purge)
    commands.add_parser("token", help="print the operator's token (for grpcurl)")


def _add_generations(commands: Commands) -> None:
    generations = commands.add_parser("generations", help="build, check and change the index")
    actions = ("list", "build", "validate", "promote", "rollback", "gc")
    generations.add_argument("action", choices=actions)
    generations.add_argument("generation", nargs="?", help="its id; gc gives it up")
    generations.add_argument("--embedder", choices=("local", "openai"), help="for build")
    generations.add_argument(
        "--wait", action="store_true", help="for validate: wait for missing vectors"
    )
    generations.add_argument(
        "--uncertified",
        action="store_true",
        help="for promote: do without a certified calibration (never in production)",
    )
    generations.add_argument("--collection", help="for list and rollback: documents of this name")
    generations.add_argument("--reason", help="for rollback: why, for the audit")
    _add_common(generations)
    generations.set_defaults(run=run_generations)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--workspace", help="workspace (default: the only one)")
    command.add_argument("--json", action="store_true", help="print JSON")


def _fault(line: str, status: int) -> int:
    print(printable(line), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
