"""The laws of records and documents, on SQLite files and on a real Redis."""

import asyncio
import time

import pytest
from store_logs import draft

from feedrank.service.store import Clash, Due, Missing, Record, Stale


def test_a_record_is_taken_once_with_the_entry(with_store):
    async def body(store):
        await store.remember("a", {"p": b"instance", "q": b"other"}, 60)
        (placement,) = await store.append("a", [draft("truth", "p", take="p")])
        assert placement.fresh
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


def test_records_expire(with_store, later):
    async def body(store):
        await store.remember("a", {"k": b"v"}, 60)
        await store.remember("a", {"long": b"v"}, 6000)
        assert await store.recall("a", "k") == b"v"
        later(61.0)
        assert await store.recall("a", "k") is None
        assert await store.recall("a", "long") == b"v"
        with pytest.raises(Missing):
            await store.append("a", [draft("x", take="k")])
        await store.remember("a", {"new": b"v"}, 60)  # writing clears what has expired
        assert (await store.append("a", [draft("x", take="long"), draft("y", take="new")]))[1].version == 2

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


def test_names_are_paged_within_a_prefix(with_store):
    async def body(store):
        for name in ("a", "mail", "mail-", "mail-1", "mail-2", "mail.x", "maim"):
            await store.put("kind", name, b"", 0)

        async def names(after, limit, prefix):
            return [name for name, _ in await store.page("kind", after, limit, prefix)]

        assert await names("", 10, "mail-") == ["mail-", "mail-1", "mail-2"]
        assert await names("mail-", 1, "mail-") == ["mail-1"]
        assert await names("a", 10, "mail") == ["mail", "mail-", "mail-1", "mail-2", "mail.x"]
        assert await names("mail-2", 10, "mail-") == []
        assert await names("z", 10, "mail-") == []
        assert await names("", 10, "none") == []

    with_store(body)


def test_the_first_record_of_a_key_stays(with_store):
    async def body(store):
        assert await store.remember("a", {"p": Record(b"first", "d"), "q": b"plain"}, 60) == {}
        again = {"p": Record(b"second", "d"), "n": b"new"}
        assert await store.remember("a", again, 60) == {"p": b"first"}
        assert [await store.recall("a", key) for key in "pqn"] == [b"first", b"plain", b"new"]
        with pytest.raises(Clash) as caught:
            await store.remember("a", {"m": b"x", "p": Record(b"third", "other")}, 60)
        assert caught.value.index == 1
        assert await store.recall("a", "m") is None
        assert await store.recall("a", "p") == b"first"
        races = [store.remember("a", {"race": Record(b"%d" % i, "d")}, 60) for i in range(20)]
        first = await asyncio.gather(*races)
        assert sum(not one for one in first) == 1
        assert {one["race"] for one in first if one} == {await store.recall("a", "race")}

    with_store(body)


def test_a_record_that_was_taken_still_answers_its_repeats(with_store, later):
    async def body(store):
        await store.remember("a", {"p": Record(b"first", "d"), "q": b"plain"}, 60)
        await store.append("a", [draft("x", "p", take="p"), draft("y", "q", take="q")])
        assert await store.remember("a", {"p": Record(b"second", "d")}, 60) == {"p": b"first"}
        assert await store.recall("a", "p") is None
        with pytest.raises(Missing):
            await store.append("a", [draft("z", take="p")])
        with pytest.raises(Clash):
            await store.remember("a", {"p": Record(b"third", "other")}, 60)
        assert await store.examine("a") == []
        later(61.0)
        assert await store.remember("a", {"p": Record(b"fourth", "other")}, 60) == {}
        assert await store.recall("a", "p") == b"fourth"

    with_store(body)


def test_a_record_is_amended_only_from_the_expected_value(with_store):
    async def body(store):
        await store.remember("a", {"p": Record(b"one", "d")}, 60)
        await store.amend("a", "p", b"two", b"one")
        with pytest.raises(Stale):
            await store.amend("a", "p", b"three", b"one")
        assert await store.recall("a", "p") == b"two"
        with pytest.raises(Stale):
            await store.append("a", [draft("x", take="p", expects=b"one")])
        assert (await store.head("a")).version == 0
        await store.append("a", [draft("x", take="p", expects=b"two")])
        for key in ("p", "never"):
            with pytest.raises(Missing):
                await store.amend("a", key, b"four", b"two")
        assert (await store.read("a", 0, 1))[0].taken == b"two"
        assert await store.remember("a", {"p": Record(b"new", "d")}, 60) == {"p": b"two"}

    with_store(body)


def test_due_records_are_listed_until_they_are_taken_or_expire(with_store, later):
    now = time.time()

    async def body(store):
        await store.remember("a", {"p": Record(b"x", due=now + 10), "plain": b"y"}, 60)
        await store.remember("b", {"q": Record(b"x", due=now + 5), "r": Record(b"x", due=now + 30)}, 60)
        assert await store.due(now, 10) == []
        assert await store.due(now + 10, 10) == [Due("b", "q", now + 5), Due("a", "p", now + 10)]
        assert await store.due(now + 10, 1) == [Due("b", "q", now + 5)]
        await store.append("b", [draft("e", take="q")])
        assert await store.due(now + 10, 10) == [Due("a", "p", now + 10)]
        await store.amend("a", "p", b"z", b"x", now + 20)
        assert await store.due(now + 15, 10) == []
        assert await store.due(now + 25, 10) == [Due("a", "p", now + 20)]

    async def restarted(store):
        due = [Due("a", "p", now + 20), Due("b", "r", now + 30)]
        assert await store.due(now + 30, 10) == due
        await store.drop("a")
        assert await store.due(now + 30, 10) == due[1:]
        assert await store.due(now + 30, 10) == due[1:]
        later(61.0)
        assert await store.due(now + 100, 10) == []
        await store.remember("b", {"s": Record(b"x", due=now + 70)}, 60)
        assert await store.due(now + 100, 10) == [Due("b", "s", now + 70)]

    with_store(body)
    with_store(restarted)


def test_a_document_is_discarded_with_its_log(with_store):
    async def body(store):
        revision = await store.put("kind", "n", b"one", 0)
        await store.append("a", [draft("x")])
        with pytest.raises(Stale):
            await store.discard("kind", "n", revision + 1, "a")
        assert (await store.head("a")).version == 1
        await store.discard("kind", "n", revision, "a")
        assert await store.get("kind", "n") is None
        assert (await store.head("a")).closed
        assert await store.count("kind") == 0
        with pytest.raises(Stale):
            await store.discard("kind", "n", revision, "a")

    with_store(body)
