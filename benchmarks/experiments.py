"""Two figures of docs/experiments.md: interleaving against a split, and the cost of a predict.

    python benchmarks/experiments.py --data DATA [--runs 50]

DATA/letor holds mq2008-S1.txt.gz ... mq2008-S5.txt.gz (LETOR 4.0, from Microsoft Research); without it, no interleaving.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from data import Query, letor
from numpy.typing import NDArray
from report import Report, arguments, part, track

from feedrank.learners.inference.confidence import Floats
from feedrank.service.experiments.interleave import credit, draft
from feedrank.service.experiments.manager import Experiments
from feedrank.service.experiments.watch import NEVER, interleaved_verdicts, split_verdicts
from feedrank.service.runtime import Host

POWER = 0.8
TOP = 10
MOST = 256_000
# P(click | examined) and P(stop | click) by grade 0, 1, 2, of cascading users as in Hofmann, Whiteson and de Rijke (2013):
# the perfect clicks all that is relevant, the navigational wants one document, the informational several, and clicks much
# that is not relevant.
USERS = {
    "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
    "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
    "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
}


def rankers(queries: Sequence[Query]) -> list[list[Floats]]:
    """Scores of every query's documents: a ridge regression on the grades, and the same without the five best features."""
    X = np.vstack([query.features for query in queries])
    y = np.concatenate([query.grades for query in queries])
    spread = X.std(0)
    strength = np.abs((X - X.mean(0)).T @ (y - y.mean())) / np.where(spread > 0, spread, np.inf)
    kept = np.argsort(-strength, kind="stable")
    scored = []
    for columns in (kept, kept[5:]):
        A = np.c_[X[:, columns], np.ones(len(X))]
        w = np.linalg.solve(A.T @ A + 10 * np.eye(A.shape[1]), A.T @ y)
        scored.append(np.split(A @ w, np.cumsum([len(query.grades) for query in queries])[:-1]))
    return scored


def clicks(grades: Sequence[int], user: str, rng: np.random.Generator, users: int = 1) -> NDArray[np.bool_]:
    """Which places each of some cascading users clicks."""
    attraction, satisfaction = (np.array(chances)[list(grades)] for chances in USERS[user])
    drawn = rng.random((2, users, len(grades)))
    clicked = drawn[0] < attraction
    stopped = np.cumsum(clicked & (drawn[1] < satisfaction), axis=1)
    # The click that satisfies is the last one.
    outcome: NDArray[np.bool_] = clicked & (np.hstack([np.zeros((users, 1)), stopped[:, :-1]]) == 0)
    return outcome


def interleaving(report: Report, folder: Path, runs: int) -> None:
    queries = [query for number in range(1, 6) for query in letor(folder, f"mq2008-S{number}")]
    queries = [query for query in queries if len(query.grades) >= TOP]
    grades = [[int(grade) for grade in query.grades] for query in queries]
    lists = [[np.argsort(-t, kind="stable")[:TOP].tolist() for t in scores] for scores in rankers(queries)]
    measures = ("reciprocal-rank", f"clicks@{TOP}")
    rows: list[list[object]] = []
    for user in track(list(USERS), "interleaving"):
        rng = np.random.default_rng(2)
        whole = _interleaved(lists, grades, user, rng, runs, 6000)
        outcome = [_split(lists, grades, user, rng, runs, measure) for measure in measures]
        shown = [f"{n:.0f}, {n / whole:.1f} times" if n < NEVER / 2 else f"more than {MOST}" for n in outcome]
        rows.append([user, f"{whole:.0f}", *shown])
    report.text(
        f"MQ2008, {len(queries)} queries, two ridge rankers: impressions until {POWER:.0%} of the runs have a verdict.\n"
    )
    report.table(["users", "interleave", *(f"split on {measure}" for measure in measures)], rows)


def _interleaved(
    lists: list[list[list[int]]],
    grades: list[list[int]],
    user: str,
    rng: np.random.Generator,
    runs: int,
    most: int,
) -> float:
    """Impressions come by the thousand until enough of the runs have decided."""
    wins = np.zeros((runs, 0))
    while True:
        more = np.zeros((runs, 1000))
        for run, t in np.ndindex(more.shape):
            query = int(rng.integers(len(grades)))
            ids = [[str(i) for i in ranking[query]] for ranking in lists]
            drafted = draft(ids, "benchmark", f"{user}/{run}/{wins.shape[1] + t}", TOP)
            shown = [grades[query][int(name)] for name in drafted.names]
            places = np.flatnonzero(clicks(shown, user, rng)[0]).tolist()
            one, other = credit(drafted, 2, places)
            more[run, t] = one - other
        wins = np.hstack([wins, more])
        outcome = float(np.quantile(interleaved_verdicts(wins), POWER))
        if outcome < NEVER / 2 or wins.shape[1] >= most:
            return outcome


def _split(
    lists: list[list[list[int]]],
    grades: list[list[int]],
    user: str,
    rng: np.random.Generator,
    runs: int,
    measure: str,
) -> float:
    """Values are drawn from 4,000 simulated users of every query and ranker."""
    pool = np.empty((2, len(grades), 4000))
    for arm, query in np.ndindex(pool.shape[:2]):
        outcome = clicks([grades[query][i] for i in lists[arm][query]], user, rng, pool.shape[2])
        if measure == "reciprocal-rank":
            pool[arm, query] = outcome.any(axis=1) / (1 + outcome.argmax(axis=1))
        else:
            pool[arm, query] = outcome.mean(axis=1)
    events = 1000
    while True:
        first = rng.random((runs, events)) < 0.5
        shape = first.shape
        y = pool[
            1 - first.astype(int),
            rng.integers(len(grades), size=shape),
            rng.integers(pool.shape[2], size=shape),
        ]
        decided = float(np.quantile(split_verdicts(y, first), POWER))
        if decided < NEVER / 2 or events >= MOST:
            return decided
        events *= 4


async def cost(report: Report, rounds: int = 3000) -> None:
    """A predict of an experiment beside one of its arm, taken in turn: 50,000 features, 100 labels, 50 active."""
    rng = np.random.default_rng(3)
    with TemporaryDirectory() as folder:
        async with Host.open(f"sqlite:{folder}/feedrank.db") as host:
            labels = [f"label-{i}" for i in range(100)]
            for name in ("a", "b"):
                await host.create(name, {"task": "multiclass", "algorithm": "predtron", "labels": labels})
            experiments = Experiments(host)
            await experiments.create("e", {"arms": ["a", "b"]})
            per = {"window": 3600, "value": "mean"}
            await experiments.create("exposing", {"arms": ["a", "b"], "measure": "reward", "per": per})
            names = [[f"word-{i}" for i in row] for row in rng.integers(50_000, size=(rounds, 50))]
            events = [{"features": row, "label": labels[i % 100]} for i, row in enumerate(names)]
            for name in ("a", "b"):
                await host.feedback(name, {"events": events})
            rows: list[list[object]] = []
            for remember in (True, False):
                took = np.empty((3, rounds))
                ways = (
                    partial(host.predict, "a"),
                    *(partial(experiments.predict, e) for e in ("e", "exposing")),
                )
                for i, row in enumerate(names):
                    request = {"features": row, "remember": remember, "top": 10}
                    whole = {**request, "unit": str(i)}
                    # Who comes second finds the features in the processor's cache: in turn, too.
                    for way in ((i + step) % 3 for step in range(3)):
                        begun = perf_counter()
                        await ways[way](whole if way else request)
                        took[way, i] = perf_counter() - begun
                own, split, exposing = np.median(took, axis=1) * 1e6
                shown = "remembered" if remember else "not remembered"
                cells = [f"{own:.0f}", *(f"{one:.0f}, {one / own:.2f} times" for one in (split, exposing))]
                rows.append([shown, *cells])
            head = [
                "predict",
                "arm's own, us",
                "in the experiment (split), us",
                "with `per`: an exposure in the log, us",
            ]
            report.table(head, rows)


def main() -> None:
    parser = arguments(__doc__, "experiments", "letor")
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    report = Report("Experiments: interleaving, cost", options.out)
    asyncio.run(cost(report, 50 if options.quick else 3000))
    folder = part(options.data, "letor")
    if folder is not None:
        interleaving(report, folder, 2 if options.quick else options.runs)


if __name__ == "__main__":
    main()
