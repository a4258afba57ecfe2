"""A store that another package brings by an entry point; and what contract/store_url.py and store/open.py make of a URL."""

import asyncio
import os
import subprocess
import sys

import pytest
from store_logs import fill_every_kind, opened, run

from feedrank.service.contract.faults import StoreRefused
from feedrank.service.contract.settings import Settings, SettingsError
from feedrank.service.contract.store_url import shown, with_password
from feedrank.service.runtime import Host

MODULE = """
from feedrank.service.contract.faults import StoreRefused
from feedrank.service.store.sql.sqlite import SqliteStore

CALLS = []

async def open_store(url, *, read_only, arithmetic):
    CALLS.append((url, read_only, arithmetic > 0))
    if "refused" in url:
        raise StoreRefused("cannot use this one")
    return SqliteStore(url.removeprefix("other://"), read_only=read_only, arithmetic=arithmetic)
"""


@pytest.fixture
def other(tmp_path, monkeypatch):
    """A package beside ours that brings `other:` stores, and `broken:` ones."""
    folder = tmp_path / "packages"
    metadata = folder / "otherstore-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "otherstore.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: otherstore\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[feedrank.stores]\nother = otherstore:open_store\nbroken = otherstore.missing:open_store\n"
    )
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("otherstore", None)


def test_another_package_brings_a_store(other, tmp_path):
    url = f"other://{tmp_path / 'a.db'}"

    async def main():
        async with Host.open(url, Settings(store=url)) as host:
            await host.create("l", {"task": "multiclass"})
            assert (await host.feedback("l", {"features": ["x"], "label": "a"}))["version"] == 1
        async with opened(url, read_only=True) as store:
            assert await store.count("name") == 1

    asyncio.run(main())
    import otherstore

    assert [(url, False, True), (url, True, False)] == otherstore.CALLS


def test_what_it_refuses_and_what_cannot_be_loaded_is_said_in_one_line(other):
    with pytest.raises(StoreRefused, match="cannot use this one"):
        run("other://refused", fill_every_kind)
    with pytest.raises(StoreRefused, match="which brings broken: stores: No module named"):
        run("broken://x", fill_every_kind)
    with pytest.raises(SettingsError, match="not 'unknown://x'"):
        Settings(store="unknown://x")


def test_the_laws_run_over_it_in_a_checkout(other, tmp_path):
    """As docs/operating.md says."""
    path = os.pathsep.join([str(other), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/service/test_store_values.py",
        "-k",
    ]
    done = subprocess.run(
        [*command, "other and documents_change"],
        env={**os.environ, "PYTHONPATH": path, "FEEDRANK_TEST_STORE": f"other://{tmp_path}/{{}}.db"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_psycopg_a_postgres_store_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith("feedrank.service.store.sql.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(StoreRefused, match=r"pip install 'feedrank\[postgres\]'"):
        run("postgresql://localhost/x", fill_every_kind)


def test_a_password_comes_into_the_address_and_is_not_shown():
    url = with_password("postgresql://me@host:5432/db?sslmode=require", "a b/@")
    assert url == "postgresql://me:a%20b%2F%40@host:5432/db?sslmode=require"
    assert shown(url) == "postgresql://host:5432/db"
    assert with_password("redis://host/0", "x") == "redis://:x@host/0"
    for wrong in ("redis://me@host/0", "postgresql://me:word@host/db", "sqlite:a.db"):
        with pytest.raises(ValueError, match="takes one from a file"):
            with_password(wrong, "x")
