"""The tour of the Slack side, on real processes and a Slack for tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import REPOSITORY, environment

# The tour itself insists on two seconds; a machine that runs tests has other things to do.
PATIENT = ("--within", "60")


def test_a_message_is_answered_its_edit_changes_the_answer_and_its_deletion_ends_it(
    tmp_path: Path,
) -> None:
    toured = subprocess.run(
        (sys.executable, "-m", "tests.demo_slack", "--tour", *PATIENT),
        env=environment(tmp_path / "home"),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert toured.returncode == 0, toured.stdout + toured.stderr
    said, edited, deleted = toured.stdout.split("\n\n1. ")[1].split("\n\n")[:3]
    assert "KESTREL-42. <https://" in said
    assert "HERON-77. <https://" in edited
    assert "couldn’t find enough evidence" in deleted
