"""Erasing in a store: bodies are gone to the last byte, their checksums stay, and the chain is what it was."""

import asyncio
from dataclasses import replace

import pytest
from store_bytes import bytes_of
from store_logs import draft, run

from feedrank.service.contract.faults import Gone
from feedrank.service.store import Clash, Closed, Draft, Record, Snapshot, Trimmed
from feedrank.service.store.shared import checksum
from feedrank.service.store.sql import row_erasing

SECRET = b"jane.doe@example.org"


async def fill(store, events=400):
    """A log in which every fortieth event says the secret, in its body, its record and its ids, and is retracted."""
    named = []
    for i in range(1, events + 1):
        text = f"{SECRET.decode() if i % 40 == 0 else 'somebody'} {i} " + "x" * 200
        await store.remember("a", {f"p {text}": Record(text.encode(), "digest")}, 600)
        (place,) = await store.append("a", [draft(text, f"id {text}", take=f"p {text}")])
        await store.append("b", [draft(f"other {i}")])
        if i % 40 == 0:
            named.append((place.version, f"p {text}", f"id {text}"))
    await store.save("a", Snapshot(place.version, "d", SECRET * 1000), {named[0][0]: SECRET}, keep=2, floor=1)
    for version, _, _ in named:
        body = b"%s %d" % (SECRET, version)
        await store.append("a", [Draft(body, ids=(f"w:{version}",), retracts=version)])
    return named


def test_no_byte_is_left_and_the_chain_stays(with_store, store_url):
    seen = {}

    async def body(store):
        named = await fill(store)
        seen["ids"] = [id for _, _, id in named]
        before = await store.read("a", 0, 1000)
        assert SECRET in bytes_of(store_url)
        sums = await store.erase("a", [version for version, _, _ in named], [key for _, key, _ in named])
        after = await store.read("a", 0, 1000)  # checked against the chain
        gone = {version for version, _, _ in named}
        for old, new in zip(before, after, strict=True):
            if old.version in gone or old.retracts in gone:
                assert (new.body, new.taken) == (b"", None)
                taken = "-" if old.taken is None else checksum(old.taken)
                assert new.erased == f"{checksum(old.body)} {taken}"
                assert replace(old, body=b"", taken=None, erased=new.erased) == new
            else:
                assert old == new
        assert sums == [checksum(old.body) for old in before if old.version in gone]
        assert await store.erase("a", sorted(gone)) == sums  # again
        assert await store.examine("a") == []
        assert SECRET not in bytes_of(store_url)

    async def again(store):
        assert await store.examine("a") == []
        with pytest.raises(Gone):
            await store.append("a", [draft("new", "n"), draft("again", seen["ids"][0])])
        assert await store.find("a", "n") is None
        with pytest.raises(Gone):
            await store.find("a", seen["ids"][1])
        with pytest.raises(Gone):
            await store.remember("a", {seen["ids"][2].replace("id ", "p "): Record(b"x", "digest")}, 600)
        many = [draft(f"new {i}", f"n{i}") for i in range(20)]
        with pytest.raises(Gone):
            await store.append("a", [*many, draft("again", seen["ids"][0])])
        before = (await store.append("a", many))[-1].version
        again = await store.append("a", [*many, draft("one more", "m")])
        assert [place.fresh for place in again] == [False] * 20 + [True]
        assert again[-2].version == before
        with pytest.raises(Clash):
            await store.append("a", [*many[:-1], draft("other", "n19", digest="other")])
        assert (await store.append("b", [draft("again", seen["ids"][0])]))[0].fresh  # ids belong to their log

    with_store(body)
    with_store(again)


def test_a_kill_between_erasing_and_writing_anew_is_made_good_at_the_next_start(tmp_path):
    url = f"sqlite:{tmp_path / 'feedrank.db'}"

    async def body(store):
        named = await fill(store)
        versions, keys = [version for version, _, _ in named], [key for _, key, _ in named]
        await store._write(lambda db: row_erasing.erase(db, "a", versions, keys, ()))
        assert SECRET in bytes_of(url)

    async def nothing(store):
        assert SECRET not in bytes_of(url)

    run(url, body)
    run(url, nothing)


def test_others_write_while_a_long_log_is_written_anew(with_store):
    async def body(store):
        await store.append("a", [draft(f"e{i}", f"id{i}") for i in range(1, 4001)])
        for version in (3, 1500, 3999):
            await store.append("a", [Draft(b"{}", retracts=version)])

        async def write():
            for i in range(60):
                await store.append("a", [draft(f"late{i}", f"late{i}")])

        await asyncio.gather(store.erase("a", [3, 1500]), write(), store.erase("a", [3999]))
        entries = await store.read("a", 0, 5000)
        assert [entry.version for entry in entries if entry.erased] == [3, 1500, 3999, 4001, 4002, 4003]
        assert len(entries) == 4063
        assert await store.examine("a") == []

    with_store(body)


def test_what_has_no_entry_can_be_erased_too(with_store):
    async def body(store):
        await store.remember("a", {"mine": Record(b"waits, and names s:42", "digest")}, 600)
        await store.append("a", [draft("x", "i", "s:42:a"), draft("y", "s:42:b"), draft("z", "s:421:a")])
        assert await store.search("a", "s:42:", b"s:42") == ([1, 2], ["mine"])
        assert await store.erase("a", [], ["mine"], ["p:mine"]) == []
        assert await store.recall("a", "mine") is None
        assert await store.search("a", "s:42:", b"s:42") == ([1, 2], [])
        for call in (
            store.remember("a", {"mine": Record(b"again", "digest")}, 600),
            store.append("a", [draft("again", "p:mine")]),
        ):
            with pytest.raises(Gone):
                await call
        await store.drop("a")
        with pytest.raises(Closed):
            await store.erase("a", [1])

    with_store(body)


def test_an_entry_that_revises_drops_the_snapshots_behind_its_base(with_store):
    async def body(store):
        await store.append("a", [draft(f"e{i}") for i in range(1, 7)])
        for version in (2, 4):
            await store.save("a", Snapshot(version, f"d{version}", b"data"), {}, keep=5, floor=1)
        with pytest.raises(Trimmed):
            await store.append("a", [Draft(b"{}", revises=True, base=3)])
        await store.append("a", [Draft(b"{}", revises=True, base=2)])
        await store.append("a", [draft("e8"), Draft(b"{}", revises=True, base=0)])
        head = await store.head("a")
        assert (head.version, head.snapshots, head.retracted, head.revisions) == (9, (), 9, (7, 9))
        # Whoever has not heard of it is not believed; whoever has, is.
        await store.save("a", Snapshot(5, "d", b"data"), {}, keep=5, floor=1)
        assert (await store.head("a")).snapshots == ()
        await store.save("a", Snapshot(5, "d", b"data", without=9), {}, keep=5, floor=1)
        assert (await store.head("a")).snapshots == (5,)
        await store.drop("a")
        assert (await store.head("a")).revisions == ()

    with_store(body)
