"""What the README and the documentation show is run, and what they point at exists."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
# Pages whose blocks run beside the code they are about, with what they need.
ELSEWHERE = {
    "api.md": "service/edge/test_api_examples.py",
    "experiments.md": "service/edge/test_experiment_http.py",
    "generated-clients.md": "test_typescript.py",
    "ingest.md": "clients/test_ingest.py",
    "lists.md": "learners/test_lists.py",
    "operating.md": "test_cli.py",
    "personalizer.md": "service/edge/test_http_personalizer.py",
    "problems.md": "learners/test_problems_page.py",
    "search.md": "clients/test_search_page.py",
    "teacher.md": "clients/test_teacher.py",
}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


def pages_with(language):
    return [
        page for page in sorted(DOCS.glob("*.md")) if blocks(page, language) and page.name not in ELSEWHERE
    ]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a server that was started as the README says, but for its port and store."""
    command = [Path(sys.executable).parent / "feedrank", "serve", "--port", "0"]
    store = f"sqlite:{tmp_path_factory.mktemp('store')}/r.db"
    with subprocess.Popen([*command, "--store", store], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield re.search(r"http://([\d.:]+)", server.stdout.readline())[1]
        finally:
            server.terminate()
    assert server.returncode == 0


def shell(script, address, folder):
    """The output of a script of a page, run against the server."""
    environ = os.environ | {
        "FEEDRANK_SERVER": f"http://{address}",
        "URL": f"http://{address}",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    script = script.replace("127.0.0.1:8000", address).replace("curl", "curl -sS --fail-with-body")
    return subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environ, capture_output=True, text=True, check=True
    ).stdout


def test_every_page_elsewhere_is_run_there():
    for page, test in ELSEWHERE.items():
        assert (DOCS / page).exists()
        assert (ROOT / "tests" / test).exists()


def test_the_python_session_runs():
    (code,) = blocks(ROOT / "README.md", "python")
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=os.sep)


def test_the_shell_session_runs(address, tmp_path):
    """Every curl line gets an answer of the contract, and answers in a row are lines in a row."""
    (script,) = blocks(ROOT / "README.md", "sh")
    created, first, second, last = map(json.loads, shell(script, address, tmp_path).splitlines())
    assert created["spec"]["algorithm"]
    assert (first["version"], second["version"]) == (1, 2)
    assert second["updated"]
    assert last["label"] == "junk"
    assert last["ranking"][0]["contributions"]


def assumed(address):
    """What the Python of a page takes for granted: data of the reader's, a learner, a client."""
    import numpy as np
    import pandas as pd

    from feedrank.clients import Client
    from feedrank.learners import build

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    return {
        "X": X[:40],
        "y": y[:40],
        "more_X": X[40:],
        "more_y": y[40:],
        "stream": [({"words": 3.0, "from": "ann"}, "work"), ({"words": 5.0, "from": "bob"}, "junk")],
        "frame": pd.DataFrame(
            {"subject": ["tax", "trip"], "body": ["due", "sun"], "folder": ["bills", "fun"]}
        ),
        "learner": build({"task": "multiclass"}),
        "client": Client(f"http://{address}"),
    }


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = assumed(address)
    ours = names["client"]
    with names["client"]:
        for block in blocks(page, "python"):
            exec(compile(block.replace("127.0.0.1:8000", address), page.name, "exec"), names)
            names["client"] = ours  # a page's own was closed with its block


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
@pytest.mark.parametrize("page", pages_with("js"), ids=lambda page: page.name)
def test_the_javascript_of_a_page_runs(page, address):
    for block in blocks(page, "js"):
        code = block.replace("127.0.0.1:8000", address)
        subprocess.run(["node", "--input-type=module", "--eval", code], check=True, timeout=600)


@pytest.mark.parametrize("page", pages_with("sh"), ids=lambda page: page.name)
def test_the_shell_lines_of_a_page_run(page, address, tmp_path):
    (tmp_path / "tickets.csv").write_text(
        "subject,body,queue\ninvoice twice,please refund,billing\nlost,sign in,login\n"
    )
    for script in blocks(page, "sh"):
        assert shell(script, address, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points at {target}, which is not there"
