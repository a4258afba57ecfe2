"""A liveness probe is answered while the heaviest work runs, and after a kill: no event becomes a crash loop."""

import threading
import time

import httpx
import numpy as np
from waiting import until

ITEMS = 1_800  # of several grades: an assignment that takes half a second or more of a processor
LEAST = 3  # probes answered during one piece of work; on the loop it would be none
SPEC = {"task": "subset-ranking", "algorithm": "predtron", "loss": "ndcg"}


def heavy(number):
    rng = np.random.default_rng(number)
    ids = [f"d{i}" for i in range(ITEMS)]
    rows = rng.standard_normal((ITEMS, 3)).tolist()
    items = {"ids": ids, "columns": ["a", "b", "c"], "rows": rows}
    grades = rng.integers(0, 5, ITEMS).tolist()
    relevance = dict(zip(ids, grades, strict=True))
    return {"items": items, "relevance": relevance, "feedback_id": f"heavy-{number}"}


class Probe(threading.Thread):
    """Asks for /livez again and again, each time on a connection of its own, as a kubelet does."""

    def __init__(self, process):
        super().__init__()
        self.url, self.answered, self.over = process.url, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            assert httpx.get(f"{self.url}/livez", timeout=600, trust_env=False).status_code == 200
            self.answered += 1
            time.sleep(0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def test_a_liveness_probe_is_answered_while_the_heaviest_event_is_learned_and_folded_again(start):
    process = start(FEEDRANK_SNAPSHOT_EVERY="1000000")
    with process.client() as client:
        client.put("/v1/learners/a", json=SPEC).raise_for_status()
        client.post(
            "/v1/learners/a/feedback", json=heavy(0)
        ).raise_for_status()  # the first order is that of the list
        with Probe(process) as probe:
            first = client.post("/v1/learners/a/feedback", json=heavy(1)).json()
        assert probe.answered >= LEAST
        sent = threading.Thread(target=send, args=(process, heavy(2)))
        sent.start()
        until(lambda: client.get("/v1/learners/a/events", params={"after": 2}).json()["events"])
    process.kill()  # in the middle of the third one: it is in the log and nobody has applied it to the end
    sent.join()
    process = start()
    with process.client() as client, Probe(process) as probe:
        info = client.get("/v1/learners/a").json()
        assert probe.answered >= LEAST
        assert (info["version"], info["progress"]["rounds"]) == (3, 3)
        again = client.post("/v1/learners/a/feedback", json=heavy(1)).json()
        assert again == {**first, "duplicate": True}


def send(process, body):
    try:
        httpx.post(f"{process.url}/v1/learners/a/feedback", json=body, timeout=600, trust_env=False)
    except httpx.TransportError:
        return  # it was killed
