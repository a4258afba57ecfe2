"""kill -9 of the service at random moments under eight clients: what was acknowledged is there, once, as it was told."""

import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from feedrank import learners

SPEC = {"task": "multiclass", "algorithm": "predtron"}
CLIENTS = 8


class Service:
    """`feedrank serve` in a process of its own."""

    def __init__(self, store):
        command = [sys.executable, "-c", "from feedrank.cli import main; main()", "serve", "--port", "0"]
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, "--store", store],
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env={"FEEDRANK_SNAPSHOT_EVERY": "25", "PATH": ""},
        )
        line = self.process.stdout.readline()
        if "http://" not in line:
            self.stop(signal.SIGKILL)
            raise AssertionError(f"it did not start: {line}")
        self.url = line.split("http://")[1].split()[0].rstrip(";")

    def client(self):
        return httpx.Client(base_url=f"http://{self.url}/v1/learners", timeout=60, trust_env=False)

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()
        self.said.seek(0)
        print(self.said.read())  # shown by pytest if the test fails
        self.said.close()


class Load:
    """What the clients sent and what they were told."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.number = 0
        self.told = {}  # id -> (request, first reply)
        self.unsure = {}  # id -> request: sent, and no reply came
        self.open = {}  # predictions given and not answered yet: id -> decision

    def next(self):
        with self.lock:
            self.number += 1
            return self.number

    def wait(self, count):
        """Until so many more events are acknowledged."""
        start, deadline = len(self.told), time.monotonic() + 60
        while len(self.told) < start + count:
            assert time.monotonic() < deadline, "the service does not answer"
            time.sleep(0.001)

    def run(self, service, until):
        """One client: rounds of every kind, until it is told to stop or the service is gone."""
        number = self.next()
        rng = random.Random(number * 1000 + self.random.random())
        with service.client() as client:
            while not until.is_set():
                try:
                    self.round(client, rng)
                except httpx.TransportError:
                    return

    def round(self, client, rng):
        i = self.next()
        features = {f"w{rng.randrange(50)}": rng.random() for _ in range(5)}
        kind = rng.random()
        if kind < 0.3:
            reply = client.post("/a/predict", json={"features": features}).raise_for_status().json()
            self.open[reply["prediction_id"]] = reply["label"]
        elif kind < 0.5 and self.open:
            with self.lock:
                id, _ = self.open.popitem()
            self.send(client, id, {"prediction_id": id, "label": rng.choice("abc")})
        elif kind < 0.6 and self.told:
            id = rng.choice(list(self.told))
            request, first = self.told[id]
            again = client.post("/a/feedback", json=request).raise_for_status().json()
            assert again == {**first, "duplicate": True}
        elif kind < 0.65 and self.unsure:
            with self.lock:
                id, request = self.unsure.popitem()
            self.send(client, id, request)
        else:
            self.send(
                client, f"f{i}", {"features": features, "label": rng.choice("abc"), "feedback_id": f"f{i}"}
            )

    def send(self, client, id, request):
        self.unsure[id] = request
        reply = client.post("/a/feedback", json=request).raise_for_status().json()
        self.told[id] = (request, {**reply, "duplicate": False})
        self.unsure.pop(id, None)


def check(service, load):
    """Nothing acknowledged is lost, nothing is applied twice, and the weights are the fold of the log to the bit."""
    with service.client() as client:
        entries, after = [], 0
        while after is not None:
            page = client.get("/a/events", params={"after": after, "limit": 1000}).raise_for_status().json()
            entries += page["events"]
            after = page["next"]
        assert [entry["version"] for entry in entries] == list(range(1, len(entries) + 1))
        ids = [entry.get("prediction_id") or entry["feedback_id"] for entry in entries]
        assert len(set(ids)) == len(ids)
        versions = dict(zip(ids, range(1, len(ids) + 1), strict=True))
        for id, (request, first) in load.told.items():
            assert versions[id] == first["version"]
            assert client.post("/a/feedback", json=request).json() == {**first, "duplicate": True}
        assert set(ids) <= load.told.keys() | load.unsure.keys()
        fold = learners.build(SPEC)
        for entry in entries:
            fold.learn(entry["instance"], entry["truth"], served=entry.get("served"))
        assert client.get("/a/snapshot").content == learners.dump(fold)
        for id, label in load.open.items():
            told = (
                client.post("/a/feedback", json={"prediction_id": id, "label": "a"}).raise_for_status().json()
            )
            assert told["served_loss"] == (None if label is None else float(label != "a"))


def rounds(url, count):
    load = Load(seed=count)
    service = Service(url)
    try:
        with service.client() as client:
            client.put("/a", json=SPEC).raise_for_status()
        for _ in range(count):
            until = threading.Event()
            with ThreadPoolExecutor(CLIENTS) as pool:
                clients = [pool.submit(load.run, service, until) for _ in range(CLIENTS)]
                load.wait(load.random.randrange(20, 100))
                time.sleep(load.random.uniform(0, 0.02))
                service.stop(signal.SIGKILL)
                until.set()
                for client in clients:
                    client.result()
            service = Service(url)
        assert len(load.told) > 15 * count
        check(service, load)
    finally:
        service.stop(signal.SIGTERM)


def test_two_kills(store_url):
    rounds(store_url, 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills(store_url):
    rounds(store_url, 20)
