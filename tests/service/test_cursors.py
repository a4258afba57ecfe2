"""Cursors: sealed with a key that all replicas of a store share, and refused when they are anything else."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.runtime.cursors import Cursors


def test_any_replica_reads_the_cursor_of_another_now_and_after_a_restart(with_store):
    async def first(store):
        one, other = Cursors(store), Cursors(store)
        cursor = await one.seal("learners", "mail.work")
        assert await other.open("learners", cursor) == "mail.work"
        assert await other.seal("learners", "mail.work") == cursor
        return cursor

    async def again(store):
        return await Cursors(store).open("learners", cursor)

    cursor = with_store(first)
    assert with_store(again) == "mail.work"


def test_two_replicas_that_make_the_key_at_once_agree(with_store):
    async def body(store):
        one, other = Cursors(store), Cursors(store)
        await one.open("learners", None)
        assert await other._key.read() is None
        sealed = await one.seal("learners", "a")
        await other._key.make()
        assert await other.open("learners", sealed) == "a"

    with_store(body)


def test_a_cursor_says_nothing_and_not_even_a_length(with_store):
    async def body(store):
        cursors = Cursors(store)
        sealed = [await cursors.seal("learners", name) for name in ("a", "secret-name", "x" * 128)]
        assert len({len(cursor) for cursor in sealed}) == 1
        assert b"secret" not in urlsafe_b64decode(sealed[1])
        assert await cursors.seal("learners", None) is None
        return [await cursors.open("learners", cursor) for cursor in sealed]

    assert with_store(body) == ["a", "secret-name", "x" * 128]


def test_what_is_no_cursor_of_this_list_is_refused(with_store):
    async def body(store):
        cursors = Cursors(store)
        assert await cursors.open("learners", "") == ""  # `?cursor=` is the first page
        wrong = ["!!", "a", urlsafe_b64encode(b"mail").decode(), "A" * 192, "A" * 5000, "\u00e9\u4e00"]
        with pytest.raises(Unprocessable):  # before there is a key at all
            await cursors.open("learners", wrong[3])
        sealed = await cursors.seal("learners", "mail")
        data = urlsafe_b64decode(sealed)
        for at in range(0, len(data), 7):
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            wrong.append(urlsafe_b64encode(changed).decode())
        for cursor in wrong:
            with pytest.raises(Unprocessable, match="cursor"):
                await cursors.open("learners", cursor)
        with pytest.raises(Unprocessable):
            await cursors.open("aliases", sealed)

    with_store(body)
