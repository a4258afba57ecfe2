"""What durability costs, in one run, as ratios: `python benchmarks/state.py [--quick]`.

feedback    120 words, 101 folders, 32 connections: durable feedback beside predictions that write nothing, on SQLite
            and on Redis, alternating so that both meet the same machine
start       seconds until the service is ready, with 10 and with 100,000 learners in the store
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
import orjson

from feedrank.learners import build
from feedrank.service.store import open_store

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "service"))
from redis_server import RedisServer  # noqa: E402  (the tests' way to a real Redis)

WORDS, FOLDERS, LENGTH = 20_000, 101, 120
CONNECTIONS = 32


@contextlib.contextmanager
def serving(store: str) -> Iterator[tuple[str, float]]:
    """`feedrank serve` on a store: its address, and the seconds from its start until it said that it is ready."""
    command = [sys.executable, "-m", "feedrank.cli", "serve", "--port", "0", "--store", store]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield "http://" + line.split("http://", 1)[1].split()[0], time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout:
            process.stdout.close()


def bodies(folder: Path) -> dict[str, Path]:
    """Files of requests: predictions that write nothing, and feedback."""
    chance = random.Random(7)
    files = {"predict": folder / "predict.ndjson", "feedback": folder / "feedback.ndjson"}
    told: dict[str, list[str]] = {name: [] for name in files}
    for _ in range(400):
        words = {f"word-{int(WORDS * chance.random() ** 2)}": 1.0 for _ in range(LENGTH)}
        told["predict"].append(json.dumps({"features": words, "top": 10, "remember": False}))
        told["feedback"].append(
            json.dumps({"features": words, "label": f"folder-{chance.randrange(FOLDERS)}"})
        )
    for name, file in files.items():
        file.write_text("\n".join(told[name]))
    return files


def load(url: str, file: Path, seconds: float) -> float:
    """Requests a second, by the generator in a process of its own."""
    command = [sys.executable, HERE / "http_load.py", url, file, str(seconds), str(CONNECTIONS)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return float(json.loads(done.stdout)["rate"])


def feedback(name: str, store: str, files: dict[str, Path], seconds: float, turns: int) -> None:
    """The rate of durable feedback as a share of the rate of predictions."""
    with serving(store) as (url, _):
        place = f"{url}/v1/learners/mail"
        spec = {"task": "multiclass", "algorithm": "predtron"}
        httpx.put(place, json=spec, trust_env=False).raise_for_status()
        load(f"{place}/feedback", files["feedback"], seconds)  # meets all words and folders
        pairs = [
            (
                load(f"{place}/predict", files["predict"], seconds),
                load(f"{place}/feedback", files["feedback"], seconds),
            )
            for _ in range(turns)
        ]
    ratio = median(taught / asked for asked, taught in pairs)
    asked, taught = pairs[-1]
    print(f"{name}: feedback {taught:.0f}/s, predictions {asked:.0f}/s, ratio {ratio:.2f}")


async def fill(store: str, count: int) -> None:
    """Put so many learners into a store, each as `PUT /v1/learners/{name}` leaves it."""
    spec = build({"task": "multiclass"}).spec
    held = await open_store(store)
    for start in range(0, count, 1000):
        made = [
            held.put(
                "name",
                f"learner-{i}",
                orjson.dumps({"log": f"{i:024x}", "spec": spec, "created": 0.0, "state": "live"}),
                0,
            )
            for i in range(start, min(start + 1000, count))
        ]
        await asyncio.gather(*made)
    await held.close()


def start(name: str, stores: dict[int, str], turns: int) -> None:
    """Seconds until ready, and until a learner answers, by the number of learners."""
    ready: dict[int, list[float]] = {count: [] for count in stores}
    first: dict[int, list[float]] = {count: [] for count in stores}
    for count, store in stores.items():
        asyncio.run(fill(store, count))
    for _ in range(turns):
        for count, store in stores.items():
            with serving(store) as (url, seconds):
                ready[count].append(seconds)
                begun = time.perf_counter()
                httpx.get(f"{url}/v1/learners/learner-{count - 1}", trust_env=False).raise_for_status()
                first[count].append(time.perf_counter() - begun)
    few, many = stores
    print(
        f"{name}: ready with {few} learners in {median(ready[few]):.2f} s, with {many} in {median(ready[many]):.2f} s, "
        f"ratio {median(ready[many]) / median(ready[few]):.2f}; first answer {median(first[many]) * 1e3:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short runs, to see that it works")
    quick = parser.parse_args().quick
    seconds, turns, learners = (1.5, 3, 2_000) if quick else (4.0, 5, 100_000)
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        folder = Path(temporary)
        servers = []
        for number in range(2):
            (folder / f"redis{number}").mkdir()
            servers.append(RedisServer(folder / f"redis{number}"))
            stack.callback(servers[-1].kill)
        files = bodies(folder)
        feedback("SQLite", f"sqlite:{folder / 'feedback.db'}", files, seconds, turns)
        feedback("Redis", f"redis://127.0.0.1:{servers[0].port}/5", files, seconds, turns)
        few, many = folder / "few.db", folder / "many.db"
        start("SQLite", {10: f"sqlite:{few}", learners: f"sqlite:{many}"}, turns)
        start("Redis", {10: servers[0].url, learners: servers[1].url}, turns)


if __name__ == "__main__":
    main()
