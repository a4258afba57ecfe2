"""What the README and the documentation show is run, and what they point at exists."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


def test_the_python_session_runs():
    (code,) = blocks(ROOT / "README.md", "python")
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=os.sep)


def test_the_shell_session_runs(tmp_path):
    """Every curl line gets an answer of the contract, from a server started as the README says."""
    (script,) = blocks(ROOT / "README.md", "sh")
    command = [Path(sys.executable).parent / "feedrank", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--store", f"sqlite:{tmp_path}/r.db"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            address = re.search(r"http://([\d.:]+)", server.stdout.readline())[1]
            script = script.replace("127.0.0.1:8000", address).replace("curl -s", "echo; curl -s")
            out = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True)
        finally:
            server.terminate()
    assert server.returncode == 0
    created, first, second, last = [json.loads(line) for line in out.stdout.split("\n") if line.strip()]
    assert created["spec"]["algorithm"]
    assert (first["version"], second["version"]) == (1, 2)
    assert second["updated"]
    assert last["label"] == "junk"
    assert last["ranking"][0]["contributions"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points at {target}, which is not there"
