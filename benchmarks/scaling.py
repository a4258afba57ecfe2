"""Many processes on one Redis: what a round costs 1, 2 and 4 replicas with 1 and 100 learners, and a model beyond them.

Durable feedback from sixteen connections for each replica. `nginx` rows go through docker/nginx.conf, which sends
each learner to one replica; direct rows send one learner to all replicas in turn, the worst case, and many by their names.
Processor time is the kernel's. Every row is measured several times, in turn with the others.

The model is calibrated on one replica alone: what a round costs it with 1 and with 100 learners, what Redis and nginx
cost, and what following costs a replica that only reads along. It predicts the rows with more replicas.

    python benchmarks/scaling.py [--seconds 4] [--repeat 3] [--hosts]

`--hosts` puts Redis, nginx, the client and every replica into network namespaces of their own, as separate hosts.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
import replicas as parts
from replicas import Running
from report import Report, arguments
from scaling_load import shares

HERE = Path(__file__).resolve().parent
WARM = 1.5  # seconds
CONNECTIONS = 16  # for each replica, so that each has as much to do as one alone
SAMPLE = 1_000_000  # learners that are placed; more would be spread alike
POINTS = 160  # of each server on nginx' ring of hashes
SPEC = {"task": "multiclass", "algorithm": "dual-ascent"}


@dataclass(frozen=True)
class Cell:
    """A row: how many replicas and learners, behind nginx or not; `idle` replicas follow and are asked nothing."""

    replicas: int
    learners: int
    proxied: bool = False
    idle: int = 0


@dataclass(frozen=True)
class Figures:
    """Rounds a second, and processor seconds a round of all replicas that are asked, of idle ones, and of the others."""

    rate: float
    replica: float
    idle: float
    redis: float
    proxy: float
    client: float

    @classmethod
    def median(cls, runs: list[Figures]) -> Figures:
        return cls(*(statistics.median(values) for values in zip(*map(vars_of, runs), strict=True)))


def vars_of(figures: Figures) -> list[float]:
    return list(vars(figures).values())


ALONE, MANY, PROXIED, BESIDE = Cell(1, 1), Cell(1, 100), Cell(1, 100, True), Cell(1, 1, idle=1)
CELLS = (ALONE, BESIDE, Cell(2, 1), Cell(4, 1), MANY, Cell(2, 100), Cell(4, 100))
CELLS += (PROXIED, Cell(2, 100, True), Cell(4, 100, True))


def main() -> None:
    parser = arguments(__doc__, "scaling")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load for each row")
    parser.add_argument("--repeat", type=int, default=3, help="how often each row is measured")
    parser.add_argument("--hosts", action="store_true", help="each process in a network namespace of its own")
    options = parser.parse_args()
    lacking = parts.missing(proxy=True, separate=options.hosts)
    if lacking:
        print(f"scaling: skipped, because {lacking}")
        return
    report = Report("Many processes on one Redis", options.out)
    runs: dict[Cell, list[Figures]] = {cell: [] for cell in CELLS}
    for _ in range(options.repeat):
        for cell in CELLS:
            runs[cell].append(measure(cell, options.seconds, options.hosts))
    measured = {cell: Figures.median(figures) for cell, figures in runs.items()}
    head = ["replicas", "learners", "through", "rounds/s", "replica us", "Redis us", "nginx us", "client us"]
    head += ["rounds a replica's second", "times one replica", "model us", "model / measured"]
    report.table(head, [row(cell, measured) for cell in CELLS if not cell.idle])
    follow = measured[BESIDE].idle
    report.text(f"Following what another replica learns costs {1e6 * follow:.0f} us an event.\n")
    report.text(
        "What the model says of more machines, by nginx' own ring of hashes (10,000 learners a machine):\n"
    )
    cost, redis = measured[PROXIED].replica, measured[PROXIED].redis
    report.table(
        ["machines of 2 cores", "Redis shards", "busiest replica over mean", "rounds/s", "limited by"],
        [beyond(machines, shards, cost, redis) for machines, shards in BEYOND],
    )


def row(cell: Cell, measured: dict[Cell, Figures]) -> list[object]:
    figures = measured[cell]
    first = measured[Cell(1, cell.learners, cell.proxied)]
    expected = model(cell, measured)
    us = [f"{1e6 * one:.0f}" for one in (figures.replica, figures.redis, figures.proxy, figures.client)]
    return [
        cell.replicas,
        cell.learners,
        "nginx" if cell.proxied else "-",
        f"{figures.rate:.0f}",
        *us,
        f"{1 / figures.replica:.0f}",
        f"{cell.replicas * first.replica / figures.replica:.2f}",
        "-" if cell.replicas == 1 else f"{1e6 * expected:.0f}",
        "-" if cell.replicas == 1 else f"{expected / figures.replica:.2f}",
    ]


def model(cell: Cell, measured: dict[Cell, Figures]) -> float:
    """Processor seconds of all replicas a round: those of one alone, and one following for each other with the learner."""
    if cell.learners > 1:
        return measured[Cell(1, cell.learners, cell.proxied)].replica
    return measured[ALONE].replica + (cell.replicas - 1) * measured[BESIDE].idle


BEYOND = ((1, 1), (10, 1), (10, 4), (100, 16), (1000, 16), (1000, 160))


def beyond(machines: int, shards: int, cost: float, redis: float) -> list[object]:
    """Machines with two replicas each; clients, proxies and Redis elsewhere. The busiest replica is full first."""
    servers = 2 * machines
    uneven = busiest(servers, 10_000 * machines)
    by_replicas, by_redis = servers / uneven / cost, shards / redis
    limit = "replicas" if by_replicas < by_redis else "Redis"
    return [machines, shards, f"{uneven:.2f}", f"{min(by_replicas, by_redis):,.0f}", limit]


def busiest(servers: int, learners: int) -> float:
    """Learners of the busiest server over the mean, as nginx' `hash ... consistent` places them (ketama)."""
    ring = []
    for server in range(servers):
        base, point = crc32(f"10.0.{server // 250}.{server % 250}\0008000".encode()), 0
        for _ in range(POINTS):
            point = crc32(point.to_bytes(4, "little"), base)
            ring.append((point, server))
    points, owners = np.array(sorted(ring)).T
    names = np.array([crc32(f"learner-{i}".encode()) for i in range(min(learners, SAMPLE))])
    counts = np.bincount(owners[np.searchsorted(points, names) % len(points)], minlength=servers)
    return float(counts.max()) * servers / len(names)


def measure(cell: Cell, seconds: float, separate: bool) -> Figures:
    """One row, once."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = stack.enter_context(parts.hosts(separate))
        redis = stack.enter_context(parts.redis_server(place(), folder))
        keys = folder / "keys" if separate else None
        key = parts.new_key(keys) if keys else None
        store = f"redis://{redis.address}/0"
        served = [
            stack.enter_context(parts.replica(place(), store, keys)) for _ in range(cell.replicas + cell.idle)
        ]
        asked, idle = served[: cell.replicas], served[cell.replicas :]
        proxy = stack.enter_context(parts.proxy(place(), folder, asked)) if cell.proxied else None
        names = [f"learner-{i}" for i in range(cell.learners)]
        urls = [proxy.url] if proxy else [one.url for one in asked]
        for url, own in zip(urls, shares(names, len(urls)), strict=True):  # each where it is served
            with parts.client(url, key) as client:
                for name in own:
                    client.put(f"/v1/learners/{name}", json=SPEC).raise_for_status()
        for one in idle:  # loads it, and follows from now on
            with parts.client(one.url, key) as client:
                client.get(f"/v1/learners/{names[0]}").raise_for_status()
        plan = {
            "urls": urls,
            "names": shares(names, len(urls)),
            "connections": CONNECTIONS * cell.replicas,
            "key": key,
        }
        file = folder / "plan.json"
        command = [*place().prefix, sys.executable, str(HERE / "scaling_load.py"), str(file)]
        file.write_text(json.dumps(plan | {"seconds": WARM}))  # learners are loaded where they live
        subprocess.run(command, capture_output=True, check=True)
        file.write_text(json.dumps(plan | {"seconds": seconds}))
        watched: list[list[Running]] = [asked, idle, [redis], [proxy] if proxy else []]
        before = [sum(one.spent() for one in group) for group in watched]
        done = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        used = [
            sum(one.spent() for one in group) - start for group, start in zip(watched, before, strict=True)
        ]
        return Figures(
            done["rounds"] / done["seconds"],
            *(value / done["rounds"] for value in used),
            client=done["processor"] / done["rounds"],
        )


if __name__ == "__main__":
    main()
