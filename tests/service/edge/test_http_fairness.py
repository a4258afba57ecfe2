"""Long work of one learner does not stall another: the fast one's latency, with and without the slow one's load."""

import statistics
import threading
import time

import numpy as np

ITEMS = 2000


def latencies(client, enough):
    """Seconds of each prediction of the fast learner until there are `enough`."""
    taken = []
    while not enough(taken):
        begun = time.perf_counter()
        assert (
            client.post("/v1/learners/fast/predict", json={"features": ["a"], "remember": False}).status_code
            == 200
        )
        taken.append(time.perf_counter() - begun)
    return taken


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
        latencies(client, lambda taken: len(taken) >= 50)
        alone = statistics.median(latencies(client, lambda taken: len(taken) >= 200))
        over, busy = threading.Event(), []

        def load():
            while not over.is_set():
                begun = time.perf_counter()
                other.post("/v1/learners/slow/feedback", json=event).raise_for_status()
                busy.append(time.perf_counter() - begun)

        worker = threading.Thread(target=load)
        worker.start()
        beside = latencies(client, lambda taken: len(busy) >= 3)
        over.set()
        worker.join()
    slow = statistics.median(busy)
    print(
        f"slow call {slow * 1e3:.1f} ms; fast alone {alone * 1e3:.2f} ms, beside {statistics.median(beside) * 1e3:.2f} ms"
    )
    # One interpreter serves both, so they share it; but nobody waits for the slow call to end, which would be half of it.
    assert statistics.median(beside) < max(5 * alone, 0.2 * slow)
