"""Put the tables of a benchmark's last report into its page: benchmarks/results/NAME/report.md -> benchmarks/NAME.md.

    python benchmarks/enron.py --data DATA && python scripts/page_figures.py enron

A table takes the place of that one of the page, or of --page, which has the same titles: of several with the same titles
the first goes to the first. The line of the commit and the versions follows the first command that the page names.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"^(\|.*)\n(\|---.*)\n((?:\|.*\n)*)", re.MULTILINE)
MACHINE = re.compile(r"^Commit .*\n\n?", re.MULTILINE)


def taken(page: str, report: str, command: str) -> str:
    """The page with the tables of the report."""
    fresh: dict[str, list[str]] = {}
    for table in TABLE.finditer(report):
        fresh.setdefault(_titles(table[1]), []).append(table[0])

    def replaced(table: re.Match[str]) -> str:
        waiting = fresh.get(_titles(table[1]))
        return waiting.pop(0) if waiting else table[0]

    page = TABLE.sub(replaced, page)
    left = [titles for titles, tables in fresh.items() if tables]
    if left:
        raise SystemExit("the page has no table, or too few, with these titles: " + "; ".join(left))
    machine = MACHINE.search(report)
    if machine is None:
        raise SystemExit("the report names no commit")
    page = MACHINE.sub("", page)
    lines = page.split("\n")
    at = next(i for i, line in enumerate(lines) if f"python benchmarks/{command}.py" in line)
    while lines[at].strip():
        at += 1
    return "\n".join([*lines[:at], "", machine[0].strip(), *lines[at:]])


def _titles(head: str) -> str:
    return " ".join(head.replace("`", "").split())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="of the command, as in benchmarks/NAME.py")
    parser.add_argument("--report", type=Path, help="report.md, if not that of benchmarks/results/NAME/")
    parser.add_argument("--page", type=Path, help="the page, if not benchmarks/NAME.md")
    options = parser.parse_args()
    folder = ROOT / "benchmarks"
    report = options.report or folder / "results" / options.name / "report.md"
    page = options.page or folder / f"{options.name}.md"
    page.write_text(taken(page.read_text("utf-8"), report.read_text("utf-8"), options.name), "utf-8")


if __name__ == "__main__":
    main()
