"""A store that is opened for reading is never written, and none is made."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from postgres_server import ask
from store_logs import fill_every_kind, run

from feedrank.service.contract import faults as errors
from feedrank.service.store import Draft


def test_nothing_is_made_where_only_reading_was_asked_for(store_url, tmp_path, redis_server):
    with pytest.raises(errors.StoreRefused, match="there is no store at"):
        run(store_url, fill_every_kind, read_only=True)
    assert list(tmp_path.iterdir()) == []
    if store_url.startswith("redis"):
        assert redis_server.ask(b"DBSIZE").startswith(b":0")
    elif store_url.startswith("postgresql"):
        assert ask(store_url, "SELECT 1 FROM pg_namespace WHERE nspname = 'feedrank'") == []


def test_a_store_that_was_opened_for_reading_takes_no_write(with_store, store_url):
    with_store(fill_every_kind)

    async def look(store):
        assert await store.examine("a") == []
        assert len(await store.read("a", 0, 10)) == 7
        assert (await store.snapshot("a", 7)).data == b"data" * 100
        for write in (
            store.append("a", [Draft(b"x")]),
            store.check(),
            store.drop("a"),
            store.put("k", "n", b"", 0),
        ):
            with pytest.raises(errors.StoreUnavailable, match="reading only"):
                await write
        assert (await store.head("a")).version == 7

    run(store_url, look, read_only=True)


def test_a_backup_that_cannot_be_written_can_be_read():
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        run(f"sqlite:{folder / 'a.db'}", fill_every_kind)
        (folder / "a.db-lock").unlink()
        (folder / "a.db").chmod(0o444)
        folder.chmod(0o555)
        if root:
            os.seteuid(65534)  # nobody: root may write what is read-only

        async def look(store):
            assert await store.examine("a") == []
            assert (await store.head("a")).version == 7

        run(f"sqlite:{folder / 'a.db'}", look, read_only=True)
        assert [path.name for path in folder.iterdir()] == ["a.db"]
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)
