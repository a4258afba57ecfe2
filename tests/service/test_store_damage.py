"""A changed byte is noticed, whatever it was part of; older stores without checksums are brought up to date."""

import asyncio
import os
import shutil
import sqlite3
import struct
import tempfile
from pathlib import Path

import pytest
from redis import Redis

from feedrank.service.contract import faults as errors
from feedrank.service.runtime import Host
from feedrank.service.store import Damaged, Draft, Position, Record, Snapshot, keys, open_store
from feedrank.service.store.sqlite_schema import APPLICATION, MIGRATIONS, SCHEMA


def run(url, body, **options):
    async def main():
        store = await open_store(url, **options)
        try:
            return await body(store)
        finally:
            await store.close()

    return asyncio.run(main())


async def fill(store):
    """A log with something of every kind."""
    await store.remember("a", {"p": b"record-p", "q": Record(b"record-q", "digest", due=1.0)}, 6000)
    drafts = [Draft(b"body-%d" % i, ids=(f"id{i}",), digest="same") for i in range(1, 6)]
    await store.append("a", [*drafts, Draft(b"body-6", take="p")])
    await store.append("a", [Draft(b"body-7", retracts=2)])
    await store.save("a", Snapshot(7, "digest", b"data" * 100), {3: b"outcome-3"}, keep=1, floor=1)
    await store.put("kind", "name", b"document", 0)


def flip(value):
    """The same with one bit changed, in the middle of what the store was given."""
    return value[:-2] + bytes([value[-2] ^ 1]) + value[-1:]


SQLITE = {
    "entry": ("entries", "body", "key & 255 = 3"),
    "time": ("entries", "at", "key & 255 = 3"),
    "chain": ("entries", "chain", "key & 255 = 7"),
    "head": ("logs", "chain", "1"),
    "taken": ("entries", "taken", "key & 255 = 6"),
    "retracted": ("entries", "retracted", "key & 255 = 2"),
    "retracts": ("entries", "retracts", "key & 255 = 7"),
    "record": ("records", "value", "key = 'q'"),
    "snapshot": ("parts", "data", "1"),
    "outcome": ("outcomes", "value", "1"),
    "id": ("ids", "digest", "id = 'id3'"),
}


@pytest.mark.parametrize("what", SQLITE)
def test_a_changed_byte_in_sqlite_is_noticed(tmp_path, what):
    url = f"sqlite:{tmp_path / 'a.db'}"
    run(url, fill)
    table, column, where = SQLITE[what]
    db = sqlite3.connect(tmp_path / "a.db")
    ((value,),) = db.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchall()
    if isinstance(value, bytes):
        changed = flip(value)
    else:
        changed = (
            value + 1 if isinstance(value, int | float) else value[:-1] + ("0" if value[-1] != "0" else "1")
        )
    db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (changed,))
    db.commit()
    db.close()
    noticed(url, what)


def noticed(url, what):
    async def look(store):
        problems = await store.examine("a")
        assert len(problems) == (2 if what == "head" and url.startswith("sqlite") else 1), problems
        if what in {"entry", "time", "taken", "chain", "retracted", "retracts"}:
            with pytest.raises(Damaged) as caught:
                await store.read("a", 0, 100)
            version = {"entry": 3, "time": 3, "taken": 6, "chain": 7, "retracted": 2, "retracts": 7}[what]
            assert caught.value.version == version
            assert str(version) in caught.value.reason
        elif what == "record":
            with pytest.raises(Damaged):
                await store.recall("a", "q")
        elif what == "snapshot":
            with pytest.raises(Damaged, match="snapshot at version 7"):
                await store.snapshot("a", 7)
        elif what == "outcome":
            with pytest.raises(Damaged):
                await store.outcome("a", 3)
        elif what == "id":
            with pytest.raises(Damaged):
                await store.find("a", "id3")
            with pytest.raises(Damaged):
                await store.append("a", [Draft(b"body-3", ids=("id3",), digest="same")])

    run(url, look)


def change_hash(client, part, field):
    name = keys.log("a", part)
    client.hset(name, field, flip(client.hget(name, field)))


def change_entry(client, field):
    """Entries of a stream cannot be changed: write all of them anew, one of them other."""
    name = keys.log("a", "log")
    rows = client.xrange(name)
    client.delete(name)
    for id, fields in rows:
        if id == {b"b": b"3-0", b"a": b"3-0", b"t": b"6-0", b"c": b"7-0", b"r": b"7-0"}[field]:
            fields[field] = b"3" if field == b"r" else flip(fields[field])
        client.xadd(name, fields, id=id)


REDIS = {
    "entry": lambda client: change_entry(client, b"b"),
    "time": lambda client: change_entry(client, b"a"),
    "taken": lambda client: change_entry(client, b"t"),
    "chain": lambda client: change_entry(client, b"c"),
    "retracts": lambda client: change_entry(client, b"r"),
    "retracted": lambda client: client.hset(keys.log("a", "retracted"), 2, 6),
    "head": lambda client: change_hash(client, "meta", "chain"),
    "record": lambda client: change_hash(client, "records", "q"),
    "outcome": lambda client: change_hash(client, "outcomes", 3),
    "id": lambda client: change_hash(client, "ids", "id3"),
    "snapshot": lambda client: [client.set(name, flip(client.get(name))) for name in client.keys("*:part:*")],
}


@pytest.mark.parametrize("what", REDIS)
def test_a_changed_byte_in_redis_is_noticed(redis_server, what):
    redis_server.ask(b"FLUSHALL")
    run(redis_server.url, fill)
    with Redis(port=redis_server.port) as client:
        REDIS[what](client)
    noticed(redis_server.url, what)


def test_a_changed_document_is_noticed(with_store, store_url, redis_server):
    with_store(fill)
    if store_url.startswith("sqlite"):
        db = sqlite3.connect(store_url.removeprefix("sqlite:"))
        ((value,),) = db.execute("SELECT value FROM documents").fetchall()
        db.execute("UPDATE documents SET value = ?", (flip(value),))
        db.commit()
        db.close()
    else:
        with Redis(port=redis_server.port) as client:
            name = keys.documents("kind", "values")
            client.hset(name, "name", flip(client.hget(name, "name")))

    async def look(store):
        with pytest.raises(Damaged, match="kind/name"):
            await store.get("kind", "name")
        with pytest.raises(Damaged):
            await store.page("kind", "", 10)

    with_store(look)


# Reading only


def test_nothing_is_made_where_only_reading_was_asked_for(tmp_path, redis_server):
    redis_server.ask(b"FLUSHALL")
    for url in (f"sqlite:{tmp_path / 'none.db'}", redis_server.url):
        with pytest.raises(errors.StoreRefused, match="there is no store at"):
            run(url, fill, read_only=True)
    assert list(tmp_path.iterdir()) == []
    assert redis_server.ask(b"DBSIZE").startswith(b":0")


def test_verify_says_what_is_damaged_and_makes_no_store(tmp_path, capsys):
    from feedrank.service.commands.rebuild import verify

    def said(path):
        with pytest.raises(SystemExit) as caught:
            verify(["--store", f"sqlite:{path}"])
        output = capsys.readouterr()
        return caught.value.code, output.out + output.err

    path = tmp_path / "a.db"
    assert said(path) == (1, f"feedrank: there is no store at {path}\n")
    assert list(tmp_path.iterdir()) == []
    spec = {"task": "multiclass", "algorithm": "predtron"}

    async def teach():
        async with Host.open(f"sqlite:{path}") as host:
            await host.create("name", spec)
            for i in range(3):
                await host.feedback("name", {"features": ["word"], "label": "ab"[i % 2]})

    asyncio.run(teach())
    assert said(path) == (0, "1 learners, 3 events: sound\n")
    db = sqlite3.connect(path)
    db.execute("UPDATE entries SET body = replace(body, 'word', 'ward') WHERE key & 255 = 2")
    db.execute("UPDATE entries SET body = cast(body AS BLOB)")
    db.commit()
    db.close()
    code, text = said(path)
    assert code == 1
    assert "name: entry 2 has changed since it was written" in text


def test_a_store_that_was_opened_for_reading_takes_no_write(with_store, store_url):
    with_store(fill)

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
        run(f"sqlite:{folder / 'a.db'}", fill)
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


# Older stores


async def sound(store):
    """What the older store had is there, chained and sealed, and goes on."""
    assert await store.examine("a") == []
    entries = await store.read("a", 2, 10)
    assert [(e.version, e.body, e.taken, e.retracted, e.retracts) for e in entries] == [
        (3, b"body-3", None, 4, 0),
        (4, b"body-4", b"taken", 0, 3),
    ]
    assert await store.read("a", 3, 10, entries[0].chain) == entries[1:]
    assert await store.snapshot("a", 2) == Snapshot(2, "digest", b"data", entries[0].previous, without=4)
    assert await store.outcome("a", 3) == b"outcome"
    assert await store.find("a", "id3") == (3, "same")
    assert await store.recall("a", "r") == b"record"
    assert (await store.get("kind", "name")).value == b"document"
    head = await store.head("a")
    assert head.position == Position(4, entries[1].chain)
    await store.append("a", [Draft(b"body-5", take="r")], head.position)
    assert (await store.read("a", 4, 1))[0].taken == b"record"
    await store.save("a", Snapshot(4, "d4", b"d", head.chain), {}, keep=2, floor=1, forget=3)
    assert await store.find("a", "id3") is None


def test_an_older_sqlite_file_gets_its_chains(tmp_path):
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.executescript(
        f"PRAGMA application_id = {APPLICATION}; {MIGRATIONS[0]}; {MIGRATIONS[1]}; PRAGMA user_version = 2;"
    )
    db.execute("INSERT INTO logs VALUES (1, 'a', 4, 3, 4, 0)")
    at = 1 << 32
    db.execute("INSERT INTO entries VALUES (?, 10.5, 4, ?, NULL)", (at + 3, b"body-3"))
    db.execute("INSERT INTO entries VALUES (?, 11.5, 0, ?, ?)", (at + 4, b"body-4", b"taken"))
    db.execute("INSERT INTO ids VALUES (1, 'id3', 3, 'same')")
    db.execute("INSERT INTO outcomes VALUES (?, ?)", (at + 3, b"outcome"))
    db.execute("INSERT INTO snapshots VALUES (?, 'digest', ?)", (at + 2, b"data"))
    db.execute("INSERT INTO records VALUES ('a', 'r', 1e12, ?)", (b"record",))
    db.execute("INSERT INTO documents VALUES ('kind', 'name', 1, ?)", (b"document",))
    db.commit()
    db.close()
    with pytest.raises(errors.StoreRefused, match="older feedrank"):
        run(f"sqlite:{path}", sound, read_only=True)
    run(f"sqlite:{path}", sound)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    db.close()


def test_an_older_redis_gets_its_chains(redis_server):
    redis_server.ask(b"FLUSHALL")
    with Redis(port=redis_server.port) as client:
        client.set(keys.FORMAT, 1)
        client.hset(keys.log("a", "meta"), mapping={"version": 4, "floor": 3, "marked": 4})
        client.xadd(keys.log("a", "log"), {"b": "body-3", "a": "10.5"}, id="3-0")
        client.xadd(keys.log("a", "log"), {"b": "body-4", "a": "11.5", "t": "taken"}, id="4-0")
        client.hset(keys.log("a", "ids"), "id3", "3 same")
        client.hset(keys.log("a", "marks"), "3", "4")
        client.hset(keys.log("a", "outcomes"), "3", "outcome")
        client.hset(keys.log("a", "snapshots"), "2", "digest")
        client.set(keys.log("a", "snapshot:2:digest"), "data")
        client.hset(keys.log("a", "records"), "r", struct.pack("<d", 1e12) + b"record")
        client.zadd(keys.log("a", "expiry"), {"r": 1e12})
        client.hset(keys.documents("kind", "values"), "name", "1 document")
        client.zadd(keys.documents("kind", "names"), {"name": 0})
        client.set(keys.documents("kind", "revision"), 1)
    with pytest.raises(errors.StoreRefused, match="older feedrank"):
        run(redis_server.url, sound, read_only=True)
    run(redis_server.url, sound)
    with Redis(port=redis_server.port) as client:
        assert int(client.get(keys.FORMAT)) == keys.LAYOUT
        assert client.keys("*snapshot:2*") == client.keys("*:marks") == client.keys("*:upgrade") == []


def test_a_snapshot_of_an_older_layout_says_what_it_leaves_out(redis_server, tmp_path):
    async def retracted(store):
        for body in (b"one", b"two", b"three"):
            await store.append("a", [Draft(body)])
        await store.save("a", Snapshot(1, "digest", b"data"), {}, keep=2, floor=1)
        await store.append("a", [Draft(b"r", retracts=2)])
        await store.save("a", Snapshot(3, "digest", b"data", without=4), {}, keep=2, floor=1)

    async def known(store):
        return [(await store.snapshot("a", version)).without for version in (1, 3)]

    redis_server.ask(b"FLUSHALL")
    run(redis_server.url, retracted)
    assert run(redis_server.url, known) == [0, 4]
    with Redis(port=redis_server.port, decode_responses=True) as client:
        name = keys.log("a", "snapshots")
        for version, row in client.hgetall(name).items():
            digest, chain, _, upload, parts = row.split(" ")
            client.hset(name, version, f"{digest} {chain} {upload} {parts}")
        client.set(keys.FORMAT, 2)
    assert run(redis_server.url, known) == [4, 4]

    path = tmp_path / "a.db"
    run(f"sqlite:{path}", retracted)
    assert run(f"sqlite:{path}", known) == [0, 4]
    db = sqlite3.connect(path)
    db.executescript("ALTER TABLE snapshots DROP COLUMN without; PRAGMA user_version = 3;")
    db.close()
    assert run(f"sqlite:{path}", known) == [4, 4]
