"""The release script dates the changelog's entry of this version, and the workflow publishes without a token."""

import datetime
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent
DAY = datetime.date(2026, 1, 2)


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_entry_of_this_version_gets_its_date(release):
    assert release.version() == feedrank.__version__
    dated = release.dated((ROOT / "CHANGELOG.md").read_text(), feedrank.__version__, DAY)
    assert f"## {feedrank.__version__}, 2026-01-02\n" in dated
    assert release.dated(dated, feedrank.__version__, DAY) == dated
    with pytest.raises(SystemExit, match="no entry"):
        release.dated("# Changes\n", feedrank.__version__, DAY)


def test_actions_are_pinned_by_commit():
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        uses = re.findall(r"uses: (\S+)(.*)", workflow.read_text())
        assert uses, workflow
        for action, comment in uses:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), (action, "say which version that is")


def test_a_change_runs_what_ci_runs():
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())
    assert {"pull_request", "push"} <= workflow[True].keys()  # YAML reads `on` as true
    steps = workflow["jobs"]["check"]["steps"]
    assert steps[-1] == {"run": ".ci/run"}
    assert workflow["permissions"] == {"contents": "read"}


def test_each_test_of_the_security_page_exists():
    page = (ROOT / "docs/security.md").read_text()
    shown = re.findall(r"`((?:tests|scripts)/[\w/.]+)`", page)
    assert len(set(shown)) > 20
    assert [path for path in shown if not (ROOT / path).exists()] == []
    table = page.split("OWASP ASVS")[1].split("## Reporting")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "ASVS" not in line]
    assert all(re.search(r"`(tests|scripts)/\S+` \|$", row) for row in rows)


def test_publishing_needs_no_token():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    assert "password" not in text
    assert "secrets." not in text
