"""What others do to a store while it is open: a file that is deleted or replaced, a log that is restored or flushed."""

import asyncio
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from store_logs import opened

from feedrank.service.contract import faults as errors
from feedrank.service.store import Diverged, Draft, Position, Snapshot


def delete(path):
    path.unlink()


def replace(path):
    """By a copy of itself, as a backup is put in place."""
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.replace(path)


def delete_log(path):
    Path(f"{path}-wal").unlink()


def replace_folder(path):
    path.parent.rename(path.parent.with_suffix(".old"))
    path.parent.mkdir()


@pytest.mark.parametrize("fault", [delete, replace, delete_log, replace_folder])
def test_a_file_that_is_gone_from_underneath_takes_no_write_for_granted(tmp_path, fault, caplog):
    path = tmp_path / "data" / "a.db"
    path.parent.mkdir()

    async def main():
        async with opened(f"sqlite:{path}") as store:
            await store.append("a", [Draft(b"x", ids=("x",))])
            await store.check()
            fault(path)
            for write in (
                lambda: store.append("a", [Draft(b"y", ids=("y",))]),
                lambda: store.remember("a", {"p": b"r"}, 60),
                lambda: store.put("kind", "n", b"", 0),
                store.check,
            ):
                with pytest.raises(
                    errors.StoreUnavailable, match="deleted or replaced while in use"
                ) as caught:
                    await write()
                assert "\n" not in caught.value.detail
        assert len([record for record in caplog.records if "deleted or replaced" in record.message]) == 1

    asyncio.run(main())


def test_a_file_that_is_put_back_is_written_again(tmp_path):
    path = tmp_path / "a.db"

    async def main():
        async with opened(f"sqlite:{path}") as store:
            await store.append("a", [Draft(b"x", ids=("x",))])
            path.rename(tmp_path / "moved.db")
            with pytest.raises(errors.StoreUnavailable):
                await store.append("a", [Draft(b"y", ids=("y",))])
            (tmp_path / "moved.db").rename(path)
            # It was written where nobody could see it: the repeat is a duplicate, and now acknowledged.
            (again,) = await store.append("a", [Draft(b"y", ids=("y",))])
            assert (again.version, again.fresh) == (2, False)
            await store.check()
        async with opened(f"sqlite:{path}") as store:
            assert [entry.body for entry in await store.read("a", 0, 10)] == [b"x", b"y"]

    asyncio.run(main())


def test_a_check_writes_as_much_as_an_event_may_need(tmp_path):
    async def main():
        async with opened(f"sqlite:{tmp_path / 'a.db'}") as store:
            await store.append("a", [Draft(os.urandom(300_000))])
            await store.check()
            writer = store._writer._connection
            (pages,) = writer.execute("PRAGMA page_count").fetchone()
            (free,) = writer.execute("PRAGMA freelist_count").fetchone()
            writer.execute(f"PRAGMA max_page_count = {pages + max(0, 10 - free)}")
            with pytest.raises(errors.StoreUnavailable, match="full"):
                await store.append("a", [Draft(os.urandom(900_000))])
            with pytest.raises(errors.StoreUnavailable, match="full"):
                await store.check()
            writer.execute("PRAGMA max_page_count = 1000000000")
            await store.check()

    asyncio.run(main())


def test_a_deletion_that_is_refused_has_deleted_nothing(tmp_path):
    async def main():
        async with opened(f"sqlite:{tmp_path / 'a.db'}") as store:
            revision = await store.put("kind", "n", b"value", 0)
            await store.append("a", [Draft(b"x")])
            store._writer._connection.execute("PRAGMA query_only = ON")
            with pytest.raises(errors.StoreUnavailable):
                await store.discard("kind", "n", revision, "a")
            assert (await store.get("kind", "n")).value == b"value"
            assert (await store.head("a")).version == 1
            store._writer._connection.execute("PRAGMA query_only = OFF")
            await store.discard("kind", "n", revision, "a")
            assert (await store.head("a")).closed

    asyncio.run(main())


def test_a_full_redis_can_be_emptied(own_redis):
    async def main():
        async with opened(own_redis.url) as store:
            revisions = {name: await store.put("kind", name, b"v", 0) for name in "ab"}
            for log in "ab":
                await store.append(log, [Draft(b"x" * 10_000)])
                await store.save(log, Snapshot(1, "d", b"s" * 10_000), {}, keep=1, floor=1)
            own_redis.ask(b"CONFIG SET maxmemory 1")
            for write in (
                lambda: store.append("a", [Draft(b"y")]),
                lambda: store.put("kind", "c", b"", 0),
                store.check,
            ):
                with pytest.raises(errors.StoreUnavailable):
                    await write()
            for name, revision in revisions.items():
                await store.discard("kind", name, revision, name)
                assert (await store.head(name)).closed
            assert await store.page("kind", "", 10) == []
            own_redis.ask(b"CONFIG SET maxmemory 0")
            await store.check()

    asyncio.run(main())


def test_a_snapshot_may_be_larger_than_a_value_of_redis(own_redis):
    own_redis.ask(b"CONFIG SET proto-max-bulk-len 2097152")
    data = os.urandom(5_000_000)

    async def main():
        async with opened(own_redis.url) as store:
            await store.append("a", [Draft(b"x")])
            await store.save("a", Snapshot(1, "d", data), {}, keep=1, floor=1)
            assert (await store.snapshot("a", 1)).data == data

    asyncio.run(main())


def test_an_eviction_policy_that_is_set_later_fails_the_check(own_redis):
    async def main():
        async with opened(own_redis.url) as store:
            await store.check()
            own_redis.ask(b"CONFIG SET maxmemory-policy allkeys-lru")
            with pytest.raises(errors.StoreUnavailable, match="may evict data"):
                await store.check()

    asyncio.run(main())


def test_a_redis_that_was_restored_or_flushed_is_another_history(own_redis):
    async def main():
        async with opened(own_redis.url) as store:
            placements = [(await store.append("a", [Draft(b"%d" % i)]))[0] for i in range(5)]
            mine = Position(5, placements[-1].chain)
            # As restored from a copy of before the log was made, and written to since.
            identity = own_redis.ask(b"GET feedrank:store").split(b"\r\n")[1]
            own_redis.ask(b"FLUSHALL")
            with pytest.raises(errors.StoreUnavailable, match="flushed"):
                await store.append("a", [Draft(b"more")], mine)
            own_redis.ask(b'SET feedrank:store "%b"' % identity)
            with pytest.raises(Diverged) as caught:
                await store.append("a", [Draft(b"more")], mine)
            assert caught.value.version == 0
            with pytest.raises(Diverged):
                await store.save("a", Snapshot(5, "d", b"s", mine.chain), {}, keep=1, floor=1)
            for i in range(6):
                await store.append("a", [Draft(b"%d" % i)])
            for call in (
                lambda: store.append("a", [Draft(b"more")], mine),
                lambda: store.read("a", 5, 10, mine.chain),
                lambda: store.save("a", Snapshot(5, "d", b"s", mine.chain), {}, keep=1, floor=1),
            ):
                with pytest.raises(Diverged) as caught:
                    await call()
                assert (caught.value.expected, caught.value.version) == (5, 6)
            assert await store.positions(["a"]) == [(await store.head("a")).position]

    asyncio.run(main())


def test_writes_of_a_cluster_wait_for_replicas_of_their_own_node(redis_cluster):
    async def main():
        async with opened(redis_cluster.url, replicas=1, replica_wait=0.1) as store:
            assert any("writes are refused" in notice for notice in store.notices)
            with pytest.raises(errors.StoreUnavailable, match="0 of the 1 replicas"):
                await store.append("a", [Draft(b"x", ids=("x",))])
        async with opened(redis_cluster.url) as store:
            (again,) = await store.append("a", [Draft(b"x", ids=("x",))])
            assert (again.version, again.fresh) == (1, False)

    asyncio.run(main())


def test_a_backup_made_by_sqlite_itself_is_sound(tmp_path):
    async def main():
        async with opened(f"sqlite:{tmp_path / 'a.db'}") as store:
            await store.append("a", [Draft(b"x" * 1000) for _ in range(50)])
            with sqlite3.connect(tmp_path / "a.db") as source, sqlite3.connect(tmp_path / "b.db") as target:
                source.backup(target)
            source.close()
            target.close()
            await store.append("a", [Draft(b"y")])
        async with opened(f"sqlite:{tmp_path / 'b.db'}", read_only=True) as copy:
            assert await copy.examine("a") == []
            assert (await copy.head("a")).version == 50

    asyncio.run(main())
