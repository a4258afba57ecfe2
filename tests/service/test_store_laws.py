"""The laws of a Store, on SQLite files and on a real Redis."""

import asyncio
import time

import pytest

from feedrank.service.store import Clash, Closed, Draft, Missing, Snapshot, Stale, Trimmed


def draft(text, *ids, digest="same", **more):
    return Draft(text.encode(), ids=ids, digest=digest, **more)


async def fill(store, log, count):
    for i in range(count):
        await store.append(log, [draft(f"e{i + 1}", f"id{i + 1}")])


def test_entries_are_numbered_from_one_and_read_back(with_store):
    async def body(store):
        placed = [(await store.append("a", [draft(text)]))[0] for text in ("x", "y", "z")]
        assert [(p.version, p.fresh) for p in placed] == [(1, True), (2, True), (3, True)]
        assert [(e.version, e.body, e.taken, e.mark) for e in await store.read("a", 1, 10)] == [
            (2, b"y", None, 0),
            (3, b"z", None, 0),
        ]
        assert [e.version for e in await store.read("a", 0, 2)] == [1, 2]
        assert await store.read("a", 3, 10) == []
        assert await store.read("other", 0, 10) == []
        assert (await store.head("a")).version == 3
        assert (await store.head("other")).version == 0
        assert await store.versions(["other", "a"]) == [0, 3]

    with_store(body)


def test_what_was_written_is_there_when_opened_again(with_store):
    async def write(store):
        await store.append("a", [draft("x", "i")])
        await store.remember("a", {"k": b"v"}, 60)
        await store.put("kind", "name", b"value", 0)
        await store.save("a", Snapshot(1, "d", b"data"), {1: b"out"}, keep=2, floor=1)

    async def look(store):
        assert [e.body for e in await store.read("a", 0, 10)] == [b"x"]
        assert await store.find("a", "i") == (1, "same")
        assert await store.recall("a", "k") == b"v"
        assert (await store.get("kind", "name")).value == b"value"
        assert await store.snapshot("a", 1) == Snapshot(1, "d", b"data")
        assert await store.outcome("a", 1) == b"out"

    with_store(write)
    with_store(look)


def test_a_known_id_is_not_appended_again(with_store):
    async def body(store):
        await store.append("a", [draft("x", "i", "j")])
        again = await store.append("a", [draft("x", "j"), draft("new", "k"), draft("new", "k")])
        assert [(p.version, p.fresh) for p in again] == [(1, False), (2, True), (2, False)]
        assert (await store.head("a")).version == 2
        assert (await store.append("b", [draft("x", "i")]))[0].fresh  # ids belong to their log

    with_store(body)


@pytest.mark.parametrize(
    "batch",
    [
        [("good", ("n",), "same"), ("bad", ("i",), "other")],  # a known id that says something else
        [("one", ("n",), "same"), ("two", ("n",), "other")],  # the same within the batch
        [("good", ("n",), "same"), ("bad", ("i", "j"), "same")],  # two ids of two different entries
    ],
)
def test_a_clash_refuses_the_whole_batch(with_store, batch):
    async def body(store):
        await store.append("a", [draft("x", "i"), draft("y", "j")])
        with pytest.raises(Clash) as caught:
            await store.append("a", [draft(text, *ids, digest=digest) for text, ids, digest in batch])
        assert caught.value.index == 1
        assert (await store.head("a")).version == 2
        assert await store.find("a", "n") is None

    with_store(body)


def test_a_record_is_taken_once_with_the_entry(with_store):
    async def body(store):
        await store.remember("a", {"p": b"instance", "q": b"other"}, 60)
        (placed,) = await store.append("a", [draft("truth", "p", take="p")])
        assert placed.fresh
        (entry,) = await store.read("a", 0, 10)
        assert (entry.body, entry.taken) == (b"truth", b"instance")
        assert await store.recall("a", "p") is None
        assert await store.recall("a", "q") == b"other"
        assert (await store.append("a", [draft("truth", "p", take="p")]))[0].fresh is False
        with pytest.raises(Missing) as caught:
            await store.append("a", [draft("x", "n"), draft("y", take="gone")])
        assert caught.value.index == 1
        assert (await store.head("a")).version == 1

    with_store(body)


def test_records_expire(with_store, monkeypatch):
    real, later = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + later[0])

    async def body(store):
        await store.remember("a", {"k": b"v"}, 60)
        await store.remember("a", {"long": b"v"}, 6000)
        assert await store.recall("a", "k") == b"v"
        later[0] = 61.0
        assert await store.recall("a", "k") is None
        assert await store.recall("a", "long") == b"v"
        with pytest.raises(Missing):
            await store.append("a", [draft("x", take="k")])
        await store.remember("a", {"new": b"v"}, 60)  # writing clears what has expired
        assert (await store.append("a", [draft("x", take="long"), draft("y", take="new")]))[1].version == 2

    with_store(body)


def test_concurrent_appends_get_one_order_and_each_id_one_place(with_store):
    async def body(store):
        sent = [store.append("a", [draft(f"{i % 100}", f"{i % 100}")]) for i in range(300)]
        placed = [p for (p,) in await asyncio.gather(*sent)]
        assert sum(p.fresh for p in placed) == 100
        for i in range(100):
            assert len({placed[j].version for j in (i, i + 100, i + 200)}) == 1
        entries = await store.read("a", 0, 1000)
        assert [e.version for e in entries] == list(range(1, 101))

    with_store(body)


def test_snapshots_keep_the_newest_and_trim_what_they_cover(with_store):
    async def body(store):
        await fill(store, "a", 10)
        for version in (3, 6, 9):
            held = await store.save("a", Snapshot(version, f"d{version}", b"s"), {}, keep=2, floor=8)
            assert held == f"d{version}"
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


def test_two_folds_that_disagree_are_told(with_store):
    async def body(store):
        await fill(store, "a", 3)
        assert await store.save("a", Snapshot(3, "mine", b"m"), {1: b"o"}, keep=2, floor=1) == "mine"
        assert (
            await store.save("a", Snapshot(3, "yours", b"y"), {1: b"p", 2: b"q"}, keep=2, floor=1) == "mine"
        )
        assert await store.snapshot("a", 3) == Snapshot(3, "mine", b"m")
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


def test_a_withdrawal_marks_its_entry_and_drops_the_snapshots_that_know_it(with_store):
    async def body(store):
        await fill(store, "a", 5)
        for version in (2, 3, 5):
            await store.save("a", Snapshot(version, f"d{version}", b"s"), {}, keep=3, floor=1)
        (placed,) = await store.append("a", [draft("w", "w4", marks=3, base=2)])
        assert placed.version == 6
        assert [e.mark for e in await store.read("a", 2, 10)] == [6, 0, 0, 0]
        assert (await store.head("a")).snapshots == (2,)
        assert await store.snapshot("a", 5) is None
        await store.save("a", Snapshot(4, "late", b"s"), {4: b"o"}, keep=1, floor=6)  # it knows entry 3
        head = await store.head("a")
        assert (head.snapshots, head.floor) == ((2,), 1)
        assert await store.outcome("a", 4) == b"o"
        await store.save("a", Snapshot(6, "d6", b"s"), {}, keep=1, floor=6)
        head = await store.head("a")
        assert (head.snapshots, head.floor) == ((6,), 6)

    with_store(body)


@pytest.mark.parametrize("base", [0, 1, 2])
def test_a_withdrawal_needs_the_log_from_its_base_on(with_store, base):
    async def body(store):
        await fill(store, "a", 5)
        await store.save("a", Snapshot(3, "d3", b"s"), {}, keep=1, floor=4)
        with pytest.raises(Trimmed):
            await store.append("a", [draft("w", marks=3, base=base)])
        assert (await store.append("a", [draft("w", marks=4, base=3)]))[0].version == 6

    with_store(body)


def test_a_dropped_log_is_empty_and_closed(with_store):
    async def body(store):
        await fill(store, "a", 3)
        await store.remember("a", {"k": b"v"}, 60)
        await store.save("a", Snapshot(3, "d", b"s"), {1: b"o"}, keep=1, floor=1)
        await store.drop("a")
        assert (await store.head("a")).closed
        assert await store.read("a", 0, 10) == []
        assert await store.recall("a", "k") is None
        assert await store.find("a", "id1") is None
        assert await store.snapshot("a", 3) is None
        assert await store.outcome("a", 1) is None
        for write in (
            store.append("a", [draft("x")]),
            store.save("a", Snapshot(3, "d", b"s"), {}, keep=1, floor=1),
        ):
            with pytest.raises(Closed):
                await write
        await store.drop("never-there")
        assert (await store.head("never-there")).closed

    with_store(body)


def test_documents_change_by_compare_and_set(with_store):
    async def body(store):
        first = await store.put("kind", "n", b"one", 0)
        with pytest.raises(Stale):
            await store.put("kind", "n", b"two", 0)
        second = await store.put("kind", "n", b"two", first)
        with pytest.raises(Stale):
            await store.remove("kind", "n", first)
        assert await store.count("kind") == 1
        await store.remove("kind", "n", second)
        assert await store.get("kind", "n") is None
        assert await store.count("kind") == 0
        assert await store.put("kind", "n", b"three", 0) not in (first, second)  # a revision never comes back
        races = await asyncio.gather(
            *(store.put("kind", "race", b"%d" % i, 0) for i in range(20)), return_exceptions=True
        )
        assert sum(isinstance(r, int) for r in races) == 1
        assert sum(isinstance(r, Stale) for r in races) == 19

    with_store(body)


def test_documents_are_paged_by_name(with_store):
    async def body(store):
        names = [*sorted(f"n{i:02d}" for i in range(25)), "x.y-z_0"]
        for name in reversed(names):
            await store.put("kind", name, name.encode(), 0)
        await store.put("other", "a", b"", 0)
        met, after = [], ""
        while page := await store.page("kind", after, 10):
            met += page
            after = page[-1][0]
        assert [name for name, _ in met] == names
        assert all(document.value == name.encode() for name, document in met)

    with_store(body)


def test_large_values_and_any_bytes_pass(with_store):
    async def body(store):
        blob = bytes(range(256)) * 4096
        await store.remember("a", {"k": blob}, 60)
        await store.append("a", [Draft(blob, ids=("\u00fc \n \x00 id",), digest="d e", take="k")])
        (entry,) = await store.read("a", 0, 1)
        assert (entry.body, entry.taken) == (blob, blob)
        assert await store.find("a", "\u00fc \n \x00 id") == (1, "d e")
        await store.save("a", Snapshot(1, "d", blob * 4), {1: blob}, keep=1, floor=1)
        assert (await store.snapshot("a", 1)).data == blob * 4
        assert await store.outcome("a", 1) == blob
        await store.put("kind", "n", blob, 0)
        assert (await store.get("kind", "n")).value == blob

    with_store(body)


def test_check_writes(with_store):
    with_store(lambda store: store.check())
