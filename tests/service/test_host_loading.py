"""A learner that is loaded is the fold of its log to the bit, whichever snapshots there are and can be read."""

import asyncio
import errno
from io import BytesIO

import pytest
from host_events import SPEC, crash, event, folded, settle, teach

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.contract.events import Event
from feedrank.service.runtime import checkpoints, folding
from feedrank.service.runtime.learner_state import LearnerState
from feedrank.service.store import Draft, Snapshot


@pytest.mark.parametrize("every", [1, 3, 1000])
@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_gives_the_same_bits_and_the_same_replies(with_host, every, clean):
    async def before(host):
        await host.create("a", SPEC)
        replies = await teach(host, "a", 10)
        if not clean:
            await settle(host)
            await crash(host)
        return replies

    async def after(host):
        assert await host.export("a") == folded(range(10), 10)
        assert await teach(host, "a", 10) == [{**reply, "duplicate": True} for reply in replies]
        assert (await host.history("a"))["points"][-1]["rounds"] == 10
        await teach(host, "a", 5, start=10)
        assert await host.export("a") == folded(range(15), 15)

    replies = with_host(before, snapshot_every=every)
    with_host(after, snapshot_every=every)


def test_a_damaged_snapshot_is_passed_over_while_the_log_reaches_back(with_host):
    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 10)
        log = (await host._catalogue.find("a")).log
        for version, data in ((8, b"not a snapshot"), (9, b"FEEDFOLD" + bytes(100))):
            await host.store.save(log, Snapshot(version, "digest", data), {}, keep=9, floor=1)
        await crash(host)

    async def after(host):
        assert await host.export("a") == folded(range(10), 10)

    with_host(before)
    with_host(after)


def test_a_learner_with_neither_snapshot_nor_log_says_so(with_host):
    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 10)
        log = (await host._catalogue.find("a")).log
        await host.store.save(log, Snapshot(9, "digest", b"damaged"), {}, keep=1, floor=9)
        await crash(host)

    async def after(host):
        with pytest.raises(errors.StoreUnavailable, match="no snapshot"):
            await host.info("a")

    with_host(before)
    with_host(after)


def test_snapshots_of_another_release_are_no_judges_of_the_state(with_host, monkeypatch):
    """They cannot be read and their digests differ: the log is folded anew once, not for ever."""

    def other(state, file):
        file.write(b"another format")
        return "other"

    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 12)

    with monkeypatch.context() as patched:
        patched.setattr(LearnerState, "dump", other)
        with_host(before, snapshot_every=12)

    async def after(host):
        assert (await host.info("a"))["version"] == 12
        await settle(host)
        assert host.stats()["divergences"] == 0
        await host.feedback("a", event(12))
        assert (await host.info("a"))["version"] == 13

    with_host(after, snapshot_every=12)


def test_an_event_that_cannot_be_applied_is_skipped_and_nothing_is_poisoned(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 3)
        log = (await host._catalogue.find("a")).log
        bad = Event({"label": 7}, {"features": ["x"]})  # as no version that checks would have written
        await host.store.append(log, [Draft(bad.body())])
        await teach(host, "a", 3, start=3)
        assert (await host.info("a"))["version"] == 7
        assert host.stats()["skipped_events"] == 1
        assert await host.export("a") == folded(range(6), 7)

    with_host(body)


def test_many_learners_share_a_small_memory(with_host):
    async def body(host):
        for i in range(30):
            await host.create(f"n{i}", SPEC)
        for round in range(3):
            for i in range(30):
                await host.feedback(f"n{i}", event(round + i))
        assert host.stats()["loaded_learners"] <= 6
        assert host.stats()["loaded_bytes"] <= 100_000
        for i in range(30):
            assert await host.export(f"n{i}") == folded([i, i + 1, i + 2], 3)

    with_host(body, memory=100_000)


def test_a_log_of_large_events_is_read_a_few_at_a_time(with_host, monkeypatch):
    monkeypatch.setattr(folding, "PAGE_BYTES", 3_000)
    read = []

    async def write(host):
        await host.create("a", SPEC)
        for i in range(120):
            many = {f"word-{i}-{j}": 1.0 for j in range(1 if i < 60 else 60)}  # some 50 bytes, then 1,000
            await host.feedback("a", {"features": many, "label": "ab"[i % 2]})
        await crash(host)

    async def look(host):
        own = host.store.read

        async def spy(*arguments):
            entries = await own(*arguments)
            read.append(sum(len(entry.body) for entry in entries))
            return entries

        monkeypatch.setattr(host.store, "read", spy)
        assert (await host.info("a"))["version"] == 120

    with_host(write, snapshot_every=10**6)
    with_host(look)
    assert (
        sum(size > 6_000 for size in read) <= 1
    )  # where the events grow, one page was chosen by the small ones
    assert len(read) < 60


def test_concurrent_first_uses_load_once(with_host):
    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 5)

    async def after(host):
        reply = await asyncio.gather(*(host.feedback("a", event(i)) for i in range(50)))
        assert sorted(r["version"] for r in reply) == list(range(6, 56))
        assert host.stats()["loaded_learners"] == 1
        entries = (await host.events("a", after=5))["events"]
        learner = learners.build(SPEC)
        for i in range(5):
            learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
        for entry in entries:
            learner.learn(entry["instance"], entry["truth"])
        assert await host.export("a") == learners.dump(learner)

    with_host(before)
    with_host(after)


def test_a_request_that_is_given_up_is_still_applied(with_host):
    async def body(host):
        await host.create("a", SPEC)
        (loaded,) = host._memory._learners.values()
        task = asyncio.create_task(host.feedback("a", event(0)))
        while not loaded.appending:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reply = await host.predict("a", {"features": ["x"], "min_version": 1})
        assert reply["version"] == 1
        assert await host.export("a") == folded([0], 1)

    with_host(body)


class UnreadableFile(BytesIO):
    def read(self, *_):
        raise OSError(errno.EIO, "Input/output error")


def test_a_temporary_file_that_cannot_be_read_costs_one_snapshot(with_host, monkeypatch, caplog):
    async def body(host):
        await host.create("a", SPEC)
        with monkeypatch.context() as broken:
            broken.setattr(checkpoints, "spool", UnreadableFile)
            await teach(host, "a", 10)
            async with host._memory.use("a") as learner:
                await learner.saver.settle()
            assert host.stats()["snapshots"] == 0
        await teach(host, "a", 10, 10)
        async with host._memory.use("a") as learner:
            await learner.saver.settle()
        assert host.stats()["snapshots"] == 1

    with_host(body, snapshot_every=10)
    assert "at 10 was not saved: [Errno 5] Input/output error" in caplog.text
