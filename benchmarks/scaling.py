"""Many processes on one Redis: rounds a second of 1, 2 and 4 replicas for 1 and 100 learners, and a model beyond them.

Each learner's calls go to one replica, as the proxy in docker/nginx.conf sends them; with one learner, both replicas get
it, which is the worst case. Processor time is taken from the kernel, per round, for replicas, Redis and the client. The
model has three numbers from the first row: what a round costs a replica, Redis and the client. It predicts the other rows,
and then what more machines would do.

    python benchmarks/scaling.py [--seconds 5]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from report import Report, arguments
from served import HERE, serving

CELLS = ((1, 1), (2, 1), (1, 100), (2, 100), (4, 100))
CONNECTIONS = 8
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cell:
    """One row: how many replicas and learners, rounds a second, and processor seconds a round."""

    replicas: int
    learners: int
    rate: float
    replica: float
    redis: float
    client: float


def main() -> None:
    parser = arguments(__doc__, "scaling")
    parser.add_argument("--seconds", type=float, default=5.0, help="of load for each row")
    asked = parser.parse_args()
    program = shutil.which("redis-server")
    if program is None:
        print("scaling: skipped, because there is no redis-server")
        return
    report = Report("Many processes on one Redis", asked.out)
    cells = [measure(program, replicas, learners, asked.seconds) for replicas, learners in CELLS]
    first = cells[0]
    cores = os.cpu_count() or 1
    head = [
        "replicas",
        "learners",
        "rounds/s",
        "replica us",
        "Redis us",
        "client us",
        "model rounds/s",
        "model / measured",
    ]
    rows = []
    for cell in cells:
        expected = model(first, cell.replicas, cores, shared=cell.learners == 1)
        costs = [f"{1e6 * cost:.0f}" for cost in (cell.replica, cell.redis, cell.client)]
        rows.append(
            [
                cell.replicas,
                cell.learners,
                f"{cell.rate:.0f}",
                *costs,
                f"{expected:.0f}",
                f"{expected / cell.rate:.2f}",
            ]
        )
    report.table(head, rows)
    by = {(cell.replicas, cell.learners): cell for cell in cells}
    gain = cost_of(by[1, 100]) / cost_of(by[2, 100])
    both = cost_of(by[1, 1]) / cost_of(by[2, 1])
    report.text(
        f"Processor time a round of two replicas over one, 100 learners: {1 / gain:.2f}, so that two cores of their own do "
        f"{2 * gain:.2f} times the rounds of one; on one learner {1 / both:.2f}.\n"
    )
    report.table(
        ["machines of 2 cores", "Redis shards", "rounds/s by the model"],
        [
            [m, s, f"{beyond(first, m, s):,.0f}"]
            for m, s in ((1, 1), (10, 1), (10, 4), (100, 16), (1000, 128))
        ],
    )


def cost_of(cell: Cell) -> float:
    """Processor seconds of replicas a round."""
    return cell.replica


def model(first: Cell, replicas: int, cores: int, shared: bool) -> float:
    """Rounds a second where everything shares the cores: no replica, nor Redis, can use more than one of them."""
    # A learner that two replicas hold is folded by both; folding is about half of what a round costs a replica.
    replica = first.replica * (1 + 0.5 * (replicas - 1) * shared)
    together = cores / (replica + first.redis + first.client)
    return min(together, replicas / replica, 1 / first.redis, 1 / first.client)


def beyond(first: Cell, machines: int, shards: int) -> float:
    """Rounds a second of machines with two replicas each, clients and Redis elsewhere."""
    return min(2 * machines / first.replica, shards / first.redis)


def measure(program: str, replicas: int, learners: int, seconds: float) -> Cell:
    """One row."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, redis = stack.enter_context(redis_server(program, folder))
        served = [stack.enter_context(serving(f"redis://127.0.0.1:{port}/0")) for _ in range(replicas)]
        names = [f"learner-{i}" for i in range(learners)]
        with httpx.Client(base_url=served[0].url, timeout=60) as client:
            for name in names:
                client.put(
                    f"/v1/learners/{name}", json={"task": "multiclass", "algorithm": "dual-ascent"}
                ).raise_for_status()
        plan = folder / "plan.json"
        plan.write_text(json.dumps({"urls": [one.url for one in served], "names": names, "seconds": seconds}))
        before = [spent(one.pid) for one in served], spent(redis)
        command = [sys.executable, str(HERE / "scaling_load.py"), str(plan)]
        done = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        used = sum(spent(one.pid) for one in served) - sum(before[0])
        return Cell(
            replicas,
            learners,
            done["rounds"] / done["seconds"],
            used / done["rounds"],
            (spent(redis) - before[1]) / done["rounds"],
            done["processor"] / done["rounds"],
        )


def spent(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


@contextmanager
def redis_server(program: str, folder: Path) -> Iterator[tuple[int, int]]:
    """A Redis that syncs every write; its port and process id."""
    port = random.randrange(20_000, 50_000)
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    options += ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    try:
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
