"""One does not stall another: long work of a learner the fast ones, and a connection that has ended those that go on."""

import asyncio
import threading

import numpy as np

from feedrank.service.http.wire import JoinedWrites, Outbox

ITEMS = 2000
SLOW_CALLS = 5


def test_a_slow_learner_does_not_stall_a_fast_one(start):
    process = start()
    chance = np.random.default_rng(7)
    items = [{"id": str(i), "features": chance.normal(size=8).tolist()} for i in range(ITEMS)]
    relevance = {str(i): float(grade) for i, grade in enumerate(chance.integers(0, 5, ITEMS))}
    event = {"items": items, "relevance": relevance}
    slow_spec = {"task": "subset-ranking", "algorithm": "predtron", "loss": "ap"}
    with process.client() as client, process.client() as other:
        client.put("/v1/learners/fast", json={"task": "multiclass"}).raise_for_status()
        client.put("/v1/learners/slow", json=slow_spec).raise_for_status()
        client.post("/v1/learners/fast/feedback", json={"features": ["a"], "label": "x"}).raise_for_status()
        other.post("/v1/learners/slow/feedback", json=event).raise_for_status()
        over = threading.Event()

        def load():
            for _ in range(SLOW_CALLS):
                other.post("/v1/learners/slow/feedback", json=event).raise_for_status()
            over.set()

        worker = threading.Thread(target=load)
        worker.start()
        answered = 0
        while not over.is_set():
            body = {"features": ["a"], "remember": False}
            client.post("/v1/learners/fast/predict", json=body).raise_for_status()
            answered += 1
        worker.join()
    # If the fast one waited for each slow call to end, there would be one answer or two for each.
    assert answered > 3 * SLOW_CALLS


def test_a_reply_to_a_connection_that_has_ended_does_not_hold_back_those_of_others():
    class Transport:
        def __init__(self, ended):
            self.ended, self.sent = ended, []

        def write(self, data):
            if self.ended:
                raise RuntimeError("the handler is closed")
            self.sent.append(data)

        def is_closing(self):
            return self.ended

    async def body():
        outbox, loop = Outbox(), asyncio.get_running_loop()
        transports = [Transport(ended=True), Transport(ended=False)]
        joined = [JoinedWrites(transport, loop, outbox) for transport in transports]
        for _ in range(2):
            for writes in joined:
                writes.write(b"reply")
            assert joined[1].pending
            await asyncio.sleep(0)
            assert not joined[1].pending
        assert transports[1].sent == [b"reply"] * 2

    asyncio.run(body())
