"""Long work of one learner does not stall another: what the fast one answers while a call of the slow one is under way."""

import threading

import numpy as np

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
