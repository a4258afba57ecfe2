"""Failover with a real primary, replica and Sentinel: with confirmation by a replica nothing acknowledged is lost."""

import asyncio

import pytest
from waiting import eventually

from feedrank.service.contract import faults as errors
from feedrank.service.store import Diverged, Draft, Position, open_store
from feedrank.service.store.redis_pipes import Confirmation


@pytest.fixture
def replicated(tmp_path, redis_replicated):
    made = redis_replicated(tmp_path)
    yield made
    made.close()


async def confirmed(call):
    """The reply once the replica confirms in time."""
    return await eventually(call, not_yet=errors.StoreUnavailable)


class Writers:
    """Eight writers that append until they are stopped, and send again what was not acknowledged."""

    def __init__(self, store, start=0):
        self.store, self.number = store, start
        self.acknowledged = {}  # id -> version
        self.refused = 0
        self._stop = asyncio.Event()
        self._tasks = [asyncio.create_task(self._write()) for _ in range(8)]

    async def _write(self):
        while not self._stop.is_set():
            self.number += 1
            id = f"e{self.number}"
            while not self._stop.is_set():
                try:
                    (place,) = await self.store.append("a", [Draft(id.encode(), ids=(id,))])
                except errors.StoreUnavailable:
                    self.refused += 1
                    await asyncio.sleep(0.02)
                    continue
                self.acknowledged[id] = place.version
                break

    async def reach(self, count):
        """Until so many more were acknowledged."""
        target = len(self.acknowledged) + count
        while len(self.acknowledged) < target:
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.01)

    async def stop(self):
        self._stop.set()
        await asyncio.gather(*self._tasks)


async def log_of(store):
    """The whole log: id -> version; its chain is checked as it is read."""
    entries, after = {}, 0
    while page := await store.read("a", after, 500):
        for entry in page:
            assert entry.body not in entries, "twice"
            entries[entry.body] = entry.version
        after = page[-1].version
    return {body.decode(): version for body, version in entries.items()}


async def fail_over(replicated, count, **options):
    """The log after so many failovers under load, and what was acknowledged."""
    store = await open_store(replicated.url, **options)
    writers = Writers(store)
    try:
        for _ in range(count):
            await writers.reach(50)
            await asyncio.to_thread(replicated.kill_primary)
            await asyncio.to_thread(replicated.revive)
        await writers.reach(50)
        await writers.stop()
        return await log_of(store), writers
    finally:
        await writers.stop()
        await store.close()


def test_three_failovers_lose_nothing_that_a_replica_has_confirmed(replicated):
    log, writers = asyncio.run(fail_over(replicated, 3, replicas=1))
    assert writers.refused > 0
    assert {id: log.get(id) for id in writers.acknowledged} == writers.acknowledged
    assert sorted(log.values()) == list(range(1, len(log) + 1))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_failovers_lose_nothing_that_a_replica_has_confirmed(replicated):
    log, writers = asyncio.run(fail_over(replicated, 20, replicas=1))
    assert {id: log.get(id) for id in writers.acknowledged} == writers.acknowledged


def test_a_write_that_no_replica_confirms_is_refused_and_the_repeat_waits_as_well(replicated):
    async def main():
        store = await open_store(replicated.url, replicas=1, replica_wait=0.2)
        try:
            await confirmed(lambda: store.append("a", [Draft(b"first", ids=("first",))]))
            replicated.replica.freeze()
            writes = (
                lambda: store.append("a", [Draft(b"x", ids=("x",))]),
                lambda: store.append(
                    "a", [Draft(b"x", ids=("x",))]
                ),  # there already, and still not confirmed
                lambda: store.remember("a", {"p": b"record"}, 60),
                lambda: store.remember("a", {"p": b"record"}, 60),
                lambda: store.put("kind", "n", b"", 0),
                store.check,
            )
            for write in writes:
                with pytest.raises(errors.StoreUnavailable, match="0 of the 1 replicas"):
                    await write()
            assert len(await store.read("a", 0, 10)) == 2  # reading goes on
            replicated.replica.thaw()
            again = await confirmed(lambda: store.append("a", [Draft(b"x", ids=("x",))]))
            assert (again[0].version, again[0].fresh) == (2, False)
            await store.check()  # no confirmation was lost: what waits for one has it
        finally:
            await store.close()

    asyncio.run(main())


def test_a_replica_that_lagged_is_another_history_for_those_who_saw_more(replicated):
    """Without confirmation a failover may lose what was acknowledged; whoever has seen it is told, and nobody diverges."""

    async def main():
        store = await open_store(replicated.url)
        try:
            (one,) = await store.append("a", [Draft(b"kept", ids=("kept",))])
            assert replicated.primary.ask(b"WAIT 1 5000").startswith(b":1")
            # From here on the replica hears nothing more, as behind a cut cable.
            replicated.replica.ask(b"REPLICAOF 127.0.0.1 1")
            (lost,) = await store.append("a", [Draft(b"lost", ids=("lost",))])
            replicated.primary.kill()
            replicated.replica.ask(b"REPLICAOF NO ONE")
            await store.close()
        finally:
            await store.close()
        survivor = await open_store(replicated.replica.url)
        try:
            mine = Position(lost.version, lost.chain)
            for call in (
                lambda: survivor.append("a", [Draft(b"more")], mine),
                lambda: survivor.read("a", mine.version, 10, mine.chain),
            ):
                with pytest.raises(Diverged) as caught:
                    await call()
                assert (caught.value.expected, caught.value.version) == (2, 1)
            assert await survivor.positions(["a"]) == [Position(one.version, one.chain)]
            # Another event takes the version: the log has it, and another chain there.
            (other,) = await survivor.append("a", [Draft(b"other")], Position(one.version, one.chain))
            assert other.version == lost.version
            with pytest.raises(Diverged):
                await survivor.append("a", [Draft(b"more")], mine)
        finally:
            await survivor.close()

    asyncio.run(main())


def test_a_sentinel_that_does_not_know_the_service_is_refused_in_one_line(replicated):
    for url, reason in (
        (replicated.url.replace("/feedrank/", "/other/"), "other"),
        (replicated.url.replace("/feedrank/0", ""), "name the service"),
    ):
        with pytest.raises(errors.StoreRefused, match=reason) as caught:
            asyncio.run(open_store(url))
        assert "\n" not in caught.value.detail


def test_disks_of_replicas_are_asked_for_after_what_was_received_within_the_same_time():
    """Asked only once, a replica answers with what was on its disk before: every write would take a second."""
    for milliseconds in (1, 100, 1000, 5000):
        received, synced = Confirmation(2, milliseconds / 1000, synced=True).commands()
        assert (received[:2], synced[:3]) == (("WAIT", 2), ("WAITAOF", 1, 2))
        assert received[2] >= 1  # 0 would mean for ever
        assert synced[3] >= 1
        assert received[2] + synced[3] <= max(2, milliseconds)
    assert Confirmation(2, 1.0).commands() == [("WAIT", 2, 1000)]
