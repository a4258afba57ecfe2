"""How long expensive requests block the event loop, while all other requests wait.

    python benchmarks/loop_blocking.py

The blocking time is the processor time of the loop's thread between two of its iterations, so a busy machine hardly
matters. The service runs on SQLite with its default limits; refused requests must not block the loop either. The exit
status is 1 above 100 ms.
"""

from __future__ import annotations

import asyncio
import http.client
import sys
import tempfile
import time
from collections.abc import Iterator

import neighbours
import orjson
from report import Report, arguments

from feedrank.service.contract.settings import Settings
from feedrank.service.http import server
from feedrank.service.http.app import create_app

MOST = 0.1  # seconds
LISTS = {"task": "subset-ranking", "algorithm": "predtron"}
LEARNERS: dict[str, dict[str, object]] = {
    "words": {"task": "multiclass", "algorithm": "predtron"},
    "sets": {"task": "multilabel"},
    "many": {"task": "multiclass", "algorithm": "predtron", "labels": [f"l{i}" for i in range(10_000)]},
    "lists": LISTS,
    "preset": {"task": "subset-ranking"},
    "crossed": LISTS | {"context": True},
    **{f"arm{i}": LISTS | {"learning_rate": 1.0 + i} for i in range(10)},
}
ITEMS = [{"id": f"d{i}", "features": {"x": i % 7, "y": i % 11}} for i in range(10_000)]
COLUMNS = {
    "ids": [f"d{i}" for i in range(10_000)],
    "columns": [f"f{j}" for j in range(150)],
    "rows": [[1.5] * 150] * 10_000,
}
WIDE = {f"w{i}": 1.0 for i in range(3_000)}
GRADES = {f"d{i}": i % 5 for i in range(10_000)}
Case = tuple[str, str, str, object]


def cases() -> Iterator[Case]:
    """What it is, method, path and body."""
    words, lists, many = "/v1/learners/words", "/v1/learners/lists", "/v1/learners/many"
    numbers = b'{"features":[' + b"1," * 250_000
    marks = "a" + "\u0300\u0316" * 1_900_000
    sets, arms = "/v1/learners/sets", "/v1/experiments/e"
    labels = LEARNERS["words"] | {"labels": [f"l{i}" for i in range(800_000)]}
    yield "500 KB of numbers, the last one 1e999", "POST", f"{words}/predict", numbers + b"1e999]}"
    yield "500 KB of JSON without an end", "POST", f"{words}/predict", numbers
    yield "600,000 unknown fields", "POST", f"{words}/predict", {f"{i}": 1 for i in range(600_000)}
    yield "8 MB of combining marks on one letter", "POST", f"{words}/predict", {"text": marks}
    yield "8 MB of short words", "POST", f"{words}/predict", {"text": "some words of it " * 480_000}
    yield (
        "a batch of 1,000 texts",
        "POST",
        f"{words}/predict",
        {"instances": [{"text": "some words " * 600}] * 1_000},
    )
    yield (
        "1,000 instances of 10,000 labels",
        "POST",
        f"{many}/predict",
        {"instances": [{"features": [1]}] * 1_000},
    )
    yield "90 instances of 10,000 labels", "POST", f"{many}/predict", {"instances": [{"features": [1]}] * 90}
    for i in range(200):
        yield "", "POST", f"{sets}/feedback", {"features": WIDE, "labels": [f"l{i}"]}
    yield (
        "200 labels of 3,000 features, explained",
        "POST",
        "/v1/learners/sets/predict",
        {"features": WIDE, "explain": True},
    )
    yield (
        "a spec of 800,000 labels",
        "PUT",
        "/v1/learners/a",
        labels,
    )
    yield (
        "a spec with 2,000,000 positions in `examination`",
        "PUT",
        "/v1/learners/b",
        LISTS | {"examination": [0.5] * 2_000_000},
    )
    for shape in ("objects", "columns", "base64"):
        path, body = neighbours.lists(shape, "preset", 1)[0].split(" ", 1)
        yield f"100 items of 136 features, {shape}", "POST", path, body.encode()
    yield "10,000 items, explained", "POST", f"{lists}/predict", {"items": ITEMS, "explain": True}
    yield "10,000 items of 150 columns", "POST", f"{lists}/predict", {"items": COLUMNS}
    yield (
        "feedback on 10,000 items with five grades",
        "POST",
        f"{lists}/feedback",
        {"items": ITEMS, "relevance": GRADES},
    )
    crossed = {
        "items": {**COLUMNS, "ids": ["a"], "rows": [[1.5] * 150]},
        "features": {f"q{i}": 1 for i in range(20_000)},
    }
    yield "150 item features and 20,000 of the context", "POST", "/v1/learners/crossed/predict", crossed
    yield "", "PUT", arms, {"arms": [f"arm{i}" for i in range(10)], "method": "interleave"}
    yield (
        "10,000 items drafted from ten arms",
        "POST",
        f"{arms}/predict",
        {"items": ITEMS, "unit": "u"},
    )
    yield (
        "feedback on that list, for ten arms",
        "POST",
        f"{arms}/feedback",
        {"items": ITEMS, "unit": "u", "clicks": ["d5"]},
    )
    yield "a stream of 300,000 bad lines", "POST", f"{words}/stream", b"x\n" * 300_000
    yield "a stream of 4,000,000 empty lines", "POST", f"{words}/stream", b"\n" * 4_000_000
    yield (
        "a stream of 300 lists of 10,000 labels",
        "POST",
        f"{many}/stream",
        b'{"predict":{"features":["w"]}}\n' * 300,
    )
    yield "`GET /openapi.json`", "GET", "/openapi.json", b""


class BlockingTime:
    """The longest that the loop's thread has computed between two turns, since it was last asked."""

    def __init__(self) -> None:
        self._most = 0.0

    async def watch(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self._most, last = max(self._most, now - last), now

    def take(self) -> float:
        most, self._most = self._most, 0.0
        return most


def ask(port: int, method: str, path: str, body: object) -> tuple[int, int]:
    """The status and the length of the reply."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request(method, path, data)
        reply = connection.getresponse()
        return reply.status, len(reply.read())
    finally:
        connection.close()


def attack(port: int, blocking: BlockingTime, rows: list[list[object]]) -> None:
    for name, spec in LEARNERS.items():
        ask(port, "PUT", f"/v1/learners/{name}", spec)
    for name, method, path, body in cases():
        blocking.take()
        status, length = ask(port, method, path, body)
        if name:
            time.sleep(0.05)  # the turn that wrote the reply must have ended
            rows.append([name, status, length, blocking.take()])


async def serve(settings: Settings, rows: list[list[object]]) -> None:
    blocking = BlockingTime()
    listener = server.listen("127.0.0.1", 0)
    serving = asyncio.ensure_future(server.serve(create_app(settings), settings, listener))
    watching = asyncio.ensure_future(blocking.watch())
    await asyncio.to_thread(attack, listener.getsockname()[1], blocking, rows)
    watching.cancel()
    serving.cancel()
    await asyncio.wait([serving])


def main() -> None:
    options = arguments(__doc__, "loop_blocking").parse_args()
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(Settings(store=f"sqlite:{folder}/blocking.db", log_level="error"), rows))
    report = Report("How long requests block the event loop", options.out)
    report.table(
        ["request", "status", "bytes of the reply", "ms blocked"],
        [[*row, f"{seconds * 1000:.0f}"] for *row, seconds in rows],
    )
    sys.exit(any(seconds > MOST for *_, seconds in rows) and not options.quick)


if __name__ == "__main__":
    main()
