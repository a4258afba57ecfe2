"""The part of `service.py` about durability: feedback beside predictions, and starts with many learners."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from pathlib import Path
from statistics import median

import httpx
import orjson
from report import Report, track
from served import HERE, SPEC, asked, load, serving, spent, taught, write

from feedrank.learners import build
from feedrank.service.store import open_store

sys.path.insert(0, str(HERE.parent / "tests" / "parts"))
from redis_server import RedisServer  # the tests' way to a real Redis

CONNECTIONS = 32


def feedback(name: str, store: str, folder: Path, seconds: float, turns: int) -> list[object]:
    """The rate of durable feedback as a share of the rate of predictions, alternating."""
    chance = random.Random(7)
    bodies = [(asked(chance), taught(chance)) for _ in range(400)]
    ask, teach = (write(folder / f"{kind}.ndjson", [pair[kind] for pair in bodies]) for kind in (0, 1))
    with serving(store) as served:
        place = f"{served.url}/v1/learners/mail"
        httpx.put(place, json=SPEC, trust_env=False).raise_for_status()
        load(f"{place}/feedback", teach, seconds, CONNECTIONS)  # meets all words and folders
        pairs = []
        for _ in track(range(turns), name):
            pair = []
            for call, file in (("feedback", teach), ("predict", ask)):
                before = spent(served.pid)
                done = load(f"{place}/{call}", file, seconds, CONNECTIONS)
                pair.append((done["rate"], 1e6 * (spent(served.pid) - before) / done["count"]))
            pairs.append(pair)
    row: list[object] = [name]
    for which, form in ((0, ".0f"), (1, ".1f")):
        row += [format(median(pair[side][which] for pair in pairs), form) for side in (0, 1)]
        row.append(f"{median(pair[0][which] / pair[1][which] for pair in pairs):.2f}")
    return row


async def fill(store: str, count: int) -> None:
    """Put so many learners into a store, each as `PUT /v1/learners/{name}` leaves it."""
    spec = build({"task": "multiclass"}).spec
    opened = await open_store(store)
    for start in range(0, count, 1000):
        made = [
            opened.put(
                "name",
                f"learner-{i}",
                orjson.dumps({"log": f"{i:024x}", "spec": spec, "created": 0.0, "state": "live"}),
                0,
            )
            for i in range(start, min(start + 1000, count))
        ]
        await asyncio.gather(*made)
    await opened.close()


def start(name: str, stores: dict[int, str], turns: int) -> list[object]:
    """Seconds until ready, and until a learner answers, by the number of learners."""
    ready: dict[int, list[float]] = {count: [] for count in stores}
    first: list[float] = []
    for count, store in stores.items():
        asyncio.run(fill(store, count))
    for _ in track(range(turns), name):
        for count, store in stores.items():
            with serving(store) as served:
                ready[count].append(served.seconds)
                reply = httpx.get(f"{served.url}/v1/learners/learner-{count - 1}", trust_env=False)
                first.append(reply.raise_for_status().elapsed.total_seconds())
    few, many = (median(each) for each in ready.values())
    return [name, f"{few:.2f}", f"{many:.2f}", f"{many / few:.2f}", f"{1e3 * median(first):.0f}"]


def measure(report: Report, folder: Path, only: str | None, quick: bool) -> None:
    seconds, turns, learners = (1.5, 3, 2_000) if quick else (4.0, 5, 100_000)
    with contextlib.ExitStack() as stack:
        servers = []
        for number in range(2):
            (folder / f"redis{number}").mkdir()
            servers.append(RedisServer(folder / f"redis{number}"))
            stack.callback(servers[-1].kill)
        if only != "start":
            stores = {
                "SQLite": f"sqlite:{folder / 'feedback.db'}",
                "Redis": f"redis://127.0.0.1:{servers[0].port}/5",
            }
            rows = [feedback(name, store, folder, seconds, turns) for name, store in stores.items()]
            head = ["store", "durable feedback/s", "predictions/s", "ratio"]
            head += ["us of processor, feedback", "prediction", "ratio"]
            report.table(head, rows)
        if only != "feedback":
            files = [f"sqlite:{folder / name}" for name in ("few.db", "many.db")]
            rows = [
                start("SQLite", dict(zip((10, learners), files, strict=True)), turns),
                start("Redis", {10: servers[0].url, learners: servers[1].url}, turns),
            ]
            head = ["store", "ready with 10 learners, s", f"with {learners}, s", "ratio", "first answer, ms"]
            report.table(head, rows)
