"""A reading sees one moment of the store: what is dropped or trimmed in its midst is no damage and no other history."""

import asyncio

import pytest

from feedrank.service.store import Closed, Draft, Snapshot, Trimmed, open_store
from feedrank.service.store.sql import rows as logs
from feedrank.service.store.sql import snapshots
from feedrank.service.store.sql.sqlite_connection import connect


async def filled(url):
    """A store with six entries in one log, the second retracted by the sixth."""
    store = await open_store(url)
    for i in range(5):
        await store.append("a", [Draft(b"body", ids=(f"f:{i}",))])
    await store.append("a", [Draft(b"", ids=("w:2",), retracts=2)])
    return store


def drop(db):
    snapshots.drop(db, "a")


def trim(db):
    log = logs.load_log(db, "a")
    db.execute("INSERT INTO snapshots VALUES (?, 'd', '', 0, 0)", (logs.key(log.id, 6),))
    snapshots.prune(db, log, 1, 6)


@pytest.mark.parametrize("change", [drop, trim])
@pytest.mark.parametrize("at", range(1, 8))
def test_sqlite_reads_one_moment(tmp_path, change, at):
    path = tmp_path / "a.db"

    async def body():
        store = await filled(f"sqlite:{path}")
        chain = (await store.read("a", 0, 3))[-1].chain
        expected = await store.read("a", 3, 10, chain)
        statements = []

        def between(statement):
            statements.append(statement)
            if len(statements) == at:
                other = connect(path)
                other.execute("BEGIN IMMEDIATE")
                change(other)
                other.execute("COMMIT")
                other.close()

        store._range.set_trace_callback(between)
        try:
            assert await store.read("a", 3, 10, chain) in (expected, [])
        except Trimmed:
            assert change is trim
        assert len(statements) > at or at > 5  # it was changed on the way
        store._range.set_trace_callback(None)
        await store.close()

    asyncio.run(body())


@pytest.mark.parametrize("change", ["drop", "trim"])
@pytest.mark.parametrize("at", range(1, 5))
def test_redis_counts_no_reading_that_was_overtaken(redis_server, change, at):
    async def body():
        redis_server.ask(b"FLUSHALL")
        store, other = await filled(redis_server.url), await open_store(redis_server.url)
        first = await store.read("a", 0, 3)
        expected = await store.read("a", 3, 10, first[-1].chain)
        head = await store.head("a")
        real, sent = store._pipes.run, []

        async def run(key, *words):
            sent.append(words)
            if len(sent) == at:
                if change == "drop":
                    await other.drop("a")
                else:
                    await other.save("a", Snapshot(6, "d", b"x", head.chain), {}, keep=1, floor=6)
            return await real(key, *words)

        async def many(commands):
            return [await run(key, *words) for key, *words in commands]

        store._pipes.run, store._pipes.many = run, many
        try:
            assert await store.read("a", 3, 10, first[-1].chain) in (expected, [])
        except Trimmed:
            assert change == "trim"
        assert len(sent) >= at
        if change == "drop":
            with pytest.raises(Closed):
                await other.append("a", [Draft(b"more")])
        await store.close()
        await other.close()

    asyncio.run(body())
