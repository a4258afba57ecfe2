"""Older stores, without checksums or without what a snapshot leaves out, are brought up to date."""

import sqlite3
import struct

import pytest
from redis import Redis
from store_logs import run

from feedrank.service.contract import faults as errors
from feedrank.service.store import Draft, Position, Snapshot, keys
from feedrank.service.store.sqlite_schema import APPLICATION, MIGRATIONS, SCHEMA


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
