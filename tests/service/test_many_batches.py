"""Many large batches at once: appended some at a time, by bytes and events; none is refused, and a neighbour goes on."""

import asyncio

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.runtime import writer

SPEC = {"task": "multiclass", "algorithm": "predtron"}
BATCHES, EVENTS = 30, 200
LABELS = 100  # more than go into one append


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
    assert (
        seen >= BATCHES // 2
    )  # one is applied while the next is appended: a turn of the neighbour may see two


def test_events_that_wait_to_be_applied_count_towards_the_limit_of_labels(with_host):
    async def body(host):
        await host.create("a", SPEC)
        events = [{"features": ["w"], "label": f"label {number}"} for number in range(LABELS + 40)]
        calls = [host.feedback("a", event) for event in events]
        replies = await asyncio.gather(*calls, return_exceptions=True)
        taken = [reply for reply in replies if isinstance(reply, dict)]
        assert len(taken) == LABELS
        assert all(isinstance(reply, dict | Unprocessable) for reply in replies)
        assert len((await host.info("a"))["labels"]) == LABELS
        assert (await host.feedback("a", events[0]))["version"] == LABELS + 1

    with_host(body, max_labels=LABELS)
