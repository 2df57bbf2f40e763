"""The options of what makes an index trusted: documents and calibrations."""

from __future__ import annotations

import argparse
from pathlib import Path

from services.cli.calibrate import RULES, run_calibrate, run_calibrations
from services.cli.documents import DEFAULT_WORKSPACE, run_documents
from services.cli.settings import TRUST, run_settings


def add_calibration(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both commands."""
    calibrate = commands.add_parser(
        "calibrate", help="certify when answers of an index may be trusted"
    )
    calibrate.add_argument("labels", nargs="?", type=Path, help="labelled questions, JSON lines")
    calibrate.add_argument(
        "--from-feedback", action="store_true", help="use what people marked helpful or not"
    )
    calibrate.add_argument("--rule", choices=sorted(RULES), default="logistic")
    calibrate.set_defaults(run=run_calibrate)
    listing = commands.add_parser("calibrations", help="list calibrations and their measurements")
    listing.set_defaults(run=run_calibrations)
    for command in (calibrate, listing):
        command.add_argument("--generation", help="its id (default: the serving one)")
        command.add_argument("--workspace", help="workspace (default: the only one)")
        command.add_argument("--json", action="store_true", help="print JSON")
    calibrate.add_argument("--collection", help="documents of this name")
    _add_settings(commands)


def _add_settings(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    settings = commands.add_parser("settings", help="show or change what trust means here")
    settings.add_argument(
        "--trust",
        choices=sorted(TRUST),
        help="strict: without a certified calibration a question is refused "
        "(default: for documents only)",
    )
    for name, what in (("confirm", "unanswerable questions answered"), ("abstain", "the opposite")):
        settings.add_argument(
            f"--false-{name}-target",
            type=float,
            metavar="RATE",
            help=f"bound on {what}, for certification (default 0.10; 0 goes back to it)",
        )
    settings.add_argument("--workspace", help="workspace (default: the only one)")
    settings.add_argument("--json", action="store_true", help="print JSON")
    settings.set_defaults(run=run_settings)


def add_documents(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``recall documents``."""
    documents = commands.add_parser("documents", help="build an index of documents, or erase one")
    documents.add_argument("action", choices=("build", "erase"))
    documents.add_argument(
        "where", help="folder, zip file, .json manifest or s3://; for erase: the URI"
    )
    documents.add_argument("--collection", required=True, help="name of the collection")
    documents.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="default: documents")
    documents.add_argument("--embedder", choices=("local", "openai"))
    documents.add_argument("--promote", action="store_true", help="serve it once it is validated")
    documents.add_argument(
        "--uncertified",
        action="store_true",
        help="for --promote: do without a certified calibration (never in production)",
    )
    documents.add_argument("--json", action="store_true", help="print JSON")
    documents.set_defaults(run=run_documents)
