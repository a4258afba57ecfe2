"""What many learners cost: memory of a process that has them loaded, the catalogue in the store, two replicas' halves.

Each learner has learned from four messages of ten words. The figures for a million are the measured slope times a million.

    python benchmarks/many_learners.py [--learners 100000]
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
from pathlib import Path
from zlib import crc32

import redis
import replicas as parts
from replicas import resident
from report import Report, arguments

from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host

LABELS = ["no", "yes"]
SPEC = {"task": "multiclass", "algorithm": "dual-ascent", "labels": LABELS}
EVENTS, WORDS = 4, 10
CONNECTIONS = 16
MONTH = 30.0  # dollars for a core and 4 GiB of memory, rented; an assumption, not a measurement
GIB = 2**30


def main() -> None:
    parser = arguments(__doc__, "many_learners")
    parser.add_argument("--learners", type=int, default=100_000)
    options = parser.parse_args()
    lacking = parts.missing()
    if lacking:
        print(f"many_learners: skipped, because {lacking}")
        return
    report = Report("Many learners", options.out)
    sizes = [20, 40] if options.quick else sorted({1_000, options.learners})
    rows, slopes = [], []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(parts.redis_server(parts.Host("127.0.0.1"), folder))
        store, base = f"redis://{server.address}/0", resident(server.process.pid)
        made = 0
        for size in sizes:
            asyncio.run(teach(store, range(made, size)))
            made = size
            whole, empty = loaded(store, size, 1, 0)
            halves = [loaded(store, size, 2, half) for half in (0, 1)]
            kept = resident(server.process.pid) - base
            with redis.Redis(port=server.port) as client:
                names = sum(
                    client.memory_usage(key, samples=0) or 0
                    for key in client.scan_iter("feedrank4:{documents:*")
                )
            share = max(one - start for one, start in halves) / ((whole - empty) / 2)
            slopes = [(whole - empty) / size, kept / size, names / size]
            rows.append(
                [
                    f"{size:,}",
                    *(f"{value / 2**20:,.0f}" for value in (empty, whole, kept, names)),
                    f"{share:.2f}",
                ]
            )
    report.table(
        [
            "learners",
            "empty process, MiB",
            "all loaded, MiB",
            "Redis, MiB",
            "of that the catalogue, MiB",
            "memory of a replica with half of the learners, as a multiple of half of the memory with all",
        ],
        rows,
    )
    process, kept, names = (1e6 * slope / GIB for slope in slopes)
    report.text(
        f"A million by these slopes: {process:.1f} GiB of memory if all were loaded, {kept:.1f} GiB in Redis, of which the "
        f"catalogue of names {names:.2f} GiB. At {MONTH:g} dollars a month for a core and 4 GiB (an assumption): "
        f"{(process + kept) / 4 * MONTH:,.0f} dollars with all in memory, "
        f"{(0.1 * process + kept) / 4 * MONTH:,.0f} with a tenth.\n"
    )


async def teach(store: str, numbers: range) -> None:
    """Make learners and teach each a little."""
    gate = asyncio.Semaphore(64)

    async def one(host: Host, number: int) -> None:
        async with gate:
            chance = random.Random(number)
            name = f"learner-{number}"
            await host.create(name, SPEC)
            events = [
                {
                    "features": [f"w{chance.randrange(2_000)}" for _ in range(WORDS)],
                    "label": chance.choice(LABELS),
                }
                for _ in range(EVENTS)
            ]
            await host.feedback(name, {"events": events})

    async with Host.open(store, Settings(memory=2**26)) as host:
        for start in range(0, len(numbers), 5_000):
            await asyncio.gather(*(one(host, number) for number in numbers[start : start + 5_000]))


def loaded(store: str, size: int, replicas: int, part: int) -> tuple[int, int]:
    """Bytes of a replica that has loaded its part of the learners, and of the same one before."""
    with parts.replica(parts.Host("127.0.0.1"), store, None, FEEDRANK_MEMORY=str(64 * GIB)) as one:
        before = resident(one.process.pid)
        names = [f"learner-{number}" for number in range(size)]
        asyncio.run(ask(one.port, [name for name in names if crc32(name.encode()) % replicas == part]))
        return resident(one.process.pid), before


async def ask(port: int, names: list[str]) -> None:
    """Ask for every learner once, over a few connections, so that it is loaded; a client library would take longer."""

    async def some(part: list[str]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for name in part:
            writer.write(
                f"GET /v1/learners/{name}/history?points=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]))
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise RuntimeError(head.decode())
        writer.close()

    await asyncio.gather(*(some(names[i::CONNECTIONS]) for i in range(CONNECTIONS)))


if __name__ == "__main__":
    main()
