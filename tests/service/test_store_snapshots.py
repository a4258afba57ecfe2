"""The laws of snapshots, retention and retractions, on SQLite files and on a real Redis."""

import io

import pytest
from postgres_server import ask
from store_logs import draft, fill

from feedrank.service.store import Closed, Diverged, Snapshot, Trimmed


def test_snapshots_keep_the_newest_and_trim_what_they_cover(with_store):
    async def body(store):
        await fill(store, "a", 10)
        for version in (3, 6, 9):
            digest = await store.save("a", Snapshot(version, f"d{version}", b"s"), {}, keep=2, floor=8)
            assert digest == f"d{version}"
        head = await store.head("a")
        assert head.snapshots == (6, 9)
        assert head.floor == 7  # the oldest kept snapshot needs all after it, whatever the floor asked for
        assert await store.snapshot("a", 3) is None
        with pytest.raises(Trimmed):
            await store.read("a", 5, 10)
        assert [e.version for e in await store.read("a", 6, 10)] == [7, 8, 9, 10]
        assert await store.find("a", "id2") == (2, "same")  # ids outlive their entries
        assert (await store.append("a", [draft("e2", "id2")]))[0].version == 2

    with_store(body)


def test_an_older_snapshot_changes_nothing_that_newer_ones_hold(with_store):
    async def body(store):
        await fill(store, "a", 10)
        for version in (6, 9, 4):
            await store.save("a", Snapshot(version, f"d{version}", b"s"), {}, keep=2, floor=1)
        assert (await store.head("a")).snapshots == (6, 9)

    with_store(body)


def test_two_folds_that_disagree_are_noticed(with_store):
    async def body(store):
        await fill(store, "a", 3)
        assert await store.save("a", Snapshot(3, "mine", b"m"), {1: b"o"}, keep=2, floor=1) == "mine"
        assert (
            await store.save("a", Snapshot(3, "yours", b"y"), {1: b"p", 2: b"q"}, keep=2, floor=1) == "mine"
        )
        assert (await store.snapshot("a", 3)).data == b"m"
        assert (await store.outcome("a", 1), await store.outcome("a", 2)) == (b"o", None)
        assert await store.save("a", Snapshot(3, "mine", b"m"), {1: b"x"}, keep=2, floor=1) == "mine"
        assert await store.outcome("a", 1) == b"o"  # the first outcome stays

    with_store(body)


def test_a_restored_log_starts_at_its_snapshot(with_store):
    async def body(store):
        await store.save("a", Snapshot(41, "d", b"data"), {}, keep=2, floor=1)
        assert (await store.head("a")).version == 41
        assert (await store.append("a", [draft("x")]))[0].version == 42
        assert [e.version for e in await store.read("a", 41, 10)] == [42]
        with pytest.raises(Trimmed):
            await store.read("a", 0, 10)

    with_store(body)


def test_a_retraction_is_written_at_its_entry_and_drops_the_snapshots_that_contain_it(with_store):
    async def body(store):
        await fill(store, "a", 5)
        for version in (2, 3, 5):
            await store.save("a", Snapshot(version, f"d{version}", b"s"), {}, keep=3, floor=1)
        (placement,) = await store.append("a", [draft("w", "w4", retracts=3, base=2)])
        assert placement.version == 6
        assert [e.retracted for e in await store.read("a", 2, 10)] == [6, 0, 0, 0]
        assert (await store.head("a")).snapshots == (2,)
        assert await store.snapshot("a", 5) is None
        await store.save("a", Snapshot(4, "late", b"s"), {4: b"o"}, keep=1, floor=6)  # it contains entry 3
        head = await store.head("a")
        assert (head.snapshots, head.floor) == ((2,), 1)
        assert await store.outcome("a", 4) == b"o"
        await store.save("a", Snapshot(6, "d6", b"s"), {}, keep=1, floor=6)
        head = await store.head("a")
        assert (head.snapshots, head.floor) == ((6,), 6)

    with_store(body)


def test_a_snapshot_before_a_retraction_is_kept_if_it_left_out_what_was_retracted(with_store):
    async def body(store):
        await fill(store, "a", 5)
        await store.append("a", [draft("w", "w4", retracts=3, base=0)])
        assert (await store.head("a")).retracted == 6
        for version, without, kept in ((4, 0, ()), (4, 5, ()), (4, 6, (4,))):
            await store.save("a", Snapshot(version, "d", b"s", without=without), {}, keep=2, floor=1)
            assert (await store.head("a")).snapshots == kept
        assert (await store.snapshot("a", 4)).without == 6
        await store.append("a", [draft("w", "w5", retracts=2, base=0)])
        assert (await store.head("a")).snapshots == ()
        await store.save("a", Snapshot(4, "d", b"s", without=6), {}, keep=2, floor=1)  # it contains entry 2
        assert (await store.head("a")).snapshots == ()

    with_store(body)


@pytest.mark.parametrize("base", [0, 1, 2])
def test_a_retraction_needs_the_log_from_its_base_on(with_store, base):
    async def body(store):
        await fill(store, "a", 5)
        await store.save("a", Snapshot(3, "d3", b"s"), {}, keep=1, floor=4)
        with pytest.raises(Trimmed):
            await store.append("a", [draft("w", retracts=3, base=base)])
        assert (await store.append("a", [draft("w", retracts=4, base=3)]))[0].version == 6

    with_store(body)


def test_a_snapshot_is_taken_only_on_the_history_it_was_folded_from(with_store):
    async def body(store):
        await fill(store, "a", 5)
        entries = await store.read("a", 0, 10)
        for version in (3, 5):
            for chain in ("f" * 40, entries[1].chain):
                with pytest.raises(Diverged):
                    await store.save(
                        "a", Snapshot(version, "d", b"s", chain), {version: b"o"}, keep=2, floor=1
                    )
        with pytest.raises(Diverged) as caught:  # a log that went back is not filled up by a snapshot
            await store.save("a", Snapshot(9, "d", b"s", "f" * 40), {}, keep=2, floor=1)
        assert (caught.value.expected, caught.value.version) == (9, 5)
        with pytest.raises(Diverged):
            await store.save("empty", Snapshot(9, "d", b"s", "f" * 40), {}, keep=2, floor=1)
        assert (await store.head("a")).snapshots == ()
        assert await store.outcome("a", 3) is None
        assert (await store.head("empty")).version == 0
        for entry in entries[2:]:
            snapshot = Snapshot(entry.version, "d", b"s", entry.chain)
            assert await store.save("a", snapshot, {}, keep=2, floor=5) == "d"
            assert await store.snapshot("a", entry.version) == snapshot

    with_store(body)


def test_a_snapshot_of_many_parts_comes_back_whole(with_store, monkeypatch):
    from feedrank.service.store import redis
    from feedrank.service.store.sql import snapshots

    monkeypatch.setattr(redis, "PART", 1000)
    monkeypatch.setattr(snapshots, "PART", 1000)
    data = bytes(range(256)) * 40

    async def body(store):
        await fill(store, "a", 2)
        await store.save("a", Snapshot(1, "one", data), {}, keep=1, floor=1)
        assert (await store.snapshot("a", 1)).data == data
        with io.BytesIO() as out:
            await store.snapshot("a", 1, out)
            assert out.getvalue() == data
        await store.save("a", Snapshot(2, "two", data[::-1]), {}, keep=1, floor=1)
        assert await store.snapshot("a", 1) is None
        assert (await store.snapshot("a", 2)).data == data[::-1]
        await store.save(
            "a", Snapshot(2, "two", data[::-1]), {}, keep=1, floor=1
        )  # once more changes nothing
        assert await store.save("a", Snapshot(2, "other", data), {}, keep=1, floor=1) == "two"
        assert (await store.snapshot("a", 2)).data == data[::-1]
        assert await store.examine("a") == []
        await store.drop("a")
        assert await store.snapshot("a", 2) is None

    with_store(body)


def test_what_is_no_longer_needed_leaves_no_parts_behind(with_store, store_url, redis_server):
    async def body(store):
        await fill(store, "a", 3)
        for version in (1, 2, 3):
            await store.save("a", Snapshot(version, "d", b"s"), {}, keep=1, floor=1)
        await store.save("a", Snapshot(3, "other", b"s"), {}, keep=1, floor=1)
        with pytest.raises(Diverged):
            await store.save("a", Snapshot(2, "d", b"s", "f" * 40), {}, keep=1, floor=1)
        await store.append("a", [draft("r", retracts=3)])
        await store.save("a", Snapshot(3, "late", b"s"), {}, keep=1, floor=1)
        await store.drop("a")
        with pytest.raises(Closed):
            await store.save("a", Snapshot(3, "d", b"s"), {}, keep=1, floor=1)
        if store_url.startswith("sqlite"):
            assert store._point.execute("SELECT count(*) FROM parts").fetchone() == (0,)
        elif store_url.startswith("postgresql"):
            assert ask(store_url, "SELECT count(*) FROM feedrank.parts") == [(0,)]
        else:
            assert redis_server.ask(b"KEYS *:part:*").startswith(b"*0")

    with_store(body)


def test_ids_and_outcomes_are_forgotten_up_to_a_version(with_store):
    async def body(store):
        await fill(store, "a", 6)
        outcomes = dict.fromkeys(range(1, 7), b"o")
        await store.save("a", Snapshot(6, "d", b"s"), outcomes, keep=1, floor=1, forget=4)
        assert [await store.find("a", f"id{i}") for i in (1, 4, 5)] == [None, None, (5, "same")]
        assert [await store.outcome("a", i) for i in (1, 4, 5)] == [None, None, b"o"]
        assert [e.version for e in await store.read("a", 0, 10)] == [1, 2, 3, 4, 5, 6]
        (late,) = await store.append("a", [draft("e4", "id4")])  # a repeat that comes too late is new
        assert (late.version, late.fresh) == (7, True)
        assert not (await store.append("a", [draft("e5", "id5")]))[0].fresh
        await store.save("a", Snapshot(7, "d7", b"s"), {3: b"late", 7: b"o"}, keep=1, floor=1, forget=5)
        assert [await store.outcome("a", i) for i in (3, 7)] == [None, b"o"]
        assert await store.find("a", "id4") == (7, "same")
        assert await store.examine("a") == []

    with_store(body)


def test_outcomes_are_kept_without_a_snapshot_too(with_store):
    async def body(store):
        await fill(store, "a", 3)
        await store.keep_outcomes("a", {1: b"first", 2: b"two"})
        await store.keep_outcomes("a", {1: b"second"})
        assert [await store.outcome("a", version) for version in (1, 2, 3)] == [b"first", b"two", None]
        await store.drop("a")
        with pytest.raises(Closed):
            await store.keep_outcomes("a", {1: b"late"})
        assert await store.outcome("a", 1) is None

    with_store(body)


def test_much_is_forgotten_in_steps(with_store):
    async def body(store):
        await store.append("a", [draft(f"{i}", f"id{i}") for i in range(1, 6001)])
        for step in (1, 2):
            await store.save("a", Snapshot(6000, "d", b"s"), {}, keep=1, floor=1, forget=5500)
            assert (await store.find("a", "id5001") is None) == (step == 2)
        assert await store.find("a", "id1") is None
        assert await store.find("a", "id5501") == (5501, "same")

    with_store(body)
