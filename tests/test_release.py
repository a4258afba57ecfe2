"""The release script dates the changelog's entry of this version, and the workflow publishes without a token."""

import datetime
import importlib.util
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


def test_publishing_needs_no_token():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    assert "password" not in text
    assert "secrets." not in text
