"""Older stores, without checksums or without what a snapshot leaves out, are brought up to date."""

import sqlite3
import struct
import threading
import time
from pathlib import Path

import pytest
from postgres_server import ask
from redis import Redis, ResponseError
from redis.exceptions import RedisError
from store_logs import run

from feedrank.service.contract import faults as errors
from feedrank.service.contract.faults import StoreUnavailable
from feedrank.service.store import (
    Draft,
    Position,
    Record,
    Snapshot,
    keys,
    redis_records,
    redis_upgrade,
    shared,
)
from feedrank.service.store.sql.sqlite_schema import APPLICATION, MIGRATIONS, SCHEMA


def as_layout_3(client):
    """Give everything in this Redis the names that it had, and take away what was not there."""
    for key in client.scan_iter("feedrank4:*"):
        name = key if isinstance(key, str) else key.decode()
        client.rename(name, name.replace("feedrank4:", "feedrank:"))
    client.delete(keys.STORE, keys.UPGRADED)
    client.set(keys.FORMAT, 3)


class OldRelease:
    """The appends and memories of a process of layout 3, which goes on beside the upgrade: its scripts, its names."""

    def __init__(self, client):
        folder = Path(redis_upgrade.__file__).with_name("lua")
        self.client, self.texts = (
            client,
            {n: (folder / f"{n}.lua").read_text() for n in ("append", "remember")},
        )

    def append(self, log, body):
        kinds = ("meta", "log", "ids", "order", "retracted", "snapshots", "records", "expiry", "due")
        start = [log, "channel", repr(time.time()), keys.older(log, "part:"), shared.genesis(log), "", "", ""]
        one = [body, shared.checksum(body), "", "", "", 0, 0, "", 0]
        names = [keys.older(log, kind) for kind in kinds]
        reply = self.client.eval(self.texts["append"], len(names), *names, *start, *one)
        assert reply.startswith(b"placed"), reply

    def remember(self, log, key):
        kinds = ("records", "expiry", "due", "log", "meta", "ids", *keys.WAITING)
        names = [keys.older(log, kind) for kind in kinds]
        record = Record(b"record", due=1.0)
        row = [key, "", repr(1.0), "", "", redis_records.pack(record, time.time() + 600)]
        self.client.eval(
            self.texts["remember"],
            len(names),
            *names,
            repr(time.time()),
            600_000,
            repr(time.time() + 600),
            "",
            *row,
        )
        self.client.zadd("feedrank:due", {log: 1.0})


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
        client.hset(keys.older("a", "meta"), mapping={"version": 4, "floor": 3, "marked": 4})
        client.xadd(keys.older("a", "log"), {"b": "body-3", "a": "10.5"}, id="3-0")
        client.xadd(keys.older("a", "log"), {"b": "body-4", "a": "11.5", "t": "taken"}, id="4-0")
        client.hset(keys.older("a", "ids"), "id3", "3 same")
        client.hset(keys.older("a", "marks"), "3", "4")
        client.hset(keys.older("a", "outcomes"), "3", "outcome")
        client.hset(keys.older("a", "snapshots"), "2", "digest")
        client.set(keys.older("a", "snapshot:2:digest"), "data")
        client.hset(keys.older("a", "records"), "r", struct.pack("<d", 1e12) + b"record")
        client.zadd(keys.older("a", "expiry"), {"r": 1e12})
        client.hset(keys.older("documents:kind", "values"), "name", "1 document")
        client.zadd(keys.older("documents:kind", "names"), {"name": 0})
        client.set(keys.older("documents:kind", "revision"), 1)
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
        as_layout_3(client)
        name = keys.older("a", "snapshots")
        for version, row in client.hgetall(name).items():
            digest, chain, _, upload, parts = row.split(" ")
            client.hset(name, version, f"{digest} {chain} {upload} {parts}")
        client.set(keys.FORMAT, 2)
    assert run(redis_server.url, known) == [4, 4]

    path = tmp_path / "a.db"
    run(f"sqlite:{path}", retracted)
    assert run(f"sqlite:{path}", known) == [0, 4]
    db = sqlite3.connect(path)
    db.executescript(
        "ALTER TABLE snapshots DROP COLUMN without; DROP TABLE store; ALTER TABLE entries DROP COLUMN erased;"
        "ALTER TABLE logs DROP COLUMN salt; ALTER TABLE logs DROP COLUMN revisions;"
        "DROP INDEX records_by_rank; DROP INDEX records_by_mark; ALTER TABLE records DROP COLUMN rank;"
        "ALTER TABLE records DROP COLUMN leased; ALTER TABLE records DROP COLUMN mark;"
        "DELETE FROM counters WHERE name = 'erased'; PRAGMA user_version = 3;"
    )
    db.close()
    assert run(f"sqlite:{path}", known) == [4, 4]


@pytest.mark.parametrize("killed", [False, True])
def test_what_an_old_release_writes_beside_an_upgrade_is_kept_or_refused(redis_server, killed, monkeypatch):
    redis_server.ask(b"FLUSHALL")
    logs = [f"log{i}" for i in range(40)]

    async def begin(store):
        for name in logs:
            await store.put("name", name, b'{"log": "%b"}' % name.encode(), 0)
        for name in logs[:20]:
            await store.append(name, [Draft(b"first")])

    run(redis_server.url, begin)
    kept = {name: [b"first"] if i < 20 else [] for i, name in enumerate(logs)}
    remembered = []
    refused = threading.Event()

    def old(number):
        with Redis(port=redis_server.port) as client:
            release, own = OldRelease(client), logs[number::4]
            for i in range(100_000):
                name = own[i % len(own)]
                try:
                    release.append(name, b"old-%d" % i)
                    kept[name].append(b"old-%d" % i)
                    release.remember(name, f"r{i}")
                    remembered.append((name, f"r{i}"))
                except ResponseError as error:
                    if "WRONGTYPE" not in str(error):
                        raise
                    if name == own[-1]:
                        refused.set()
                        return

    with Redis(port=redis_server.port) as client:
        as_layout_3(client)
        threads = [threading.Thread(target=old, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        if killed:  # in the middle: whoever comes next goes on
            own, count = redis_upgrade.move, []

            async def dies(pipes, name, *rest):
                count.append(name)
                if len(count) == 15:
                    raise RedisError("killed")
                await own(pipes, name, *rest)

            monkeypatch.setattr(redis_upgrade, "move", dies)
            with pytest.raises(errors.StoreRefused):
                run(redis_server.url, begin)
            monkeypatch.setattr(redis_upgrade, "move", own)

        async def after(store):
            for thread in threads:
                thread.join()
            for name in logs:
                assert await store.examine(name) == []
                bodies = [entry.body for entry in await store.read(name, 0, 100_000)]
                assert bodies == kept[name], name
                assert (await store.get("name", name)).revision
            for name, key in remembered:
                assert await store.recall(name, key) == b"record"
            due = {(one.log, one.key) for one in await store.due(2.0, 100_000)}
            assert due == set(remembered)
            await store.append(logs[0], [Draft(b"new")])

        run(redis_server.url, after)
        assert refused.is_set()
        assert [key for key in client.scan_iter("feedrank:{*") if client.type(key) != b"string"] == []
        with pytest.raises(
            ResponseError, match="WRONGTYPE"
        ):  # a learner that had neither events nor memories
            OldRelease(client).append(logs[-1], b"late")
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            client.hget(keys.older("documents:name", "values"), "log1")


def test_a_store_that_is_another_one_by_now_takes_nothing(store_url, redis_server):
    async def body(store):
        await store.append("a", [Draft(b"x")])
        await store.check()
        if store_url.startswith("sqlite"):
            db = sqlite3.connect(store_url.removeprefix("sqlite:"))
            db.execute(
                "UPDATE store SET epoch = epoch + 1"
            )  # as a second writer does, where locks do not hold
            db.commit()
            db.close()
        elif store_url.startswith("postgresql"):
            ask(store_url, "UPDATE feedrank.store SET id = 'another'")
        else:
            redis_server.ask(b"FLUSHALL")
            run_redis_anew()
        for write in (
            lambda: store.append("a", [Draft(b"y")]),
            lambda: store.append("new", [Draft(b"y")]),
            lambda: store.remember("a", {"k": b"v"}, 60),
            lambda: store.put("kind", "name", b"v", 0),
            lambda: store.save("a", Snapshot(1, "d", b"s"), {}, keep=1, floor=1),
            lambda: store.drop("a"),
            store.check,
        ):
            with pytest.raises(StoreUnavailable):
                await write()
        assert [entry.body for entry in await store.read("new", 0, 9)] == []

    def run_redis_anew():
        with Redis(port=redis_server.port) as client:
            client.set(keys.STORE, f"another {keys.LAYOUT}")

    run(store_url, body)
