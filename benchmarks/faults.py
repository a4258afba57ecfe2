"""What is lost when things are killed: the service, and the primary of a Redis with a replica and a Sentinel.

    python benchmarks/faults.py                 100 kills of the service, 20 failovers with and 20 without confirmation
    python benchmarks/faults.py --kills 10 --failovers 3

`kills`: kill -9 of `feedrank serve` at random moments under eight clients that predict (also under ids of their own),
answer predictions, send feedback and batches, repeat and send again, retract, make and delete learners and switch an alias;
half of the kills on SQLite, half on Redis. `failovers`: kill -9 of the Redis primary under eight writers on two hosts that
follow each other; for the last 0.2 seconds before it, the replica that takes over receives nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import sys
import tempfile
from pathlib import Path

from report import Report, arguments

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "parts"))
import kill_rounds  # the tests' way to kill and to check
from redis_sentinel import Replicated
from redis_server import RedisServer

SPEC = {"task": "multiclass", "algorithm": "predtron"}
WRITERS = 8
LAG = 0.2  # seconds before each failover in which the replica receives nothing


def kills(count: int, folder: Path) -> list[list[object]]:
    """Any loss, doubling or difference of a bit raises."""
    server = RedisServer(folder)
    rows = []
    try:
        for name, url in (("SQLite", f"sqlite:{folder / 'a.db'}"), ("Redis", server.url)):
            with contextlib.redirect_stdout(io.StringIO()):
                load = kill_rounds.rounds(url, count // 2)
            events, calls = len(load.replies), sum(load.calls.values())
            rows.append([name, count // 2, calls, events, len(load.retracted), len(load.learners), 0, 0])
            print(name, dict(load.calls), flush=True)
    finally:
        server.kill()
    return rows


class Writers:
    """Send events to two hosts in turn until stopped; what is refused is sent again under its id."""

    def __init__(self, hosts: list[Host]) -> None:
        self.hosts, self.number, self.refused = hosts, 0, 0
        self.acknowledged: dict[str, int] = {}
        self.running = True

    async def write(self) -> None:
        while self.running:
            self.number += 1
            id = f"e{self.number}"
            request = {
                "features": {f"w{self.number % 97}": 1.0},
                "label": "abc"[self.number % 3],
                "feedback_id": id,
            }
            while self.running:
                try:
                    reply = await self.hosts[self.number % 2].feedback("a", request)
                except ServiceError:
                    self.refused += 1
                    await asyncio.sleep(0.02)
                    continue
                self.acknowledged[id] = reply["version"]
                break

    async def reach(self, count: int) -> None:
        target = len(self.acknowledged) + count
        while len(self.acknowledged) < target:
            await asyncio.sleep(0.01)


async def log_of(host: Host) -> list[str]:
    ids: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await host.events("a", after, 1000)
        ids += [event["feedback_id"] for event in page["events"]]
        after = page["next"]
    return ids


async def failovers(count: int, replicas: int, folder: Path) -> list[object]:
    """Acknowledged, lost, twice; whether the two hosts have the same bits at the end."""
    redis = Replicated(folder)
    settings = Settings(redis_replicas=replicas, snapshot_every=50)
    try:
        async with (
            Host.open(redis.url, settings) as one,
            Host.open(redis.url, settings) as two,
        ):
            await one.create("a", SPEC)
            writers = Writers([one, two])
            tasks = [asyncio.create_task(writers.write()) for _ in range(WRITERS)]
            for _ in range(count):
                await writers.reach(40)
                await asyncio.to_thread(redis.kill_primary, LAG)
                await asyncio.to_thread(redis.revive)
            await writers.reach(40)
            writers.running = False
            await asyncio.gather(*tasks)
            log = await log_of(one)
            version = len(log)
            for host in (one, two):
                await host.predict("a", {"features": ["w1"], "remember": False, "min_version": version})
            equal = await one.export("a") == await two.export("a")
            lost = [id for id in writers.acknowledged if id not in set(log)]
            twice = len(log) - len(set(log))
            diverged = sum(host.stats()["divergences"] for host in (one, two))
            return [
                replicas,
                count,
                len(writers.acknowledged),
                writers.refused,
                len(lost),
                twice,
                diverged,
                "yes" if equal else "NO",
            ]
    finally:
        redis.close()


def main() -> None:
    parser = arguments(__doc__, "faults")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--failovers", type=int, default=20)
    options = parser.parse_args()
    if options.quick:
        options.kills, options.failovers = 2, 1
    report = Report("What is lost", options.out)
    logging.disable(logging.ERROR)  # thousands of refusals, as they should be
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.kills:
            (folder / "kills").mkdir()
            head = [
                "store",
                "kills",
                "calls answered",
                "events",
                "retractions",
                "learners created",
                "lost",
                "twice",
            ]
            report.table(head, kills(options.kills, folder / "kills"))
        if options.failovers:
            rows = []
            for replicas in (1, 0):
                (folder / f"failover{replicas}").mkdir()
                rows.append(
                    asyncio.run(failovers(options.failovers, replicas, folder / f"failover{replicas}"))
                )
            head = [
                "`FEEDRANK_REDIS_REPLICAS`",
                "failovers",
                "acknowledged",
                "refused",
                "lost",
                "counted twice",
            ]
            report.table([*head, "divergences noticed", "replicas equal"], rows)


if __name__ == "__main__":
    main()
