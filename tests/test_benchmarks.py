"""Every benchmark can be started, has a page and a row in the index, and says what it lacks."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_data

from feedrank.learners.inference.off_policy import Estimate, WeighedDraw

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
COMMANDS = sorted(path.stem for path in FOLDER.glob("*.py") if "def main(" in path.read_text())
INDEX = (FOLDER / "README.md").read_text()


@pytest.fixture
def start(monkeypatch):
    """Run a command as from the shell."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run(name, *options):
        monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", *map(str, options)])
        importlib.import_module(name).main()

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_each_tells_its_command_and_has_a_page_in_the_index(start, name, capsys):
    with pytest.raises(SystemExit) as stop:
        start(name, "--help")
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert f"python benchmarks/{name}.py" in printed
    assert "--out" in printed
    assert f"| [`{name}.py`]({name}.md) |" in INDEX
    assert f"    python benchmarks/{name}.py" in (FOLDER / f"{name}.md").read_text()


# Some seconds each: processes, or limits that cost their size. `.ci/run` takes them.
LONG = {
    "experiment_checks", "experiment_http", "experiments", "faults", "fuzz", "ingest", "large_payloads", "lists", "loads",
    "loop_blocking", "many_learners", "neighbours", "peers", "replica_faults", "rounds", "scaling", "search",
    "search_safety", "service", "ways",
}  # fmt: skip
# The figures of their pages are of several runs, side by side.
SEVERAL_RUNS = {"faults", "loads", "service"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """What --data takes."""
    return tiny_data.write_data(tmp_path_factory.mktemp("data") / "data")


def heads(text):
    """The titles of every table, without the numbers in them: sizes are smaller here."""
    lines = text.splitlines()
    rows = [lines[i - 1] for i, line in enumerate(lines) if line.startswith("|---")]
    cells = [re.sub(r"\d[\d,.]*", "#", row.replace("`", "")).strip("| ").split("|") for row in rows]
    return [[cell for cell in dict.fromkeys(map(str.strip, row)) if cell != "#"] for row in cells]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in COMMANDS]
)
def test_each_runs_on_little_data_and_its_tables_are_those_of_the_pages(
    start, data, name, tmp_path, monkeypatch
):
    monkeypatch.setitem(os.environ, "OPENBLAS_NUM_THREADS", "1")
    options = ["--quick", "--out", tmp_path]
    if "--data" in (FOLDER / f"{name}.py").read_text():
        options += ["--data", data]
    if name in LONG:  # a process of its own: it leaves nothing behind
        subprocess.run([sys.executable, FOLDER / f"{name}.py", *options], check=True)
    else:
        start(name, *options)
    report = tmp_path / "report.md"
    if not report.exists():
        pytest.skip(f"{name} says what it lacks")
    text = report.read_text()
    assert re.search(r"^Commit \w+\+?; Python", text, re.MULTILINE)
    assert heads(text)
    pages = [FOLDER / f"{name}.md", *(ROOT / "docs").rglob("*.md")]
    shown = [head for page in pages for head in heads(page.read_text())]
    assert [head for head in heads(text) if head not in shown and name not in SEVERAL_RUNS] == []


def test_no_page_names_a_command_that_is_not_there():
    pages = "".join(path.read_text() for path in FOLDER.glob("*.md"))
    assert set(re.findall(r"python benchmarks/(\w+)\.py", pages)) == set(COMMANDS)


def test_the_index_is_short():
    assert len(INDEX.splitlines()) < 60


def test_a_command_without_its_data_says_what_and_where(start, tmp_path, capsys):
    start("peers", "--data", tmp_path / "nowhere", "--out", tmp_path / "out")
    printed = capsys.readouterr().out
    for kind, source in (("enron", "Enron-Spam"), ("multilabel", "MULAN"), ("letor", "Microsoft")):
        assert re.search(rf"skipped: {kind}/ needs --data DATA .*{source}", printed)


def test_a_report_holds_what_was_printed_and_how_to_get_it(start, tmp_path, capsys):
    start("peers", "--data", tmp_path / "nowhere", "--only", "mail", "--out", tmp_path / "out")
    written = (tmp_path / "out" / "report.md").read_text()
    assert "    python benchmarks/peers.py --data DATA --only mail\n" in written
    assert str(tmp_path) not in written
    assert written.strip() in capsys.readouterr().out


def test_off_policy_runs_side_by_side_are_the_estimates_of_the_service(start):
    checks = importlib.import_module("experiment_checks")
    rng = np.random.default_rng(0)
    policy, single = checks.TARGETS["mostly the worst"], Estimate()
    several = checks.Estimates(2, policy)
    for _ in range(40):
        p, q = rng.dirichlet(np.ones(4), 2), rng.random((2, 4))
        chosen, reward = rng.integers(4, size=2), rng.integers(2, size=2).astype(np.float64)
        several.add(p, chosen, reward, q)
        draw = p[1].tolist(), int(chosen[1]), float(reward[1]), policy.tolist(), q[1].tolist()
        single.add([WeighedDraw(*draw)])
        low, high = single.interval(1 - checks.CONFIDENCE)
        assert several.intervals()[1] == pytest.approx([low, high])
        if several.missed[1]:
            break
        assert low <= several.value <= high


def test_late_answers_hardly_ever_decide(start):
    checks = importlib.import_module("experiment_checks")
    assert checks.late_answers(np.random.default_rng(1), 50, 200, wait=True) <= 0.1
    assert checks.late_answers(np.random.default_rng(1), 50, 200, wait=False) <= 0.1


def test_experiments_over_http_show_what_is_worked_out_anew(start, tmp_path, capsys):
    start(
        "experiment_http",
        "--runs",
        1,
        "--events",
        24,
        "--only",
        "labels-retracted",
        "drafts-clicks",
        "--out",
        tmp_path,
    )
    rows = [
        line
        for line in (tmp_path / "report.md").read_text().splitlines()
        if line.startswith(("| labels", "| drafts"))
    ]
    assert len(rows) == 2
    assert all(row.endswith("| 0 | 0 |") for row in rows), rows


def test_a_figure_that_is_not_what_was_sent_is_noticed(start):
    brute = importlib.import_module("experiment_brute")
    book = brute.Book(2, lower_is_better=True)
    book.rounds = [
        brute.Round(unit, "uv".index(unit), [value]) for unit, value in (("u", 1.0), ("v", 0.0), ("u", 0.0))
    ]
    low, high = book.interval(0, 1, 0)
    shown = {
        "rounds_per_unit": 1,
        "arms": {"a": {"units": 1, "rounds": 2, "mean": 1.0}, "b": {"units": 1, "rounds": 1, "mean": 0.0}},
        "differences": [
            {
                "arms": ["a", "b"],
                "rounds_per_unit": 1,
                "units": 2,
                "difference": 1.0,
                "lower": low,
                "upper": high,
            }
        ],
        "sample_ratio": None,
        "reason": "",
        "verdict": "undecided",
    }
    assert brute.differing(book, ["a", "b"], shown, deep=True) == []
    shown["arms"]["a"]["mean"] = 0.5
    shown["differences"][0]["lower"] += 0.01
    shown["verdict"] = "b"
    assert [text.split(":")[0] for text in brute.differing(book, ["a", "b"], shown, deep=True)] == [
        "mean of a",
        "lower 0 1",
        "verdict b, must be None",
    ]
