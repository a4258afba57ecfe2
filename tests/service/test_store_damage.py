"""A changed byte is noticed, whatever it was part of."""

import asyncio
import sqlite3

import pytest
from postgres_server import ask
from redis import Redis
from store_logs import fill_every_kind, run

from feedrank.service.runtime import Host
from feedrank.service.store import Damaged, Draft, keys


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
    run(url, fill_every_kind)
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
    run(redis_server.url, fill_every_kind)
    with Redis(port=redis_server.port) as client:
        REDIS[what](client)
    noticed(redis_server.url, what)


def test_a_changed_document_is_noticed(with_store, store_url, redis_server):
    with_store(fill_every_kind)
    if store_url.startswith("sqlite"):
        db = sqlite3.connect(store_url.removeprefix("sqlite:"))
        ((value,),) = db.execute("SELECT value FROM documents").fetchall()
        db.execute("UPDATE documents SET value = ?", (flip(value),))
        db.commit()
        db.close()
    elif store_url.startswith("postgresql"):
        ask(store_url, "UPDATE feedrank.documents SET value = set_byte(value, 35, get_byte(value, 35) # 1)")
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
