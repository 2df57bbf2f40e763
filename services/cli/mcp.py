"""``recall mcp``: a pipe for agents that start a process, to the running stack's tools.

What comes in on standard input goes to the gateway with one caller's token, what it answers comes
out on standard output. The rights are the token's; nothing is decided here.
"""

from __future__ import annotations

import argparse
import os

from services.cli.connection import OK, Stack
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import Settings, with_remembered_port_base


def add_mcp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand."""
    command = commands.add_parser("mcp", help="serve agents over standard input and output")
    command.add_argument(
        "--caller",
        default="operator",
        help="whose token of RECALL_HOME/callers.json to use (default: operator)",
    )
    command.set_defaults(run=run_mcp)


async def run_mcp(options: argparse.Namespace, stack: Stack) -> int:
    """Pipe until standard input ends. Raises CallersFileError, CallError UNAVAILABLE."""
    # Here, so that no other command waits for these packages to load.
    from services.cli.mcp_pipe import pipe

    token = Callers(stack.home / FILE_NAME).token_of(options.caller)
    await pipe(f"http://{_target()}/mcp", token)
    return OK


def _target() -> str:
    settings = Settings(with_remembered_port_base(os.environ))
    target = settings.target("gateway_http")
    settings.done()
    return target
