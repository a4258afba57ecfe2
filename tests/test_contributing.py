"""The four files of CONTRIBUTING.md, added to a copy of the tree as the page says, keep the laws."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", PAGE, flags=re.M | re.S))
LINES = re.findall(r"^Its line: `(.*)`$", PAGE, flags=re.M)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    shutil.copytree(
        ROOT / "learners", folder / "feedrank/learners", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "feedrank/__init__.py", folder / "feedrank")
    for path, text in FILES.items():
        assert not (ROOT / path).exists()
        (folder / "feedrank" / path).write_text(text)
    laws = (ROOT / "tests/learners/test_laws.py").read_text()
    changed = laws.replace("SPECS = [\n", "SPECS = [\n" + "".join(f"    {line}\n" for line in LINES))
    for part in [*(ROOT / "tests/learners").glob("test_*laws.py"), ROOT / "tests/parts/task_events.py"]:
        shutil.copy(part, folder)
    (folder / "test_laws.py").write_text(changed)
    return folder


def run(tree, *words):
    environ = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)


def test_the_page_has_a_file_and_a_line_for_each():
    assert len(FILES) == len(LINES) == 4


def test_what_it_adds_keeps_the_laws(tree):
    done = run(
        tree,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "ranknet or overlap or top-label or priors",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 4 * 10


def test_what_it_adds_is_in_the_reference(tree):
    page = run(tree, "-c", "from feedrank.learners import spec_page; print(spec_page.page())").stdout
    for name in ("ranknet", "overlap", "top-label", "priors"):
        assert f"`{name}`" in page
