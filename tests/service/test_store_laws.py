"""The laws of a Store, on SQLite files and on a real Redis."""

import asyncio

import pytest
from store_logs import draft, fill

from feedrank.service.contract.faults import StorageFull
from feedrank.service.store import LAST, Clash, Closed, Diverged, Draft, Position, Record, Snapshot, Trimmed


def test_entries_are_numbered_from_one_and_read_back(with_store):
    async def body(store):
        placements = [(await store.append("a", [draft(text)]))[0] for text in ("x", "y", "z")]
        assert [(p.version, p.fresh) for p in placements] == [(1, True), (2, True), (3, True)]
        assert [(e.version, e.body, e.taken, e.retracted) for e in await store.read("a", 1, 10)] == [
            (2, b"y", None, 0),
            (3, b"z", None, 0),
        ]
        assert [e.version for e in await store.read("a", 0, 2)] == [1, 2]
        assert await store.read("a", 3, 10) == []
        assert await store.read("other", 0, 10) == []
        assert (await store.head("a")).version == 3
        assert (await store.head("other")).version == 0
        assert [at.version for at in await store.positions(["other", "a"])] == [0, 3]

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
        assert (await store.snapshot("a", 1)).data == b"data"
        assert await store.outcome("a", 1) == b"out"

    with_store(write)
    with_store(look)


def test_an_id_that_is_there_is_not_appended_again(with_store):
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


def test_concurrent_appends_get_one_order_and_each_id_one_place(with_store):
    async def body(store):
        sent = [store.append("a", [draft(f"{i % 100}", f"{i % 100}")]) for i in range(300)]
        placements = [p for (p,) in await asyncio.gather(*sent)]
        assert sum(p.fresh for p in placements) == 100
        for i in range(100):
            assert len({placements[j].version for j in (i, i + 100, i + 200)}) == 1
        entries = await store.read("a", 0, 1000)
        assert [e.version for e in entries] == list(range(1, 101))

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


def test_each_entry_names_the_one_before_it(with_store):
    async def body(store):
        await store.remember("a", {"p": b"record"}, 60)
        first = await store.append("a", [draft("x", "i"), draft("x", "i"), draft("y", take="p")])
        (second,) = await store.append("a", [draft("x")])
        entries = await store.read("a", 0, 10)
        fresh = [one for one in (*first, second) if one.fresh]
        assert [(e.version, e.chain, e.previous) for e in entries] == [
            (p.version, p.chain, p.previous) for p in fresh
        ]
        assert [e.previous for e in entries[1:]] == [e.chain for e in entries[:-1]]
        assert len({e.chain for e in entries} | {entries[0].previous}) == 4
        assert (first[1].version, first[1].chain) == (1, "")
        assert (await store.head("a")).position == Position(3, entries[-1].chain)
        assert await store.positions(["none", "a"]) == [Position(0, ""), Position(3, entries[-1].chain)]
        assert (await store.read("a", 2, 10))[0] == entries[2]
        await store.append("b", [draft("x", "i")])
        assert (await store.read("b", 0, 1))[0].chain != entries[0].chain  # another log is another history

    with_store(body)


def test_a_writer_with_another_history_is_refused(with_store):
    async def body(store):
        await fill(store, "a", 3)
        entries = await store.read("a", 0, 10)
        positions = [Position(e.version, e.chain) for e in entries] + [Position(0, entries[0].previous)]
        for position in positions:
            await store.append("a", [draft("ok")], position)
        wrong = [Position(2, entries[0].chain), Position(7, "f" * 40), Position(9, entries[0].chain)]
        for position in wrong:
            with pytest.raises(Diverged) as caught:
                await store.append("a", [draft("no", "n")], position)
            assert (caught.value.expected, caught.value.version) == (position.version, 7)
        assert await store.find("a", "n") is None
        with pytest.raises(Diverged):  # flushed, or restored from before it was made
            await store.append("empty", [draft("no")], Position(3, entries[-1].chain))
        assert (await store.head("empty")).version == 0
        await store.save("a", Snapshot(7, "d", b"s"), {}, keep=1, floor=8)
        await store.append(
            "a", [draft("ok")], positions[1]
        )  # trimmed: the reader will notice, not the writer
        with pytest.raises(Diverged):
            await store.append("a", [draft("no")], Position(7, "f" * 40))

    with_store(body)


def test_a_reader_with_another_history_is_told_so(with_store):
    async def body(store):
        await fill(store, "a", 3)
        entries = await store.read("a", 0, 10)
        assert await store.read("a", 1, 10, entries[0].chain) == entries[1:]
        assert await store.read("a", 0, 10, entries[0].previous) == entries
        assert await store.read("a", 3, 10, entries[2].chain) == []
        for after, chain in ((1, entries[1].chain), (3, entries[0].chain), (4, entries[2].chain), (0, "")):
            with pytest.raises(Diverged):
                await store.read("a", after, 10, chain)
        await store.save("a", Snapshot(3, "d", b"s"), {}, keep=1, floor=3)
        assert await store.read("a", 2, 10, entries[1].chain) == entries[2:]
        with pytest.raises(Diverged):
            await store.read("a", 2, 10, entries[0].chain)
        with pytest.raises(Trimmed):
            await store.read("a", 1, 10, entries[0].chain)

    with_store(body)


def test_times_never_go_back_within_a_log(with_store, later):
    async def body(store):
        for seconds in (0.0, -18_000.0, 50.0, 0.0):
            later(seconds)
            await store.append("a", [draft("x")])
        times = [e.at for e in await store.read("a", 0, 10)]
        assert times == sorted(times)
        assert times[0] == times[1]
        assert times[2] == times[3]

    with_store(body)


def test_a_log_ends_where_its_numbers_end_and_touches_no_other(with_store):
    async def body(store):
        await store.save("a", Snapshot(LAST - 1, "d", b"s"), {}, keep=1, floor=LAST)
        await fill(store, "b", 2)
        await store.remember("a", {"p": b"r"}, 60)
        (place,) = await store.append("a", [draft("last", "i", take="p")])
        assert (place.version, place.fresh) == (LAST, True)
        for drafts in ([draft("more", "j")], [draft("more"), draft("and more")]):
            with pytest.raises(StorageFull):
                await store.append("a", drafts)
        (again,) = await store.append("a", [draft("last", "i")])
        assert (again.version, again.fresh) == (LAST, False)
        (entry,) = await store.read("a", LAST - 1, 10)
        assert (entry.version, entry.taken) == (LAST, b"r")
        assert await store.remember("a", {"p": Record(b"r")}, 60) == {}
        assert [e.body for e in await store.read("b", 0, 10)] == [b"e1", b"e2"]
        with pytest.raises(StorageFull):
            await store.save("c", Snapshot(LAST + 1, "d", b"s"), {}, keep=1, floor=LAST)
        assert (await store.head("c")).version == 0
        for log in "abc":
            assert await store.examine(log) == []

    with_store(body)


def test_records_wait_by_rank_until_they_are_taken(with_store):
    async def body(store):
        ranks = {"c": 0.5, "a": 0.1, "b": 0.25}
        await store.remember("a", {key: Record(key.encode(), rank=rank) for key, rank in ranks.items()}, 60)
        await store.remember("a", {"no": b"x", "own": Record(b"y", "digest", rank=-1.0)}, 60)
        await store.remember("other", {"z": Record(b"z", rank=0.0)}, 60)

        async def keys(after=-2.0, limit=10):
            return [one.key for one in await store.waiting("a", after, limit)]

        assert await keys() == ["own", "a", "b", "c"]
        assert await keys(0.1) == ["b", "c"]
        assert await keys(limit=2) == ["own", "a"]
        assert [(one.rank, one.value) for one in await store.waiting("a", 0.2, 1)] == [(0.25, b"b")]
        await store.append("a", [Draft(b"1", ("i",), "d", take="b"), Draft(b"2", ("j",), "d", take="own")])
        assert await keys() == ["a", "c"]
        await store.drop("a")
        assert await keys() == []

    with_store(body)


def test_a_lease_hides_a_record_from_others_and_ends(with_store, later):
    async def body(store):
        await store.remember("a", {key: Record(b"v", rank=float(i)) for i, key in enumerate("abc")}, 1e6)
        assert await store.lease("a", ["a", "c", "none"], 100) == ["a", "c"]
        assert await store.lease("a", ["a", "b"], 100) == ["b"]
        assert await store.waiting("a", -1, 10) == []
        later(101)
        assert [one.key for one in await store.waiting("a", -1, 10)] == ["a", "b", "c"]
        assert await store.lease("a", ["b"], 100) == ["b"]
        later(2e6)
        assert await store.waiting("a", -1, 10) == []

    with_store(body)


def test_records_are_counted_by_their_mark_while_they_are_open(with_store):
    async def body(store):
        marks = {"a": 0.95, "b": 0.95, "c": -0.95, "d": None}
        await store.remember("a", {key: Record(b"v", "d", mark=mark) for key, mark in marks.items()}, 60)
        assert [await store.open("a", mark, 10) for mark in (0.95, -0.95, 0.9)] == [2, 1, 0]
        assert await store.open("a", 0.95, 1) == 1
        await store.append("a", [Draft(b"1", ("i",), "d", take="a")])
        assert await store.open("a", 0.95, 10) == 1
        await store.append("a", [Draft(b"2", ("j",), "d")])
        await store.erase("a", [], ["b"])
        assert await store.open("a", 0.95, 10) == 0

    with_store(body)
