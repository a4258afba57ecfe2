"""Every benchmark can be started, has a page and a row in the index, and says what it lacks."""

import importlib
import re
import sys
from pathlib import Path

import pytest

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
