"""A small HTTP/1.1 load generator on bare sockets: `python http_load.py URL FILE SECONDS CONNECTIONS`.

FILE holds one JSON body a line; each connection sends them in turn, one request at a time. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import uvloop


class Connection(asyncio.Protocol):
    """Sends the next request as soon as the reply to the last one is complete."""

    def __init__(
        self, requests: list[bytes], first: int, until: float, times: list[float], done: asyncio.Future
    ) -> None:
        self.requests, self.turn, self.until, self.times, self.done = requests, first, until, times, done
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.begun = time.perf_counter()
        if self.begun >= self.until:
            self.transport.close()
            self.done.set_result(None)
            return
        self.transport.write(self.requests[self.turn % len(self.requests)])
        self.turn += 1

    def data_received(self, data: bytes) -> None:
        # Most replies come whole. What this costs is taken from the server, which shares the machine.
        reply = self.buffer + data if self.buffer else data
        end = reply.find(b"\r\n\r\n")
        at = reply.find(b"content-length: ", 0, end) + 16
        if end < 0 or len(reply) < end + 4 + int(reply[at : reply.index(b"\r", at)]):
            self.buffer = reply
            return
        if not reply.startswith(b"HTTP/1.1 200 "):
            self.done.set_exception(RuntimeError(reply.decode()))
            self.transport.close()
            return
        self.times.append(time.perf_counter() - self.begun)
        self.buffer = b""
        self.send()


async def run(url: str, bodies: list[bytes], seconds: float, connections: int) -> dict[str, float]:
    """Requests a second and the median and 99th percentile of their times."""
    place = urlsplit(url)
    head = f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\nContent-Length: "
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    loop, times = asyncio.get_running_loop(), []
    begun = time.perf_counter()
    ends = []
    for number in range(connections):
        done = loop.create_future()
        await loop.create_connection(
            lambda first=number * 7, done=done: Connection(requests, first, begun + seconds, times, done),
            place.hostname,
            place.port,
        )
        ends.append(done)
    await asyncio.gather(*ends)
    took = time.perf_counter() - begun
    return summary(times, took)


def summary(times: list[float], took: float) -> dict[str, float]:
    """How many calls there were, how many a second, and the middle and the slow ones of their times."""
    times = sorted(times)
    return {
        "count": len(times),
        "rate": len(times) / took,
        "p50": times[len(times) // 2],
        "p99": times[int(len(times) * 0.99)],
    }


if __name__ == "__main__":
    _, address, file, period, count = sys.argv
    lines = [line for line in Path(file).read_bytes().splitlines() if line]
    print(json.dumps(uvloop.run(run(address, lines, float(period), int(count)))))
