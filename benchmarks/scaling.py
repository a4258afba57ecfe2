"""Many processes on one Redis: what a round costs 1, 2 and 4 replicas with 1 and 100 learners, and a model beyond them.

Durable feedback from sixteen connections for each replica. `nginx` rows go through docker/nginx.conf, which sends
each learner to one replica; direct rows send one learner to all replicas in turn, the worst case, and many by their names.
Processor time is the kernel's. All rows are up at once, and each is loaded for a second in turn; of each row the third of
its slices counts in which other work left most of the machine: it takes the caches from all that is measured.

The model has two equations. With n replicas, a replica's processor time of a round is

    D(n) = (1 + a (n - 1) / n) (D(1) + (n - 1) F if all replicas have the same learner)

where F is what following costs, (n - 1) / n how often another replica ran before on the same cores, and a what it costs
to get the caches back from it. Rounds a second are

    X(n) = e min(n / D(n), cores / (D(n) + Redis + nginx + client))

where `cores` is what other work left of the machine during the row, and e the part of that bound which one replica reaches
(it waits for the disk). D(1), F, e and the costs of Redis, nginx and the client are those of the rows with one replica, a
that of both rows with two replicas on 100 learners; the other rows are predicted.

    python benchmarks/scaling.py [--seconds 1] [--repeat 12] [--hosts]

`--hosts` puts Redis, nginx, the client and every replica into network namespaces of their own, as separate hosts.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import numpy as np
import replicas as parts
from replicas import Running
from report import Report, arguments, track
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
    """Of some load: rounds, seconds, processor seconds that other work left, and those of each kind of process."""

    rounds: float
    seconds: float
    left: float
    replicas: float
    idles: float
    servers: float
    proxies: float
    clients: float

    @classmethod
    def least_disturbed(cls, slices: list[Figures]) -> Figures:
        """The sum of the third of the slices to which other work has left most of the machine."""
        kept = sorted(slices, key=lambda one: one.cores)[-max(1, len(slices) // 3) :]
        return cls(*(sum(values) for values in zip(*(vars(one).values() for one in kept), strict=True)))

    @property
    def rate(self) -> float:
        """Rounds a second."""
        return self.rounds / self.seconds

    @property
    def cores(self) -> float:
        """What other work left of the machine."""
        return self.left / self.seconds

    @property
    def replica(self) -> float:
        """Processor seconds a round, as all that follow."""
        return self.replicas / self.rounds

    @property
    def idle(self) -> float:
        return self.idles / self.rounds

    @property
    def redis(self) -> float:
        return self.servers / self.rounds

    @property
    def proxy(self) -> float:
        return self.proxies / self.rounds

    @property
    def client(self) -> float:
        return self.clients / self.rounds


ALONE, MANY, PROXIED, BESIDE = Cell(1, 1), Cell(1, 100), Cell(1, 100, True), Cell(1, 1, idle=1)
PAIRS = (Cell(2, 100), Cell(2, 100, True))
CELLS = (ALONE, BESIDE, Cell(2, 1), Cell(4, 1), MANY, PAIRS[0], Cell(4, 100))
CELLS += (PROXIED, PAIRS[1], Cell(4, 100, True))
CALIBRATES = {ALONE, BESIDE, MANY, PROXIED, *PAIRS}


def main() -> None:
    parser = arguments(__doc__, "scaling")
    parser.add_argument("--seconds", type=float, default=1.0, help="of load for each slice of a row")
    parser.add_argument("--repeat", type=int, default=12, help="slices of each row")
    parser.add_argument("--hosts", action="store_true", help="each process in a network namespace of its own")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.repeat = 0.1, 1
    lacking = parts.missing(proxy=True, separate=options.hosts)
    if lacking:
        print(f"scaling: skipped, because {lacking}")
        return
    report = Report("Many processes on one Redis", options.out)
    slices: dict[Cell, list[Figures]] = {cell: [] for cell in CELLS}
    with ExitStack() as stack:
        place = stack.enter_context(parts.hosts(options.hosts))
        rows = {cell: stack.enter_context(prepared(cell, place, options.hosts)) for cell in CELLS}
        for _ in track(range(options.repeat), "slices"):
            for cell, load in rows.items():
                slices[cell].append(load(options.seconds))
    measured = {cell: Figures.least_disturbed(own) for cell, own in slices.items()}
    model = Model(measured)
    head = ["replicas", "learners", "through", "cores", "replica us", "Redis us", "nginx us", "client us"]
    head += ["times one replica", "model us", "model / measured", "rounds/s", "model", "model / measured"]
    report.table(head, [row(cell, measured, model) for cell in CELLS if not cell.idle])
    follow = 1e6 * model.following
    report.text(
        f"Following what another replica learns costs {follow:.0f} us an event; a = {model.crowding:.2f}.\n"
    )
    report.text(
        "What the model says of more machines, by nginx' own ring of hashes (10,000 learners a machine):\n"
    )
    report.table(
        ["machines of 2 cores", "Redis shards", "busiest replica over mean", "rounds/s", "limited by"],
        [beyond(machines, shards, model) for machines, shards in BEYOND],
    )


class Model:
    """See the top."""

    def __init__(self, measured: dict[Cell, Figures]) -> None:
        self._measured = measured
        self.following = measured[BESIDE].idle
        self.redis = measured[PROXIED].redis
        pairs = [measured[pair].replica / self._first(pair).replica for pair in PAIRS]
        self.crowding = 2 * max(0.0, math.prod(pairs) ** (1 / len(pairs)) - 1)

    def replica(self, cell: Cell) -> float:
        """D(n)."""
        others = cell.replicas - 1
        follows = others * self.following if cell.learners == 1 else 0.0
        return (1 + self.crowding * others / cell.replicas) * (self._first(cell).replica + follows)

    def rate(self, cell: Cell, cores: float) -> float:
        """X(n)."""
        return self.reached(cell) * self._bound(cell, cores)

    def reached(self, cell: Cell) -> float:
        """e."""
        first = self._first(cell)
        return first.rate / self._bound(replace(cell, replicas=1), first.cores)

    def _first(self, cell: Cell) -> Figures:
        return self._measured[replace(cell, replicas=1)]

    def _bound(self, cell: Cell, cores: float) -> float:
        first, cost = self._first(cell), self.replica(cell)
        return min(cell.replicas / cost, cores / (cost + first.redis + first.proxy + first.client))


def row(cell: Cell, measured: dict[Cell, Figures], model: Model) -> list[object]:
    figures = measured[cell]
    first = measured[replace(cell, replicas=1)]
    cost, rate = model.replica(cell), model.rate(cell, figures.cores)
    us = [f"{1e6 * one:.0f}" for one in (figures.replica, figures.redis, figures.proxy, figures.client)]
    costs, rates = (
        [f"{1e6 * cost:.0f}", f"{cost / figures.replica:.2f}"],
        [f"{rate:.0f}", f"{rate / figures.rate:.2f}"],
    )
    return [
        cell.replicas,
        cell.learners,
        "nginx" if cell.proxied else "-",
        f"{figures.cores:.1f}",
        *us,
        f"{cell.replicas * first.replica / figures.replica:.2f}",
        *(["-", "-"] if cell in CALIBRATES else costs),
        f"{figures.rate:.0f}",
        *(["-", "-"] if cell in CALIBRATES - set(PAIRS) else rates),
    ]


BEYOND = ((1, 1), (10, 1), (10, 4), (100, 16), (1000, 16), (1000, 160))


def beyond(machines: int, shards: int, model: Model) -> list[object]:
    """Machines with two replicas each; clients, proxies and Redis elsewhere. The busiest replica is full first."""
    servers, pair = 2 * machines, replace(PROXIED, replicas=2)
    uneven = busiest(servers, 10_000 * machines)
    by_replicas, by_redis = servers / uneven / model.replica(pair), shards / model.redis
    limit = "replicas" if by_replicas < by_redis else "Redis"
    return [
        machines,
        shards,
        f"{uneven:.2f}",
        f"{model.reached(pair) * min(by_replicas, by_redis):,.0f}",
        limit,
    ]


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


@contextmanager
def prepared(cell: Cell, place: parts.Place, separate: bool) -> Iterator[Callable[[float], Figures]]:
    """The processes of a row, loaded and idle; a call loads them for so many seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(parts.redis_server(place(), folder))
        keys = folder / "keys" if separate else None
        key = parts.new_key(keys) if keys else None
        store = f"redis://{redis.address}/0"
        asked = [stack.enter_context(parts.replica(place(), store, keys)) for _ in range(cell.replicas)]
        # One that nobody asks lets go of a learner after as many events as lie between two snapshots; here it must not.
        follows = {"FEEDRANK_SNAPSHOT_EVERY": "1000000000"}
        idle = [stack.enter_context(parts.replica(place(), store, keys, **follows)) for _ in range(cell.idle)]
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
        watched: list[list[Running]] = [asked, idle, [redis], [proxy] if proxy else []]

        def load(seconds: float) -> Figures:
            file.write_text(json.dumps(plan | {"seconds": seconds}))
            before = [sum(one.spent() for one in group) for group in watched]
            done = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            used = [
                sum(one.spent() for one in group) - start
                for group, start in zip(watched, before, strict=True)
            ]
            left = done["unused"] + sum(used) + done["processor"]
            return Figures(done["rounds"], done["seconds"], left, *used, clients=done["processor"])

        load(WARM)  # learners are loaded where they live
        yield load


if __name__ == "__main__":
    main()
