"""`scripts/page_figures.py`: tables of a report take the place of those with the same titles."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parent.parent / "scripts" / "page_figures.py"
PAGE = """# X

    python benchmarks/x.py --data DATA
    python benchmarks/x.py --more

Words.

| `a` | b |
|---|---|
| 1 | 2 |

| a | b |
|---|---|
| 3 | 4 |

| c |
|---|
| kept |
"""
REPORT = """# X

    python benchmarks/x.py

Commit abc1234; Python 3

| a | b |
|---|---|
| 5 | 6 |
| 7 | 8 |

| a | b |
|---|---|
| 9 | 10 |
"""


@pytest.fixture(scope="module")
def taken():
    spec = importlib.util.spec_from_file_location("page_figures", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.taken


def test_tables_go_to_their_places_and_the_commit_behind_the_command(taken):
    page = taken(PAGE, REPORT, "x")
    assert (
        "x.py --more\n\nCommit abc1234; Python 3\n\nWords.\n\n| a | b |\n|---|---|\n| 5 | 6 |\n| 7 | 8 |\n"
        in page
    )
    assert page.endswith("| 9 | 10 |\n\n| c |\n|---|\n| kept |\n")
    assert taken(page, REPORT, "x") == page


def test_a_table_without_a_place_is_refused(taken):
    with pytest.raises(SystemExit, match="too few, with these titles"):
        taken(PAGE, REPORT.replace("| a | b |", "| a | c |", 1), "x")
