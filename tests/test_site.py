"""The documentation site builds, with every link checked, and asks no other host for anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent

pytest.importorskip("material", reason="needs mkdocs-material, of the group docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, ROOT / "scripts/site_pages.py", folder / "pages"], check=True)
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file"]
    done = subprocess.run(
        [*build, folder / "mkdocs.yml"],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_every_page_is_on_the_site_and_can_be_searched(site):
    index = (site / "search/search_index.json").read_text()
    for page in ROOT.glob("docs/*.md"):
        assert (site / "docs" / f"{page.stem}.html").exists()
        assert f"docs/{page.stem}.html" in index
    assert "default_reward" in index
    assert "POST /v1/learners/{name}/feedback" in (site / "reference/calls.html").read_text()
    assert "InvalidResponse" in (site / "reference/python.html").read_text()


def test_nothing_is_loaded_from_other_hosts(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img)[^>]*\ssrc="([^"]+)"|<link[^>]*\shref="([^"]+)"', text)
        assert not [address for pair in loaded for address in pair if address.startswith(("http", "//"))]


def test_learners_of_different_pages_have_different_names():
    """Somebody who pastes two guides into one server meets no learner of another spec."""
    made: dict[str, tuple[str, str]] = {}
    for page in sorted(ROOT.glob("docs/*.md")):
        for name, spec in re.findall(r"-X PUT \S*/v1/learners/([\w.-]+) -d '(.*?)'", page.read_text(), re.S):
            other, theirs = made.setdefault(name, (page.name, spec))
            assert theirs == spec, f"{page.name} and {other} make different learners of the name {name}"
