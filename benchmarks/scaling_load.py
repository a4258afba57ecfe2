"""The load of `scaling.py`: feedback for many learners, each learner's to one replica; prints one JSON object."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from pathlib import Path
from zlib import crc32

import httpx

CONNECTIONS = 8  # for each replica, so that each has as much to do as one alone
WORDS, LENGTH, LABELS = 2_000, 30, 20


def body(chance: random.Random) -> bytes:
    words = [f"word-{int(WORDS * chance.random() ** 2)}" for _ in range(LENGTH)]
    return json.dumps({"features": words, "label": f"label-{chance.randrange(LABELS)}"}).encode()


async def drive(plan: dict, connections: int, number: int, bodies: list[bytes], until: float) -> int:
    """One connection to each replica; one learner alone goes to all of them in turn."""
    urls, names = plan["urls"], plan["names"]
    done = 0
    async with httpx.AsyncClient(timeout=60) as client:
        while time.monotonic() < until:
            turn = number + done * connections
            name = names[turn % len(names)]
            place = turn if len(names) == 1 else crc32(name.encode())
            url = f"{urls[place % len(urls)]}/v1/learners/{name}/feedback"
            reply = await client.post(url, content=bodies[turn % len(bodies)])
            reply.raise_for_status()
            done += 1
    return done


async def play(plan: dict) -> None:
    chance = random.Random(1)
    bodies = [body(chance) for _ in range(997)]
    begun = time.monotonic()
    until = begun + plan["seconds"]
    connections = CONNECTIONS * len(plan["urls"])
    counts = await asyncio.gather(*(drive(plan, connections, i, bodies, until) for i in range(connections)))
    took = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rounds": sum(counts), "seconds": took, "processor": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    asyncio.run(play(json.loads(Path(sys.argv[1]).read_text())))
