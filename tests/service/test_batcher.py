"""Calls that go together: in order, the next on its way before the last is handed out, a failure to its own items only."""

import asyncio

import pytest

from feedrank.service.store.shared import Batcher, WorkThread


def test_the_next_call_begins_before_results_are_handed_out():
    seen = []

    async def main():
        async def call(key, items):
            seen.append(f"call {items}")
            await asyncio.sleep(0.01)
            return items

        batcher = Batcher(call, 2)
        futures = [batcher.submit("k", number) for number in range(4)]
        for future in futures:
            future.add_done_callback(lambda future: seen.append(future.result()))
        await batcher.close()
        await asyncio.gather(*futures)

    asyncio.run(main())
    assert seen == ["call [0, 1]", "call [2, 3]", 0, 1, 2, 3]


def test_what_is_done_ahead_keeps_the_order_and_overlaps_the_call_before():
    seen = []

    async def main():
        async def ahead(key, items):
            seen.append(("ahead", *items))
            await asyncio.sleep(0)
            return True

        async def call(key, items):
            seen.append(("call", *items))
            await asyncio.sleep(0)
            return items

        batcher = Batcher(call, 1, ahead=ahead)
        assert await asyncio.gather(*(batcher.submit("k", number) for number in range(3))) == [0, 1, 2]

    asyncio.run(main())
    assert seen == [("ahead", 0), ("ahead", 1), ("call", 0), ("ahead", 2), ("call", 1), ("call", 2)]


def test_nothing_goes_ahead_of_a_call_that_does_all_itself():
    seen = []

    async def main():
        async def ahead(key, items):
            seen.append(("ahead", *items))
            return items != [0]

        async def call(key, items):
            seen.append(("call", *items))
            await asyncio.sleep(0.01)
            return items

        batcher = Batcher(call, 1, ahead=ahead)
        await asyncio.gather(*(batcher.submit("k", number) for number in range(2)))

    asyncio.run(main())
    assert seen == [("ahead", 0), ("call", 0), ("ahead", 1), ("call", 1)]


@pytest.mark.parametrize("where", ["ahead", "call"])
def test_a_failure_is_that_of_its_own_items(where):
    async def main():
        async def ahead(key, items):
            if where == "ahead" and 1 in items:
                raise ValueError(items)
            return True

        async def call(key, items):
            if where == "call" and 1 in items:
                raise ValueError(items)
            return items

        batcher = Batcher(call, 1, ahead=ahead)
        futures = [batcher.submit("k", number) for number in range(3)]
        return await asyncio.gather(*futures, return_exceptions=True)

    first, failed, last = asyncio.run(main())
    assert (first, last) == (0, 2)
    assert isinstance(failed, ValueError)


def test_a_thread_gives_results_and_failures_and_finishes_what_it_was_given():
    async def main():
        thread = WorkThread("test")
        futures = [thread.submit(lambda number: 6 // number, number) for number in (3, 0, 2)]
        thread.close()
        return await asyncio.gather(*futures, return_exceptions=True)

    first, failed, last = asyncio.run(main())
    assert (first, last) == (2, 3)
    assert isinstance(failed, ZeroDivisionError)
