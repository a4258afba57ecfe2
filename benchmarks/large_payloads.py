"""How much memory a large snapshot takes in a real service, and how large batches delay another learner.

    python benchmarks/large_payloads.py        snapshots of over 200 MB, 30 batches of 10,000 events at once
    python benchmarks/large_payloads.py --megabytes 20 --batches 3

`feedrank serve` runs in a process of its own; memory is its peak minus the memory of the
same process before anything was sent. A snapshot goes in by PUT, is loaded by the next process, and goes out by GET.
"""

from __future__ import annotations

import io
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

import orjson
from report import Report, arguments, track

from feedrank import learners

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "parts"))
from kill_rounds import Service
from redis_server import RedisServer

EVENTS = 10_000
MEBI = 2**20
SPECS = {
    "predtron, 1,000 labels": ({"task": "multiclass", "algorithm": "predtron"}, 1000, 8.3),
    "preset, 300 labels": ({"task": "multiclass"}, 300, 16.5),
    "predtron, 2 labels": ({"task": "binary", "labels": ["0", "1"], "algorithm": "predtron"}, 2, 36.0),
}


def snapshot(name: str, megabytes: int) -> bytes:
    """Of a learner with so many labels and as many features as it takes."""
    spec, labels, cell = SPECS[name]
    wide = cell if labels == 2 else cell * labels
    features = int(megabytes * 1e6 / wide)
    learner = learners.build(spec)
    steps = max(labels, features // 50_000)
    for i in range(steps):
        names = range(i * features // steps, (i + 1) * features // steps)
        learner.learn({"features": {f"feature-number-{j}": 1.0 for j in names}}, {"label": str(i % labels)})
    return learners.dump(learner)


def memory(service: Service, what: str = "VmHWM") -> float:
    """Its memory in MiB: the highest, or `VmRSS`, that of now."""
    lines = Path(f"/proc/{service.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def carried(name: str, data: bytes, store: str) -> list[object]:
    """In, loaded, out: MiB over those of an idle process."""
    size = len(data) / MEBI
    service = Service(store, FEEDRANK_MEMORY="8g", FEEDRANK_MAX_LEARNER_BYTES="8g")
    try:
        idle = memory(service)
        with service.client() as client:
            reply = client.put("/learners/a/snapshot", content=data, timeout=600)
        assert reply.status_code == 201, reply.text
        taken = memory(service) - idle
    finally:
        service.stop(signal.SIGTERM)
    service = Service(store, FEEDRANK_MEMORY="8g", FEEDRANK_MAX_LEARNER_BYTES="8g")
    try:
        with service.client() as client:
            client.get("/learners/a", timeout=600).raise_for_status()
            loading, own = memory(service) - idle, memory(service, "VmRSS") - idle
            assert client.get("/learners/a/snapshot", timeout=600).content == data
        given = memory(service) - idle
    finally:
        service.stop(signal.SIGTERM)
    row = [f"{value:.0f} ({value / size:.2f})" for value in (taken, own, loading, given)]
    return [name, store.partition(":")[0], f"{size:.0f}", *row]


def crowd(count: int, store: str) -> list[object]:
    """So many batches at once: their replies, and what a neighbour's predictions took meanwhile."""
    service = Service(store, FEEDRANK_SNAPSHOT_EVERY="1000")
    try:
        with service.client() as client:
            for name in ("a", "neighbour"):
                client.put(f"/learners/{name}", json={"task": "multiclass"}).raise_for_status()

            def send(number: int) -> int:
                events = [
                    {"features": {f"w{i % 400}": 1.0, f"v{i % 17}": 1.0}, "label": f"l{i % 5}"}
                    for i in range(EVENTS)
                ]
                for i, event in enumerate(events):
                    event["feedback_id"] = f"{number}/{i}"
                body = orjson.dumps({"events": events})
                ready.wait()
                with service.client() as own:
                    return own.post("/learners/a/feedback", content=body, timeout=600).status_code

            ready = threading.Barrier(count + 1)
            with ThreadPoolExecutor(count) as pool:
                sent = [pool.submit(send, number) for number in range(count)]
                ready.wait()
                begun, waits = time.perf_counter(), []
                while not all(one.done() for one in sent):
                    start = time.perf_counter()
                    client.post("/learners/neighbour/predict", json={"features": ["w"]}).raise_for_status()
                    waits.append(time.perf_counter() - start)
                took = time.perf_counter() - begun
            statuses = Counter(one.result() for one in sent)
            version = client.get("/learners/a").json()["version"]
        refused = sum(number for status, number in statuses.items() if status != 200)
        waits.sort()
        assert version == EVENTS * (count - refused)
        middle, slowest = waits[len(waits) // 2], waits[-1]
        row = [f"{took:.1f}", len(waits), f"{1000 * middle:.0f}", f"{1000 * slowest:.0f}"]
        return [store.partition(":")[0], count, EVENTS, refused, *row]
    finally:
        service.stop(signal.SIGTERM)


def main() -> None:
    parser = arguments(__doc__, "large_payloads")
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--batches", type=int, default=30)
    options = parser.parse_args()
    if options.quick:
        options.megabytes, options.batches = 1, 2
    report = Report("Large snapshots and many batches", options.out)
    with tempfile.TemporaryDirectory() as name:
        redis = RedisServer(Path(name))
        stores = (f"sqlite:{name}/a.db", redis.url)
        try:
            if options.megabytes:
                rows = []
                for spec in track(SPECS, "snapshots"):
                    data = snapshot(spec, options.megabytes)
                    for store in (f"sqlite:{name}/{len(rows)}.db", redis.url):
                        with redirect_stdout(io.StringIO()):  # the log of the service
                            rows.append(carried(spec, data, store))
                        redis.ask(b"FLUSHALL")
                head = ["learner", "store", "snapshot, MiB", "PUT: peak", "the learner", "loading: peak"]
                report.table([*head, "GET: peak"], rows)
            if options.batches:
                with redirect_stdout(io.StringIO()):
                    rows = [crowd(options.batches, store) for store in stores]
                head = [
                    "store",
                    "batches",
                    "events each",
                    "refused",
                    "seconds",
                    "predictions of the other learner",
                ]
                report.table([*head, "their median, ms", "their slowest, ms"], rows)
        finally:
            redis.kill()


if __name__ == "__main__":
    main()
