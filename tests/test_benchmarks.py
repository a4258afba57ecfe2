"""Every benchmark can be started, has a page and a row in the index, and says what it lacks."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from feedrank.learners.inference.off_policy import LoggedChoice, ValueEstimate

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
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
    policy, single = checks.TARGETS["mostly the worst"], ValueEstimate()
    several = checks.Estimates(2, policy)
    for _ in range(40):
        p, q = rng.dirichlet(np.ones(4), 2), rng.random((2, 4))
        chosen, reward = rng.integers(4, size=2), rng.integers(2, size=2).astype(np.float64)
        several.add(p, chosen, reward, q)
        single.add(
            LoggedChoice(p[1].tolist(), int(chosen[1]), float(reward[1])), policy.tolist(), q[1].tolist()
        )
        low, high = single.interval(1 - checks.CONFIDENCE)
        assert several.intervals()[1] == pytest.approx([low, high])
        if several.missed[1]:
            break
        assert low <= several.value <= high


def test_late_answers_hardly_ever_decide(start):
    checks = importlib.import_module("experiment_checks")
    assert checks.late_answers(np.random.default_rng(1), 50, 200, wait=True) <= 0.1
    assert checks.late_answers(np.random.default_rng(1), 50, 200, wait=False) <= 0.1
