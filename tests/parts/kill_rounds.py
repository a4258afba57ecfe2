"""kill -9 of the service at random moments under eight clients that make every kind of call, and the check afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
from waiting import until

from feedrank import learners

SPEC = {"task": "multiclass", "algorithm": "predtron"}
CLIENTS = 8


class Service:
    """`feedrank serve` in a process of its own."""

    def __init__(self, store, **settings):
        command = [sys.executable, "-c", "from feedrank.cli import main; main()", "serve", "--port", "0"]
        self.output = tempfile.TemporaryFile("w+")  # noqa: SIM115
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        self.process = subprocess.Popen(
            [*command, "--store", store],
            stdout=subprocess.PIPE,
            stderr=self.output,
            text=True,
            env={"FEEDRANK_SNAPSHOT_EVERY": "25", "PATH": "", **path, **settings},
        )
        line = self.process.stdout.readline()
        if "http://" not in line:
            self.stop(signal.SIGKILL)
            raise AssertionError(f"it did not start: {line}")
        self.url = line.split("http://")[1].split()[0].rstrip(";")

    def client(self):
        return httpx.Client(base_url=f"http://{self.url}/v1", timeout=600, trust_env=False)

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(600)
        self.process.stdout.close()
        self.output.seek(0)
        print(self.output.read())  # shown by pytest if the test fails
        self.output.close()


class Load:
    """What the clients sent, and what was acknowledged."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.number = 0
        self.calls = Counter()
        self.replies = {}  # id -> (request, first reply)
        self.unsure = {}  # id -> request: sent, and no reply came
        self.open = {}  # predictions without feedback yet: id -> decision
        self.own = {}  # predictions under ids of the caller: id -> (request, first reply)
        self.retracted = set()
        self.maybe_retracted = set()
        self.learners = {}  # name -> it is there, or None: not certain
        self.alias = [None]  # what it may point to: the last that was acknowledged and those sent since

    def next(self):
        with self.lock:
            self.number += 1
            return self.number

    def wait(self, count):
        """Until so many more events are acknowledged."""
        start = len(self.replies)
        until(lambda: len(self.replies) >= start + count, "the service does not answer", pause=0.001)

    def run(self, service, stop):
        """One client: calls of every kind, until it is stopped or the service is gone."""
        rng = random.Random(self.next() * 1000 + self.random.random())
        kinds = (self.predict, self.own_prediction, self.answer, self.repeat, self.resend, self.batch)
        kinds += (self.retract, self.learner, self.point, self.feedback)
        weights = (25, 5, 20, 8, 5, 5, 3, 4, 2, 40)
        with service.client() as client:
            while not stop.is_set():
                (kind,) = rng.choices(kinds, weights)
                try:
                    if kind(client, rng) is not False:
                        self.calls[kind.__name__] += 1
                except httpx.TransportError:
                    return

    # Calls; False where there is nothing to call with yet

    def predict(self, client, rng):
        reply = post(client, "/learners/a/predict", {"features": features(rng)})
        self.open[reply["prediction_id"]] = reply["label"]

    def own_prediction(self, client, rng):
        id = f"own{self.next()}"
        request = {"features": features(rng), "prediction_id": id}
        self.own[id] = (request, post(client, "/learners/a/predict", request))

    def answer(self, client, rng):
        with self.lock:
            if not self.open:
                return False
            id, _ = self.open.popitem()
        return self.send(client, id, {"prediction_id": id, "label": rng.choice("abc")})

    def repeat(self, client, rng):
        if not self.replies:
            return False
        id = rng.choice(list(self.replies))
        request, first = self.replies[id]
        again = post(client, "/learners/a/feedback", request)
        if id not in self.maybe_retracted:
            assert again == {**first, "duplicate": True}
        return True

    def resend(self, client, rng):
        with self.lock:
            if not self.unsure:
                return False
            id, request = self.unsure.popitem()
        return self.send(client, id, request)

    def feedback(self, client, rng):
        id = f"f{self.next()}"
        self.send(client, id, {"features": features(rng), "label": rng.choice("abc"), "feedback_id": id})

    def batch(self, client, rng):
        ids = [f"b{self.next()}" for _ in range(5)]
        events = [{"features": features(rng), "label": rng.choice("abc"), "feedback_id": id} for id in ids]
        self.unsure.update(zip(ids, events, strict=True))
        results = post(client, "/learners/a/feedback", {"events": events})["results"]
        for id, event, reply in zip(ids, events, results, strict=True):
            self.replies[id] = (event, {**reply, "duplicate": False})
            self.unsure.pop(id, None)

    def send(self, client, id, request):
        self.unsure[id] = request
        reply = post(client, "/learners/a/feedback", request)
        self.replies[id] = (request, {**reply, "duplicate": False})
        self.unsure.pop(id, None)

    def retract(self, client, rng):
        ids = [id for id in list(self.replies) if id.startswith("f") and id not in self.maybe_retracted]
        if not ids:
            return False
        id = rng.choice(ids[-50:])
        self.maybe_retracted.add(id)
        post(client, "/learners/a/retract", {"feedback_id": id})
        self.retracted.add(id)
        return True

    def learner(self, client, rng):
        """Make one, teach it, and delete every second."""
        number = self.next()
        name = f"l{number}"
        self.learners[name] = None
        client.put(f"/learners/{name}", json=SPEC).raise_for_status()
        self.learners[name] = True
        post(client, f"/learners/{name}/feedback", {"features": features(rng), "label": "a"})
        if number % 2:
            self.learners[name] = None
            client.delete(f"/learners/{name}").raise_for_status()
            self.learners[name] = False

    def point(self, client, rng):
        with self.lock:  # one switch at a time, so that the last one is the last
            there = [name for name, state in list(self.learners.items()) if state]
            if not there:
                return False
            self.alias.append(rng.choice(there))
            client.put("/aliases/now", json={"learner": self.alias[-1]}).raise_for_status()
            del self.alias[:-1]
        return True


def features(rng):
    return {f"w{rng.randrange(50)}": rng.random() for _ in range(5)}


def post(client, path, request):
    return client.post(path, json=request).raise_for_status().json()


def check(service, load):
    """Nothing acknowledged is lost, nothing is applied twice, and the weights are the fold of the log to the bit."""
    with service.client() as client:
        entries, after = [], 0
        while after is not None:
            page = (
                client.get("/learners/a/events", params={"after": after, "limit": 1000})
                .raise_for_status()
                .json()
            )
            entries += page["events"]
            after = page["next"]
        assert [entry["version"] for entry in entries] == list(range(1, len(entries) + 1))
        events = [entry for entry in entries if entry["kind"] == "feedback"]
        versions = {entry.get("prediction_id") or entry["feedback_id"]: entry["version"] for entry in events}
        assert len(versions) == len(events)
        for id, (request, first) in load.replies.items():
            assert versions[id] == first["version"]
            again = post(client, "/learners/a/feedback", request)
            expected = {**first, "duplicate": True}
            assert again == expected or (id in load.maybe_retracted and again["version"] == first["version"])
        assert set(versions) <= load.replies.keys() | load.unsure.keys()
        retracted = {entry["feedback_id"] for entry in events if entry["retracted"]}
        assert load.retracted <= retracted <= load.maybe_retracted
        fold = learners.build(SPEC)
        for entry in events:
            if not entry["retracted"]:
                fold.learn(entry["instance"], entry["truth"], served=entry.get("served"))
            fold.version = entry["version"]
        fold.version = len(entries)
        assert client.get("/learners/a/snapshot").content == learners.dump(fold)
        for request, first in load.own.values():
            assert post(client, "/learners/a/predict", request) == first
        for id, label in load.open.items():
            reply = post(client, "/learners/a/feedback", {"prediction_id": id, "label": "a"})
            assert reply["served_loss"] == (None if label is None else float(label != "a"))
        for name, state in load.learners.items():
            status = client.get(f"/learners/{name}").status_code
            assert state is None or status == (200 if state else 404), (name, state, status)
        # The first one may have been sent and never acknowledged: then there may be none.
        aliases = client.get("/aliases").raise_for_status().json()["aliases"]
        assert (aliases[0]["learner"] if aliases else None) in load.alias


def rounds(url, count):
    """Kill and start again so often, then check; returns what was sent."""
    load = Load(seed=count)
    service = running = Service(url)
    try:
        with service.client() as client:
            client.put("/learners/a", json=SPEC).raise_for_status()
        for _ in range(count):
            stop = threading.Event()
            with ThreadPoolExecutor(CLIENTS) as pool:
                clients = [pool.submit(load.run, service, stop) for _ in range(CLIENTS)]
                try:
                    load.wait(load.random.randrange(20, 100))
                    time.sleep(load.random.uniform(0, 0.02))
                finally:
                    running = None
                    service.stop(signal.SIGKILL)
                    stop.set()
                for client in clients:
                    client.result()
            service = running = Service(url)
        assert len(load.replies) > 15 * count
        check(service, load)
    finally:
        if running is not None:
            running.stop(signal.SIGTERM)
    return load
