"""The service beside a bare FastAPI endpoint, as ratios, in one run: `python benchmarks/service.py [--quick]`.

predict     120 words, 101 folders, top 10; 64 connections; against the bare endpoint, alternating
stream      rounds of predict and feedback on one connection, against the same rounds as single calls
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx

HERE = Path(__file__).parent
WORDS, FOLDERS, LENGTH = 20_000, 101, 120
CONNECTIONS = 64


def message(chance: random.Random) -> dict[str, float]:
    """About 120 words, the frequent ones more often."""
    return {f"word-{int(WORDS * chance.random() ** 2)}": 1.0 for _ in range(LENGTH)}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server process, from when it answers until the end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{url}/openapi.json", trust_env=False)
                break
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(30)


def spent(process: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(url: str, process: int, file: Path, seconds: float) -> dict[str, float]:
    """One run of the generator, in a process of its own; `cpu` is what one request cost the server."""
    before = spent(process)
    command = [sys.executable, HERE / "http_load.py", url, file, str(seconds), str(CONNECTIONS)]
    told = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return {**told, "cpu": (spent(process) - before) / told["count"]}


def teach(client: httpx.Client, chance: random.Random) -> None:
    """A learner that has met the whole vocabulary and every folder."""
    client.put("/v1/learners/mail", json={"task": "multiclass", "algorithm": "predtron"}).raise_for_status()
    for _ in range(20):
        events = [
            {"features": message(chance), "label": f"folder-{chance.randrange(FOLDERS)}"} for _ in range(100)
        ]
        client.post("/v1/learners/mail/feedback", json={"events": events}).raise_for_status()


Place = tuple[str, int]


def predictions(
    service: Place, bare: Place, folder: Path, chance: random.Random, seconds: float, turns: int
) -> None:
    """Rates and times of predictions beside the bare endpoint's, alternating so that both meet the same machine."""
    for remember in (False, True):
        file = folder / f"{remember}.ndjson"
        bodies = [{"features": message(chance), "top": 10, "remember": remember} for _ in range(200)]
        file.write_text("\n".join(json.dumps(body) for body in bodies))
        pairs = []
        for _ in range(turns):
            theirs, ours = (
                load(f"{url}/v1/learners/mail/predict", process, file, seconds)
                for url, process in (bare, service)
            )
            pairs.append((theirs, ours))
        rate = median(ours["rate"] / theirs["rate"] for theirs, ours in pairs)
        cost = median(theirs["cpu"] / ours["cpu"] for theirs, ours in pairs)
        slow = median(ours["p99"] / theirs["p99"] for theirs, ours in pairs)
        print(
            f"predict, remember: {str(remember).lower()}: {ours['rate']:.0f}/s, bare {theirs['rate']:.0f}/s, "
            f"ratio of rates {rate:.2f}, by processor time {cost:.2f} "
            f"({ours['cpu'] * 1e6:.0f} us against {theirs['cpu'] * 1e6:.0f} us); p99 {ours['p99'] * 1e3:.1f} ms, "
            f"bare {theirs['p99'] * 1e3:.1f} ms, ratio {slow:.2f}"
        )


def single_calls(client: httpx.Client, chance: random.Random, seconds: float) -> float:
    """Rounds a second of one client that predicts and teaches by single calls."""
    begun, rounds = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        words = message(chance)
        client.post(
            "/v1/learners/mail/predict", json={"features": words, "top": 10, "remember": False}
        ).raise_for_status()
        client.post(
            "/v1/learners/mail/feedback",
            json={"features": words, "label": f"folder-{chance.randrange(FOLDERS)}"},
        ).raise_for_status()
        rounds += 1
    return rounds / (time.perf_counter() - begun)


def resident(process: int) -> float:
    """Megabytes of memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def streamed(url: str, rounds: int, chance: random.Random, process: int) -> tuple[float, list[float]]:
    """Rounds a second of one stream, and the server's memory on the way."""
    place = httpx.URL(url)
    reader, writer = await asyncio.open_connection(place.host, place.port, limit=2**24)
    writer.write(b"POST /v1/learners/mail/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    blocks = []
    for _ in range(50):
        lines = []
        for _ in range(20):
            words = message(chance)
            lines.append(json.dumps({"predict": {"features": words, "top": 10, "remember": False}}))
            lines.append(
                json.dumps({"feedback": {"features": words, "label": f"folder-{chance.randrange(FOLDERS)}"}})
            )
        block = ("\n".join(lines) + "\n").encode()
        blocks.append(f"{len(block):x}\r\n".encode() + block + b"\r\n")

    async def send() -> None:
        for turn in range(rounds // 20):
            writer.write(blocks[turn % len(blocks)])
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    begun = time.perf_counter()
    sending = asyncio.create_task(send())
    await reader.readuntil(b"\r\n\r\n")
    answered, memory = 0, [resident(process)]
    while True:
        size = int(await reader.readline(), 16)
        data = await reader.readexactly(size + 2)
        if not size:
            break
        if b'"status":' in data:
            raise RuntimeError(data.decode())
        answered += data.count(b"\n") - 1
        if answered >= len(memory) * rounds // 5:
            memory.append(resident(process))
    await sending
    writer.close()
    if answered != 2 * rounds:
        raise RuntimeError(f"{answered} replies to {2 * rounds} lines")
    return rounds / (time.perf_counter() - begun), memory


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short runs, to see that it works")
    quick = parser.parse_args().quick
    seconds, turns, rounds = (2.0, 3, 2_000) if quick else (3.0, 5, 100_000)
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, theirs = free_port(), free_port()
        service, bare = f"http://127.0.0.1:{ours}", f"http://127.0.0.1:{theirs}"
        serve = [
            "-m",
            "feedrank.cli",
            "serve",
            "--port",
            str(ours),
            "--store",
            f"sqlite:{folder / 'bench.db'}",
        ]
        with (
            running([sys.executable, *serve], service) as process,
            running([sys.executable, str(HERE / "http_bare.py"), str(theirs)], bare) as other,
            httpx.Client(base_url=service, timeout=60, trust_env=False) as client,
        ):
            teach(client, chance)
            predictions((service, process.pid), (bare, other.pid), folder, chance, seconds, turns)
            single = single_calls(client, chance, seconds)
            rate, memory = asyncio.run(streamed(service, rounds, chance, process.pid))
            grown = " ".join(f"{value:.0f}" for value in memory)
            print(
                f"stream of {rounds} rounds: {rate:.0f}/s, single calls {single:.0f}/s, ratio {rate / single:.1f}"
            )
            print(f"memory of the server on the way: {grown} MB")


if __name__ == "__main__":
    main()
