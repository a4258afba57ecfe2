"""A request's way through the house stays short, and docs/architecture.md shows it as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from feedrank.learners import kernel

ROOT = Path(__file__).resolve().parents[2]
MOST = {
    "predict": (28, 115),
    "feedback": (37, 180),
    "feedback by id": (38, 210),
    "feedback to an experiment": (70, 800),
    "a line of a stream": (0, 40),
}


@pytest.fixture(scope="module")
def shown():
    """What the script prints with the native kernel; the other one crosses its Python files too."""
    if kernel.NAME != "native":
        pytest.skip("the native kernel is not built")
    environment = {**os.environ, "FEEDRANK_KERNEL": "native"}
    command = [sys.executable, "scripts/trace_request.py"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_call_crosses_few_files_and_functions(shown):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines() if "|" in line
    ]
    counts = {name: (int(files or 0), int(calls)) for name, files, calls in rows[2:]}
    assert counts.keys() == MOST.keys()
    longer = {name: count for name, count in counts.items() if any(map(int.__gt__, count, MOST[name]))}
    assert longer == {}


def test_the_architecture_page_lists_them(shown):
    page = (ROOT / "docs/architecture.md").read_text()
    # How often the coroutines of an experiment are resumed differs on a busy machine.
    plain = [line for line in shown.splitlines() if "experiment" not in line]
    listed = [line for line in page.splitlines() if "experiment" not in line]
    at = listed.index(plain[0])
    assert listed[at : at + len(plain)] == plain, "run scripts/trace_request.py"
