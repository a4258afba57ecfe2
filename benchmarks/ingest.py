"""A Kafka topic into a learner, its reader killed on the way: is every event learned once, and how fast beside a stream?

Kafka's protocol over TCP from librdkafka's mock cluster, `feedrank serve` on SQLite, `feedrank ingest` as its own process,
killed (SIGKILL) whenever another share of the topic was learned. A reader that takes over waits until the broker has given
up the dead one (6 seconds here); rates leave that waiting out. The stream is the same events sent by the Python client.

    python benchmarks/ingest.py [--events 100000] [--kills 5]
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from replicas import spent
from report import Report, arguments
from served import serving

from feedrank.clients import Client

SPEC = {"task": "multiclass", "algorithm": "dual-ascent"}
GROUP = ("--option", "session.timeout.ms=6000", "--option", "heartbeat.interval.ms=1000")
PAGE = 1_000
PATIENCE = 300.0  # seconds without progress


def main() -> None:
    parser = arguments(__doc__, "ingest")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.events, options.kills = 200, 0
    try:
        from confluent_kafka import Producer
    except ImportError:
        print("ingest: skipped, because confluent-kafka is missing: pip install 'feedrank[kafka]'")
        return
    report = Report("A Kafka topic, its reader killed on the way", options.out)
    producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": "1", "log_level": 0})
    broker = producer.list_topics(timeout=60).brokers[1]
    for i in range(options.events):
        while True:
            try:
                producer.produce("mail", body(i))
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        served = stack.enter_context(serving(f"sqlite:{Path(folder) / 'store.db'}"))
        client = stack.enter_context(Client(served.url))
        for name in ("direct", "topic"):
            client.create(name, SPEC)
        streamed = stream(client, served.pid, options.events)
        url = f"kafka://{broker.host}:{broker.port}/mail"
        read = ingest(client, served.url, url, served.pid, options.events, options.kills)
        ids = list(places(client, "topic"))
    report.table(
        ["", "events/s", "processor us an event, client and service"],
        [["stream", *streamed], [f"topic, {options.kills} kills", *read]],
    )
    once = len(ids) == len(set(ids)) == options.events
    report.text(
        f"{len(ids)} events in the log, {len(set(ids))} places of the topic among them, of {options.events} produced: "
        f"{'each once' if once else 'NOT each once'}.\n"
    )


def body(i: int) -> bytes:
    return json.dumps({"features": [f"w{i % 997}", f"v{i % 89}"], "label": f"l{i % 7}"}).encode()


def stream(client: Client, service: int, count: int) -> list[str]:
    """The rate of the same events sent by the client's stream."""
    lines = ({"feedback": {"feedback_id": f"direct:{i}", **json.loads(body(i))}} for i in range(count))
    begun, before = time.monotonic(), spent(service) + time.process_time()
    done = sum(1 for _ in client.stream("direct", lines))
    assert done == count
    used = spent(service) + time.process_time() - before
    return [f"{count / (time.monotonic() - begun):.0f}", f"{1e6 * used / count:.0f}"]


def ingest(client: Client, server: str, url: str, service: int, count: int, kills: int) -> list[str]:
    """The rate of `feedrank ingest`, while it ran and learned."""
    learned, seconds, used = 0, 0.0, -spent(service)
    for life in range(kills + 1):
        target = count * (life + 1) // (kills + 1)
        with reader(server, url) as process:
            start = wait(client, process, learned + 1)
            begun = time.monotonic()
            learned = wait(client, process, target)
            seconds += time.monotonic() - begun
            used += spent(process.pid)
            process.send_signal(signal.SIGKILL if life < kills else signal.SIGTERM)
            process.wait(60)
        count_of_life = learned - start
        print(f"life {life}: {count_of_life} events", file=sys.stderr, flush=True)
        learned = client.learner("topic").version  # what was on its way when it was killed
    used += spent(service)
    return [f"{count / seconds:.0f}", f"{1e6 * used / count:.0f}"]


@contextlib.contextmanager
def reader(server: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "feedrank.cli", "ingest", url, "--learner", "topic", "--server", server]
    process = subprocess.Popen([*command, *GROUP], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def wait(client: Client, process: subprocess.Popen[bytes], version: int) -> int:
    """Until the learner has this version; the one that it has."""
    deadline, last = time.monotonic() + PATIENCE, -1
    while (now := client.learner("topic").version) < version:
        if now != last:
            deadline, last = time.monotonic() + PATIENCE, now
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the reader stands at {now} of {version}")
        time.sleep(0.05)
    return now


def places(client: Client, name: str) -> Iterator[str | None]:
    """The feedback ids of the whole log."""
    after: int | None = 0
    while after is not None:
        page = client.events(name, after=after, limit=PAGE)
        yield from (event["feedback_id"] for event in page.events)
        after = page.next


if __name__ == "__main__":
    main()
