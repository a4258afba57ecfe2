"""Every benchmark can be started, the page about them names them all, and they say what they lack."""

import importlib
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
COMMANDS = sorted(path.stem for path in FOLDER.glob("*.py") if "def main(" in path.read_text())
PAGE = (FOLDER / "README.md").read_text()


@pytest.fixture
def start(monkeypatch):
    """Run a command as from the shell."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run(name, *options):
        monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", *map(str, options)])
        importlib.import_module(name).main()

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_each_tells_its_command_and_stands_on_the_page(start, name, capsys):
    with pytest.raises(SystemExit) as stop:
        start(name, "--help")
    assert stop.value.code == 0
    told = capsys.readouterr().out
    assert f"python benchmarks/{name}.py" in told
    assert "--out" in told
    assert f"    python benchmarks/{name}.py" in PAGE


def test_the_page_names_no_command_that_is_not_there():
    assert set(re.findall(r"python benchmarks/(\w+)\.py", PAGE)) == set(COMMANDS)


def test_a_command_without_its_data_says_what_and_where(start, tmp_path, capsys):
    start("peers", "--data", tmp_path / "nowhere", "--out", tmp_path / "out")
    told = capsys.readouterr().out
    for kind, source in (("enron", "Enron-Spam"), ("multilabel", "MULAN"), ("letor", "Microsoft")):
        assert re.search(rf"skipped: {kind}/ needs --data DATA .*{source}", told)


def test_a_report_holds_what_was_printed_and_how_to_get_it(start, tmp_path, capsys):
    start("peers", "--data", tmp_path / "nowhere", "--only", "mail", "--out", tmp_path / "out")
    written = (tmp_path / "out" / "report.md").read_text()
    assert "    python benchmarks/peers.py --data DATA --only mail\n" in written
    assert str(tmp_path) not in written
    assert written.strip() in capsys.readouterr().out
