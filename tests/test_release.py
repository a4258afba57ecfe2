"""The release script dates the changelog's entry of this version, and the workflow publishes without a token."""

import datetime
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def locked():
    """The packages of docker/requirements.lock with their versions, and its lines that name one."""
    text = (ROOT / "docker" / "requirements.lock").read_text()
    entry = r"^([\w.-]+)==(\S+)(?: ; .*)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+"
    return re.findall(entry, text, re.M), re.findall(r"^\w.*", text, re.M)


def test_the_lock_holds_what_pyproject_asks_for_each_with_its_checksums():
    """Offline; `scripts/lock --check` asks an index too, in CI."""
    packages, lines = locked()
    assert len(lines) == len(packages) > 20
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + extras["service"] + extras["postgres"][1:]
    for line in [*wanted, *project["dependency-groups"]["build"]]:
        requirement = Requirement(line)
        versions = [version for name, version in packages if name == canonicalize_name(requirement.name)]
        assert versions, line
        assert all(version in requirement.specifier for version in versions), line


def test_the_image_installs_from_the_lock_and_nothing_else():
    steps = (ROOT / "docker" / "build.sh").read_text()
    assert "--require-hashes --no-deps --only-binary :all:" in steps
    assert "--no-deps --no-index" in steps
    assert "requirements.lock" in (ROOT / "docker" / "Dockerfile").read_text()
    check = (ROOT / ".github/workflows/check.yml").read_text()
    assert "scripts/lock --check" in check


def test_the_release_says_where_each_file_came_from_and_what_is_in_it():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    steps = {name: str(job["steps"]) for name, job in jobs.items()}
    assert {"ubuntu-24.04", "ubuntu-24.04-arm"} <= set(jobs["wheels"]["strategy"]["matrix"]["os"])
    assert "cibuildwheel" in steps["wheels"]
    assert "--sbom=true --provenance=mode=max" in steps["image"]
    assert "BASE" in steps["image"]
    assert "attest-build-provenance" in steps["image"]
    assert "attest-build-provenance" in steps["attest"]
    assert "attest-sbom" in steps["attest"]
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}


def test_publishing_needs_no_token():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "password" not in text
    assert "secrets." not in text
