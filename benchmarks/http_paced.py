"""Requests at a rate that is held, whatever the replies take: `python http_paced.py URL FILE SECONDS CONNECTIONS RATE`.

FILE holds `PATH BODY` a line. Request i is due at i / RATE and goes over the first connection that is free; its time runs
from when it was due, so that a server that stalls does not stall its measurement. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import uvloop
from http_load import summary


async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    """One request and its reply."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.lower().find(b"content-length: ") + 16
    body = await reader.readexactly(int(head[at : head.index(b"\r", at)]))
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(body.decode())


async def run(
    url: str, requests: list[bytes], seconds: float, connections: int, rate: float
) -> dict[str, float]:
    """The rate that was reached, and the median and the 99th percentile of the times, from when each was due."""
    place, times = urlsplit(url), list[float]()
    due: asyncio.Queue[tuple[int, float] | None] = asyncio.Queue()

    async def send() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=2**22)
        while (one := await due.get()) is not None:
            number, planned = one
            await call(reader, writer, requests[number % len(requests)])
            times.append(time.perf_counter() - planned)
        writer.close()

    senders = [asyncio.create_task(send()) for _ in range(connections)]
    begun = time.perf_counter()
    for number in range(round(seconds * rate)):
        planned = begun + number / rate
        await asyncio.sleep(max(0.0, planned - time.perf_counter()))
        due.put_nowait((number, planned))
    for _ in senders:
        due.put_nowait(None)
    await asyncio.gather(*senders)
    took = time.perf_counter() - begun
    return summary(times, took)


def written(url: str, line: bytes) -> bytes:
    path, body = line.split(b" ", 1)
    head = f"POST {path.decode()} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    _, address, file, period, count, pace = sys.argv
    lines = [line for line in Path(file).read_bytes().splitlines() if line]
    sent = [written(address, line) for line in lines]
    print(json.dumps(uvloop.run(run(address, sent, float(period), int(count), float(pace)))))
