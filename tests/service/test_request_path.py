"""A request's way through the house stays short, and docs/architecture.md shows it as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from feedrank.learners import kernel

ROOT = Path(__file__).resolve().parents[2]
MOST = {"predict": 16, "feedback": 20}


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


def test_a_call_crosses_few_files(shown):
    counts = dict(line.split(": ") for line in shown.splitlines() if not line.startswith(" "))
    assert counts.keys() == MOST.keys()
    assert {call: n for call, n in MOST.items() if int(counts[call].split()[0]) > n} == {}


def test_the_architecture_page_lists_them(shown):
    assert f"```\n{shown}```" in (ROOT / "docs/architecture.md").read_text(), "run scripts/trace_request.py"
