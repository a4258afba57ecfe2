"""The load of `scaling.py`: feedback for many learners, each learner's to one replica; prints one JSON object.

Requests are made beforehand and replies are only counted, so that the client costs little beside the replicas.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from zlib import crc32

import uvloop
from replicas import unused as idle

WORDS, LENGTH, LABELS = 2_000, 30, 20
BODIES = 997


def body(chance: random.Random) -> bytes:
    words = [f"word-{int(WORDS * chance.random() ** 2)}" for _ in range(LENGTH)]
    return json.dumps({"features": words, "label": f"label-{chance.randrange(LABELS)}"}).encode()


def shares(names: list[str], servers: int) -> list[list[str]]:
    """The learners of each server, by their names; one learner alone goes to all."""
    if len(names) == 1:
        return [names] * servers
    return [[name for name in names if crc32(name.encode()) % servers == place] for place in range(servers)]


class Connection(asyncio.Protocol):
    """One request after another to one address, until the time is over; learners in turn."""

    def __init__(self, load: Load, host: str, names: list[str], start: int) -> None:
        self._load, self._host, self._names, self._turn = load, host, names, start
        self._buffer = bytearray()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  (as uvloop gives it)
        self._transport = transport
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_exception(error or ConnectionError("the server has closed the connection"))

    def _send(self) -> None:
        name = self._names[self._turn % len(self._names)]
        content = self._load.bodies[self._turn % BODIES]
        self._turn += 1
        head = f"POST /v1/learners/{name}/feedback HTTP/1.1\r\nHost: {self._host}\r\n{self._load.key}"
        self._transport.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        status = head.split(b" ", 2)[1]
        if status not in (
            b"200",
            b"504",
        ):  # nginx waits a second for a replica, which a busy machine may take
            self.closed.set_exception(RuntimeError(self._buffer.decode()))
            self._transport.close()
            return
        del self._buffer[: end + 4 + length]
        self._load.done += status == b"200"
        if time.monotonic() < self._load.until:
            self._send()
        else:
            self.closed.set_result(None)
            self._transport.close()


def spent() -> float:
    """Processor seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Load:
    """What all connections share."""

    def __init__(self, plan: dict) -> None:
        chance = random.Random(1)
        self.plan, self.done = plan, 0
        self.bodies = [body(chance) for _ in range(BODIES)]
        self.key = f"Authorization: Bearer {plan['key']}\r\n" if plan["key"] else ""
        self.until = 0.0

    async def play(self) -> None:
        urls, names, loop = self.plan["urls"], self.plan["names"], asyncio.get_running_loop()
        begun, own, unused = time.monotonic(), spent(), idle()
        self.until = begun + self.plan["seconds"]
        connections = []
        for number in range(self.plan["connections"]):
            place = number % len(urls)
            parts = urlsplit(urls[place])
            start = random.Random(number).randrange(BODIES)
            made = await loop.create_connection(
                lambda parts=parts, own=names[place], start=start: Connection(self, parts.netloc, own, start),
                parts.hostname,
                parts.port,
            )
            connections.append(made[1].closed)
        await asyncio.gather(*connections)
        took = time.monotonic() - begun
        used = {"processor": spent() - own, "unused": idle() - unused}
        print(json.dumps({"rounds": self.done, "seconds": took, **used}))


if __name__ == "__main__":
    uvloop.run(Load(json.loads(Path(sys.argv[1]).read_text())).play())
