"""How a round and a learner grow: with features, labels, active features and the length of a list; fitted exponents.

    python benchmarks/growth.py [--rounds 300]

One thing grows while the rest stays. Rounds are timed by the processor time of this process, the best of several blocks
after all features and labels have been met. Memory is what the learner counts as its own (`bytes` in the API); the snapshot
is its file. An exponent is the slope of a straight line through the logarithms of the upper half of the sizes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from report import Report, arguments, track

from feedrank.learners import ItemList, build, dump

Sample = tuple[Any, dict[str, Any]]
Figures = tuple[float, int, int]  # microseconds a round, bytes of the learner, bytes of its snapshot
BLOCK = 20
VECTORS: dict[str, dict[str, Any]] = {
    "predtron": {"task": "multiclass", "algorithm": "predtron"},
    "dual ascent III": {
        "task": "multiclass",
        "algorithm": "dual-ascent",
        "update": "III",
        "weighting": "idf",
        "normalize": "unit",
    },
    "preset": {"task": "multiclass"},
    "quadratic surrogate": {"task": "multiclass", "algorithm": "quadratic-surrogate"},
}
LISTS: dict[str, dict[str, Any]] = {
    "listnet": {"task": "subset-ranking", "algorithm": "listnet"},
    "slam": {"task": "subset-ranking", "algorithm": "slam"},
    "minimax": {"task": "subset-ranking", "algorithm": "minimax-perceptron"},
    "predtron, ndcg": {"task": "subset-ranking", "algorithm": "predtron"},
    "quadratic surrogate": {"task": "subset-ranking", "algorithm": "quadratic-surrogate"},
}


def words(features: int, labels: int, active: int) -> Iterator[Sample]:
    """Messages of `active` words each; at first every word and every label comes once, then words of a label's own."""
    rng = np.random.default_rng(0)
    order = rng.permutation(features)
    names = [f"w{i}" for i in range(features)]
    turn = 0
    while True:
        label = turn % labels
        if turn < max(labels, features // active + 1):
            results = order[np.arange(turn * active, (turn + 1) * active) % features]
        else:
            own = (label * 31 + np.arange(active // 2)) % features
            results = np.unique(np.concatenate([own, rng.integers(features, size=active - active // 2)]))
        yield {"features": [names[i] for i in results]}, {"label": f"l{label}"}
        turn += 1


def lists(items: int, features: int) -> Iterator[Sample]:
    """Lists of five grades that noise blurs, so that there is always something to learn."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=features)
    ids = [str(i) for i in range(items)]
    while True:
        X = rng.normal(size=(items, features))
        y = np.clip(np.round(X @ w / np.linalg.norm(w) + rng.normal(size=items) / 2 + 1), 0, 4)
        yield ItemList.dense(ids, X), {"relevance": y}


def measured(spec: dict[str, Any], events: Iterator[Sample], warm: int, rounds: int) -> Figures:
    """A round and a learner, after `warm` rounds."""
    learner = build(spec)
    for _ in range(warm):
        learner.learn(*next(events))
    best = float("inf")
    for _ in range(max(3, rounds // BLOCK)):
        block = [next(events) for _ in range(BLOCK)]
        begin = time.process_time()
        for instance, truth in block:
            learner.predict(instance)
            learner.learn(instance, truth)
        best = min(best, (time.process_time() - begin) / BLOCK)
    return 1e6 * best, learner.nbytes(), len(dump(learner))


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of log value over log size, upper half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def grow(
    report: Report,
    title: str,
    axis: str,
    sizes: Sequence[int],
    contenders: dict[str, tuple[Sequence[int], Callable[[int], Figures]]],
) -> None:
    """One section: a table of rounds per second, one of bytes, with exponents, and a plot of each."""
    results: dict[str, dict[int, Figures]] = {}
    runs = [(name, size) for name, (own, _) in contenders.items() for size in own]
    for name, size in track(runs, title):
        results.setdefault(name, {})[size] = contenders[name][1](size)
    report.text(f"## {title}\n")
    kinds = {"rounds/s": 0, "bytes of the learner": 1, "bytes of its snapshot": 2}
    for kind, at in kinds.items():
        rows: list[list[object]] = []
        for name, figures in results.items():
            values = {size: figure[at] for size, figure in figures.items()}
            slope = exponent(list(values), list(values.values()))
            shown = {size: 1e6 / value if at == 0 else value for size, value in values.items()}
            cells = [f"{shown[size]:,.0f}" if size in shown else "-" for size in sizes]
            rows.append([name, *cells, f"{slope:.2f}"])
        what = "exponent of the time" if at == 0 else "exponent"
        report.table([f"{kind}, {axis} =", *map(str, sizes), what], rows)
    for name, at, unit in (("time", 0, "microseconds per round"), ("memory", 1, "bytes")):
        lines = {key: [v[s][at] if s in v else np.nan for s in sizes] for key, v in results.items()}
        file = f"{axis.replace(', ', '-').replace(' ', '-')}-{name}"
        report.plot(file, sizes, lines, (axis, unit), log=True)


def main() -> None:
    parser = arguments(__doc__, "growth")
    parser.add_argument("--rounds", type=int, default=300, help="timed rounds of each size, in blocks of 20")
    options = parser.parse_args()
    report = Report("Growth of rounds and memory", options.out)
    rounds = BLOCK if options.quick else options.rounds
    most = 3 if options.quick else None  # sizes of each section

    def vector(
        spec: dict[str, Any], features: int = 10_000, labels: int = 50, active: int = 100, met: int = 200
    ) -> Figures:
        warm = max(labels, features // active + 1, met)
        return measured(spec, words(features, labels, active), warm, rounds)

    def listed(spec: dict[str, Any], items: int = 100, features: int = 100) -> Figures:
        return measured(spec, lists(items, features), 20, rounds)

    first = {name: spec for name, spec in VECTORS.items() if name != "quadratic surrogate"}
    second = VECTORS["quadratic surrogate"]
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000][:most]
    small = [100, 200, 400, 800, 1600][:most]
    grow(report, "Features: 50 labels, 100 active", "features", sizes, {
        name: (sizes, lambda n, s=spec: vector(s, features=n)) for name, spec in first.items()
    })  # fmt: skip
    grow(report, "Features: second order, 3 rounds a feature, 50 active", "features, second order", small, {
        "quadratic surrogate": (small, lambda n: vector(second, features=n, active=50, met=3 * n)),
    })  # fmt: skip
    counts = [10, 30, 100, 300, 1000][:most]
    grow(report, "Labels: 10,000 features, 100 active", "labels", counts, {
        name: (counts, lambda n, s=spec: vector(s, labels=n)) for name, spec in first.items()
    } | {"quadratic surrogate, 500 features": (counts, lambda n: vector(second, features=500, labels=n))})  # fmt: skip
    actives = [10, 30, 100, 300, 1000][:most]
    grow(report, "Active features: 10,000 features, 50 labels", "active features", actives, {
        name: (actives, lambda n, s=spec: vector(s, active=n)) for name, spec in first.items()
    })  # fmt: skip
    lengths = [10, 30, 100, 300, 1000][:most]
    grow(report, "Length of the list: 100 features, given as arrays", "items", lengths, {
        name: (lengths if "predtron" not in name else lengths[:4], lambda n, s=spec: listed(s, items=n))
        for name, spec in LISTS.items()
    })  # fmt: skip


if __name__ == "__main__":
    main()
