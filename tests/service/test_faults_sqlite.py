"""SQLite files that are full, read-only, in use, foreign, newer or damaged. On a disk that is full: test_faults_disk.py."""

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host
from feedrank.service.store import Draft, open_store
from feedrank.service.store.sql.sqlite_connection import connect
from feedrank.service.store.sql.sqlite_schema import APPLICATION, MIGRATIONS, SCHEMA

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def event(i):
    return {
        "features": {f"word{i}-{j}": 1.0 for j in range(200)},
        "label": "abc"[i % 3],
        "feedback_id": f"f{i}",
    }


@contextmanager
def small_pages(host):
    """No page more for the database: SQLITE_FULL, as on a full disk."""
    writer = host.store._writer._connection
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")
    yield
    writer.execute("PRAGMA max_page_count = 1000000000")


@contextmanager
def small_files(host):
    """No file of this process may grow: the kernel refuses the write itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    wal = Path(f"{host.store.path}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 8192, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(host):
    """The file refuses every write."""
    host.store._writer._connection.execute("PRAGMA query_only = ON")
    yield
    host.store._writer._connection.execute("PRAGMA query_only = OFF")


@pytest.mark.parametrize("fault", [small_pages, small_files, read_only])
def test_what_cannot_be_written_is_not_acknowledged_and_service_recovers(tmp_path, fault):
    url = f"sqlite:{tmp_path / 'a.db'}"
    replies = {}

    async def fill(host, start, count):
        """Send until a refusal; what was acknowledged stays in `replies`."""
        for i in range(start, start + count):
            replies[i] = await host.feedback("a", event(i))

    async def main():
        async with Host.open(url, Settings(snapshot_every=10)) as host:
            await host.create("a", SPEC)
            await fill(host, 0, 5)
            with fault(host):
                with pytest.raises(errors.StoreUnavailable) as caught:
                    await fill(host, 5, 1000)
                assert caught.value.headers["Retry-After"]
                refused = len(replies)
                assert (await host.predict("a", {"features": ["x"], "remember": False}))["version"] == refused
                sent = (host.feedback("a", event(2000 + i)) for i in range(20))
                many = await asyncio.gather(*sent, return_exceptions=True)
                assert any(isinstance(one, errors.StoreUnavailable) for one in many)
                replies.update({2000 + i: one for i, one in enumerate(many) if isinstance(one, dict)})
                if fault is read_only:
                    with pytest.raises(errors.StoreUnavailable):
                        await host.ready()
            await host.ready()
            await fill(host, refused, 10)
            assert host.stats()["store_errors"] >= 2
            return await host.export("a")

    async def after():
        async with Host.open(url) as host:
            assert await host.export("a") == exported
            assert (await host.info("a"))["version"] == len(replies)
            for i, reply in replies.items():
                assert await host.feedback("a", event(i)) == {**reply, "duplicate": True}

    exported = asyncio.run(main())
    asyncio.run(after())


def test_one_poisoned_write_does_not_take_the_others_with_it(tmp_path):
    async def main():
        store = await open_store(f"sqlite:{tmp_path / 'a.db'}")

        def poison(db):
            db.execute("INSERT INTO entries (key, at, body) VALUES (1, 0, NULL)")

        sent = [store.append("log", [Draft(b"%d" % i)]) for i in range(10)]
        sent.insert(5, store._writer.run(poison))
        results = await asyncio.gather(*sent, return_exceptions=True)
        assert isinstance(results.pop(5), errors.StoreUnavailable)
        assert [place.version for (place,) in results] == list(range(1, 11))
        await store.close()

    asyncio.run(main())


def test_the_log_says_once_that_writes_fail_and_once_that_they_are_taken_again(tmp_path, caplog):
    async def main():
        store = await open_store(f"sqlite:{tmp_path / 'a.db'}")

        async def append(id):
            await store.append("log", [Draft(bytes(100_000), (id,))])

        await append("a")
        with small_pages(SimpleNamespace(store=store)):
            for id in "bc":
                with pytest.raises(errors.StoreUnavailable):
                    await append(id)
            await append("a")  # is there, so nothing is written
        assert len(caplog.records) == 1
        await append("b")
        await append("c")
        await store.close()

    asyncio.run(main())
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "SQLite did not take a write",
        "SQLite takes writes again",
    ]


def test_a_writer_that_cannot_be_opened_again_is_tried_with_the_next_write(tmp_path):
    def unable():
        raise sqlite3.OperationalError("unable to open database file")

    async def main():
        store = await open_store(f"sqlite:{tmp_path / 'a.db'}")
        writer, reconnect = store._writer, store._writer._reconnect
        writer._connection.close()
        for opened in (unable, unable, reconnect):
            writer._reconnect = opened
            with pytest.raises(errors.StoreUnavailable):
                await store.append("log", [Draft(b"x")])
        assert [place.version for place in await store.append("log", [Draft(b"x")])] == [1]
        await store.close()

    asyncio.run(main())


# Opening


def refusal(url):
    async def main():
        store = await open_store(url)
        await store.close()

    with pytest.raises(errors.StoreRefused) as caught:
        asyncio.run(main())
    assert "\n" not in caught.value.detail
    return caught.value.detail


def make(path):
    async def main():
        store = await open_store(f"sqlite:{path}")
        await store.append("log", [Draft(b"x")])
        await store.close()

    asyncio.run(main())


def test_a_second_process_is_refused_and_told_who_has_the_file(tmp_path):
    async def main():
        store = await open_store(f"sqlite:{tmp_path / 'a.db'}")
        code = (
            "import asyncio, sys; from feedrank.service.store import open_store\n"
            "try: asyncio.run(open_store(sys.argv[1]))\n"
            "except Exception as error: print(type(error).__name__, error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, f"sqlite:{tmp_path / 'a.db'}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("StoreRefused")
        assert f"in use by process {os.getpid()}" in done.stdout
        await store.append("log", [Draft(b"x")])
        await store.close()

    asyncio.run(main())
    make(tmp_path / "b.db")
    make(tmp_path / "b.db")  # the lock goes with its owner


def foreign(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()


def newer(path):
    make(path)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    db.close()


def text(path):
    path.write_text("a letter to my aunt, " * 50)


def short(path):
    path.write_bytes(b"SQLite format 3\0")


def damaged(path):
    make(path)
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (foreign, "another program"),
        (newer, "newer feedrank"),
        (text, "not a database of feedrank"),
        (short, "not a database of feedrank"),
        (damaged, "damaged"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_untouched(tmp_path, spoil, said):
    path = tmp_path / "a.db"
    spoil(path)
    before = path.read_bytes()
    assert said in refusal(f"sqlite:{path}")
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    assert "is a directory" in refusal(f"sqlite:{tmp_path}")
    (tmp_path / "file").touch()
    assert "Not a directory" in refusal(f"sqlite:{tmp_path / 'file' / 'a.db'}")


def test_a_read_only_file_is_refused():
    folder = Path(tempfile.mkdtemp())
    try:
        make(folder / "a.db")
        (folder / "a.db").chmod(0o444)
        (folder / "a.db-lock").chmod(0o666)
        folder.chmod(0o777)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)  # nobody: root may write what is read-only
        try:
            assert "readonly" in refusal(f"sqlite:{folder / 'a.db'}")
        finally:
            if root:
                os.seteuid(0)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("url", ["", "sqlite:", "mysql://x", "redis", "a.db"])
def test_a_url_of_no_store_is_refused(url):
    assert "sqlite:PATH" in refusal(url)


def test_an_older_schema_is_brought_up_to_date(tmp_path):
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.executescript(f"PRAGMA application_id = {APPLICATION}; {MIGRATIONS[0]}; PRAGMA user_version = 1;")
    db.execute("INSERT INTO documents VALUES ('kind', 'name', 1, x'41')")
    db.commit()
    db.close()

    async def main():
        store = await open_store(f"sqlite:{path}")
        assert (await store.get("kind", "name")).value == b"A"
        await store.append("log", [Draft(b"x")])
        await store.close()

    asyncio.run(main())
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_what_cannot_be_read_is_unavailable_and_counted(tmp_path, caplog):
    """Whatever a reading call meets: here, connections that were closed."""

    async def main():
        store = await open_store(f"sqlite:{tmp_path / 'a.db'}")
        await store.append("a", [Draft(b"x", ("i",))])
        point, reach = store._point, store._range
        store._point, store._range = (connect(":memory:") for _ in range(2))
        store._point.close()
        store._range.close()
        reads = [
            lambda: store.find("a", "i"),
            lambda: store.head("a"),
            lambda: store.positions(["a"]),
            lambda: store.outcome("a", 1),
            lambda: store.recall("a", "p"),
            lambda: store.get("kind", "name"),
            lambda: store.count("kind"),
            lambda: store.read("a", 0, 1),
            lambda: store.snapshot("a", 1),
            lambda: store.page("kind", "", 1),
            lambda: store.examine("a"),
            lambda: store.due(0.0, 1),
        ]
        for read in reads:
            with pytest.raises(errors.StoreUnavailable):
                await read()
        assert store.failures == len(reads)
        store._point, store._range = point, reach
        assert await store.find("a", "i") == (1, "")
        await store.close()

    asyncio.run(main())
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "SQLite did not answer",
        "SQLite answers again",
    ]


def test_a_folder_that_is_made_is_synced_in_the_one_above(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def note(handle):
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)

    async def main():
        store = await open_store(f"sqlite:{tmp_path / 'one' / 'two' / 'a.db'}")
        await store.close()

    asyncio.run(main())
    assert {str(tmp_path), str(tmp_path / "one"), str(tmp_path / "one" / "two")} <= set(synced)
