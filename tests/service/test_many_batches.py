"""Many large batches at once: appended some at a time, by bytes and events; none is refused, and a neighbour goes on."""

import asyncio

from feedrank.service.runtime import writer

SPEC = {"task": "multiclass", "algorithm": "predtron"}
BATCHES, EVENTS = 30, 200


def batch(number):
    return {
        "events": [
            {"features": {f"w{i % 40}": 1.0}, "label": "abc"[i % 3], "feedback_id": f"{number}/{i}"}
            for i in range(EVENTS)
        ]
    }


def test_thirty_batches_at_once_are_all_taken_and_a_neighbour_goes_on(with_host, monkeypatch):
    # The limit of one append in proportion to these batches, as 1 MiB is to batches of 10,000 events.
    monkeypatch.setattr(writer, "HEAVIEST", writer.HEAVIEST * EVENTS // 10_000)
    appended, seen = [], 0

    async def body(host):
        nonlocal seen
        await host.create("a", SPEC)
        await host.create("n", SPEC)
        await host.feedback("n", {"features": ["w"], "label": "x"})
        own = host.store.append

        async def append(log, drafts, *more):
            appended.append(len(drafts))
            return await own(log, drafts, *more)

        monkeypatch.setattr(host.store, "append", append)
        sent = asyncio.gather(*(host.feedback("a", batch(number)) for number in range(BATCHES)))
        while not sent.done():
            await host.predict("n", {"features": ["w"]})
            seen += 1
        replies = await sent
        versions = sorted(one["version"] for reply in replies for one in reply["results"])
        assert versions == list(range(1, BATCHES * EVENTS + 1))
        assert not any(one["duplicate"] for reply in replies for one in reply["results"])

    with_host(body)
    assert sum(appended) == BATCHES * EVENTS
    assert max(appended) == EVENTS  # a batch is heavier than what may be joined: each goes alone
    assert seen >= BATCHES
