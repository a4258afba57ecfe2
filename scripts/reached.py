"""Which tests reach which line, and where each module is tested: `python scripts/reached.py` writes tests/where.md.

The suite runs once in a copy of the tree under `coverage`, which notes for each line the tests that ran it. Of each
module without a test file of its name, the page then names the two test files that alone reach most of its lines, or,
where no line is reached by one file only, the two that reach most. A process that a test starts is not followed; what
only such processes run has a line below the table, written by hand (`BY_HAND`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("learners", "service", "clients")
BY_HAND: dict[str, list[str]] = {}  # what only processes run that tests start


def copied(folder: Path) -> Path:
    """A copy of the tree, without what is made from it."""
    made = shutil.ignore_patterns(".venv", ".git", ".*_cache", "__pycache__")
    return Path(shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=made))


def run(tree: Path, *arguments: str, seconds: float | None = None) -> int:
    """How pytest ends in `tree`, whose packages are the ones that are imported there; 1 when it takes too long."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    with subprocess.Popen(  # noqa: S603
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return 1


def reaching(
    tree: Path, files: Iterable[str], marked: str, tests: list[str]
) -> dict[tuple[str, int], list[str]]:
    """For each line of `files` the tests that reach it while they run, those first that reach fewest lines."""
    data_file, settings = tree / ".coverage-reached", tree / ".coveragerc-reached"
    include = "".join(f"    */{path}\n" for path in files)
    settings.write_text(f"[run]\ndata_file = {data_file}\ninclude =\n{include}")
    noting = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
    if run(tree, *noting, "-n", "3", "--dist", "loadgroup", "-m", marked, *tests):
        raise SystemExit("the tests fail as they are: mend that first")
    data = coverage.CoverageData(str(data_file))
    data.read()
    lines: dict[tuple[str, int], set[str]] = defaultdict(set)
    for name in data.measured_files():
        path = str(Path(name).resolve().relative_to(tree.resolve()))
        for line, contexts in data.contexts_by_lineno(name).items():
            lines[path, line] |= {c.rsplit("|", 1)[0] for c in contexts if c.endswith("|run")}
    breadth = Counter(test for tests_of in lines.values() for test in tests_of)
    return {place: sorted(found, key=lambda t: (breadth[t], t)) for place, found in lines.items() if found}


def modules() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py"
    )


def without_own_test() -> list[str]:
    """The modules of whose name there is no test file in their package's part of tests/."""
    names = {
        (path.relative_to(ROOT / "tests").parts[0], path.name) for path in (ROOT / "tests").rglob("test_*.py")
    }
    return [m for m in modules() if (Path(m).parts[0], f"test_{Path(m).name}") not in names]


def rows(lines: dict[tuple[str, int], list[str]]) -> dict[str, list[str]]:
    """Of each module without a test file of its name the two files that alone reach most of its lines, or just most."""
    alone: dict[str, Counter[str]] = defaultdict(Counter)
    at_all: dict[str, Counter[str]] = defaultdict(Counter)
    for (path, _), tests in lines.items():
        files = {test.partition("::")[0] for test in tests}
        at_all[path].update(files)
        if len(files) == 1:
            alone[path].update(files)
    found = {}
    for module in without_own_test():
        best = alone[module] if len(alone[module]) > 1 else at_all[module]
        found[module] = [name for name, _ in sorted(best.items(), key=lambda item: (-item[1], item[0]))[:2]]
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        lines = reaching(copied(Path(folder)), modules(), "not slow and not artefact", [])
    table = rows(lines)
    written = [__doc__.split("\n\n")[1].replace("\n", " "), "", "| module | tested in |", "|---|---|"]
    for module, tests in table.items():
        by = ", ".join(f"`{name}`" for name in tests or BY_HAND[module])
        written.append(f"| `{module}` | {by} |")
    (ROOT / "tests/where.md").write_text(
        "# Where modules without a test file of their name are tested\n\n" + "\n".join(written) + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
