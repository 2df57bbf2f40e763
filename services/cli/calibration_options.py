"""The options of ``recall calibrate`` and ``recall calibrations``."""

from __future__ import annotations

import argparse
from pathlib import Path

from services.cli.calibrate import RULES, run_calibrate, run_calibrations


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
