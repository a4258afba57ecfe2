"""The service beside a bare FastAPI endpoint, and what durability costs, as ratios, in one run.

    python benchmarks/service.py [--only predict|stream|feedback|start|pieces] [--quick] [--wrk]

predict     120 words, 101 folders, top 10; 64 connections; against the bare endpoint, alternating
stream      rounds of predict and feedback on one connection, against the same rounds as single calls
feedback    durable feedback beside predictions that write nothing, 32 connections, on SQLite and on Redis
start       seconds until the service is ready, with 10 and with 100,000 learners in the store
pieces      the work that no call can do without, each piece alone: what the rates above could be at best

`--wrk` has the predictions sent by wrk (`apt install wrk`) instead of the generator of this folder, `http_load.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import durability
import httpx
import pieces
from report import Report, arguments, track
from served import (
    HERE,
    SPEC,
    Served,
    asked,
    load,
    load_by_wrk,
    message,
    running,
    serving,
    spent,
    taught,
    write,
)
from served import folder as a_folder

CONNECTIONS = 64


def teach(client: httpx.Client, chance: random.Random) -> None:
    """A learner that has met the whole vocabulary and every folder."""
    client.put("/v1/learners/mail", json=SPEC).raise_for_status()
    for _ in range(20):
        events = [taught(chance) for _ in range(100)]
        client.post("/v1/learners/mail/feedback", json={"events": events}).raise_for_status()


def predictions(
    report: Report,
    places: tuple[Served, Served, Served],
    folder: Path,
    chance: random.Random,
    seconds: float,
    turns: int,
    send: Callable[[str, Path, float, int], dict[str, float]] = load,
) -> None:
    """Rates and times of predictions beside the bare endpoints', alternating so that all meet the same machine."""
    rows: list[list[object]] = []
    for remember in (False, True):
        file = write(folder / f"{remember}.ndjson", [asked(chance, remember) for _ in range(200)])
        measured: list[list[dict[str, float]]] = []
        for _ in track(range(turns), "predict"):
            each = []
            for place in places:
                before = spent(place.pid)
                figures = send(f"{place.url}/v1/learners/mail/predict", file, seconds, CONNECTIONS)
                each.append({**figures, "cpu": 1e6 * (spent(place.pid) - before) / figures["count"]})
            measured.append(each)
        for name, scale, unit in (
            ("rate", 1.0, "requests/s"),
            ("cpu", 1.0, "us of processor"),
            ("p99", 1e3, "ms, p99"),
        ):
            middle = [scale * median(each[side][name] for each in measured) for side in range(3)]
            ratios = [median(each[0][name] / each[side][name] for each in measured) for side in (1, 2)]
            rows.append(
                [
                    f"predict, remember: {str(remember).lower()}",
                    unit,
                    *middle,
                    *(f"{ratio:.2f}" for ratio in ratios),
                ]
            )
    report.table(["call", "unit", "service", "bare FastAPI", "bare ASGI", "over FastAPI", "over ASGI"], rows)


def binding(rounds: int, chance: random.Random) -> float | None:
    """Microseconds of processor a round of Vowpal Wabbit's Python binding that tells all scores; None where it is not."""
    try:
        from vowpalwabbit import Workspace
    except ModuleNotFoundError:
        return None
    vw = Workspace("--oaa 101 -b 22 --scores --quiet")
    lines = []
    for _ in range(1_000):
        asks, learns = a_round(chance)
        words = " ".join(asks["features"])
        lines.append((f"| {words}", f"{int(learns['label'].split('-')[1]) + 1} | {words}"))
    turns, begun = max(2, rounds // 1_000), time.process_time()
    for _ in range(turns):
        for asks, learns in lines:
            vw.predict(asks)
            vw.learn(learns)
    return 1e6 * (time.process_time() - begun) / (turns * len(lines))


def a_round(chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A prediction and the feedback on it."""
    words = message(chance)
    return {"features": words, "top": 10, "remember": False}, {"features": words, "label": a_folder(chance)}


def single_calls(client: httpx.Client, chance: random.Random, seconds: float) -> float:
    """Rounds a second of one client that predicts and teaches by single calls, with httpx as most would."""
    begun, rounds = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        asks, learns = a_round(chance)
        client.post("/v1/learners/mail/predict", json=asks).raise_for_status()
        client.post("/v1/learners/mail/feedback", json=learns).raise_for_status()
        rounds += 1
    return rounds / (time.perf_counter() - begun)


def bare_calls(url: str, chance: random.Random, seconds: float) -> float:
    """The same by a client that costs nothing: requests made beforehand, on a bare socket."""
    place = httpx.URL(url)
    requests = []
    for _ in range(200):
        for call, body in zip(("predict", "feedback"), a_round(chance), strict=True):
            data = json.dumps(body).encode()
            head = f"POST /v1/learners/mail/{call} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n"
            requests.append(head.encode() + data)
    begun, calls = time.perf_counter(), 0
    with socket.create_connection((place.host, place.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        replies = connection.makefile("rb")
        while time.perf_counter() - begun < seconds:
            connection.sendall(requests[calls % len(requests)])
            status, size = replies.readline(), 0
            while (line := replies.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            body = replies.read(size)
            if b" 200 " not in status:
                raise RuntimeError(body.decode())
            calls += 1
    return calls / 2 / (time.perf_counter() - begun)


def resident(process: int) -> float:
    """Megabytes of memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def streamed(
    url: str, rounds: int, chance: random.Random, process: int
) -> tuple[float, float, list[float]]:
    """Rounds a second of one stream, the server's microseconds of processor a round, and its memory on the way."""
    place = httpx.URL(url)
    reader, writer = await asyncio.open_connection(place.host, place.port, limit=2**24)
    writer.write(
        b"POST /v1/learners/mail/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    blocks = []
    for _ in range(50):
        lines = []
        for _ in range(20):
            asks, learns = a_round(chance)
            lines += [json.dumps({"predict": asks}), json.dumps({"feedback": learns})]
        block = ("\n".join(lines) + "\n").encode()
        blocks.append(f"{len(block):x}\r\n".encode() + block + b"\r\n")

    async def send() -> None:
        for turn in range(rounds // 20):
            writer.write(blocks[turn % len(blocks)])
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    begun, used = time.perf_counter(), spent(process)
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
    return rounds / (time.perf_counter() - begun), 1e6 * (spent(process) - used) / rounds, memory


def main() -> None:
    parser = arguments(__doc__, "service")
    parser.add_argument("--only", choices=("predict", "stream", "feedback", "start", "pieces"))
    parser.add_argument("--wrk", action="store_true", help="have wrk send the predictions")
    options = parser.parse_args()
    seconds, turns, rounds = (0.2, 1, 500) if options.quick else (3.0, 5, 100_000)
    report = Report("The service, as ratios", options.out)
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only in (None, "predict", "stream"):
            with (
                serving(f"sqlite:{folder / 'bench.db'}") as ours,
                running(str(HERE / "http_bare.py")) as bare,
                running(str(HERE / "http_bare.py"), "asgi") as barest,
                httpx.Client(base_url=ours.url, timeout=60, trust_env=False) as client,
            ):
                teach(client, chance)
                if options.only != "stream":
                    send = load_by_wrk if options.wrk else load
                    predictions(report, (ours, bare, barest), folder, chance, seconds, turns, send)
                if options.only != "predict":
                    single = single_calls(client, chance, seconds)
                    bare_single = bare_calls(ours.url, chance, seconds)
                    rate, cost, memory = asyncio.run(streamed(ours.url, rounds, chance, ours.pid))
                    grown = " ".join(f"{value:.0f}" for value in memory)
                    report.table(
                        [
                            "rounds of predict and feedback",
                            "stream, rounds/s",
                            "single calls, httpx",
                            "ratio",
                            "single calls, bare socket",
                            "ratio",
                            "server's MB",
                        ],
                        [
                            [
                                rounds,
                                f"{rate:.0f}",
                                f"{single:.0f}",
                                f"{rate / single:.1f}",
                                f"{bare_single:.0f}",
                                f"{rate / bare_single:.1f}",
                                grown,
                            ]
                        ],
                    )
                    if (theirs := binding(rounds // 20, chance)) is not None:
                        report.table(
                            [
                                "us of processor a round",
                                "stream, the server",
                                "VW's binding, --scores",
                                "rates",
                            ],
                            [[rounds, f"{cost:.1f}", f"{theirs:.1f}", f"{theirs / cost:.2f}"]],
                        )
        if options.only in (None, "feedback", "start"):
            durability.measure(report, folder, options.only, options.quick)
        if options.only in (None, "pieces"):
            pieces.measure(report, folder, chance)


if __name__ == "__main__":
    main()
