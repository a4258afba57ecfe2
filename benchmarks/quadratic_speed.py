"""How long a round of the quadratic surrogate takes, beside the bare rank-one update of its matrix in NumPy.

    python benchmarks/quadratic_speed.py [--features 1000] [--labels 50] [--rounds 300]

A round is what the service does: predict, then learn. Streams of dense features.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from report import Report, arguments, track

from feedrank.learners import build

SPECS: dict[str, dict[str, Any]] = {
    "multiclass zero-one": {"task": "multiclass"},
    "multilabel hamming": {"task": "multilabel", "loss": "hamming"},
    "multilabel f-score": {"task": "multilabel", "loss": "f-score"},
    "multilabel subset-zero-one": {"task": "multilabel"},
    "label-ranking ndcg": {"task": "label-ranking"},
}


def least(actions: list[Callable[[int], object]], count: int) -> list[float]:
    """Milliseconds of each action, the least of all, as timeit advises, taken in turn: a busy machine only adds."""
    times = np.zeros((len(actions), count))
    for i in range(count):
        for a, action in enumerate(actions):
            start = time.perf_counter()
            action(i)
            times[a, i] = time.perf_counter() - start
    return (times.min(axis=1) * 1e3).tolist()


def truth(task: str, labels: int, x: np.ndarray) -> dict[str, object]:
    """Labels that follow from the features: the likeliest one, or the few that pass a bar."""
    scores = x[:labels]
    if task == "multiclass":
        return {"label": f"l{int(scores.argmax())}"}
    return {"labels": [f"l{j}" for j in np.argsort(-scores)[: 1 + int(x[-1] > 0)]]}


def main() -> None:
    parser = arguments(__doc__, "quadratic_speed")
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    if options.quick:
        options.features, options.labels, options.rounds = 12, 4, 3
    report = Report("A round of the quadratic surrogate", options.out)
    d, rng = options.features, np.random.default_rng(0)
    matrix, row = np.eye(d), rng.normal(size=d)

    def bare(_: int) -> None:
        np.add(matrix, np.outer(row, row), out=matrix)

    rows: list[list[object]] = []
    for name, spec in track(list(SPECS.items()), "specs"):
        learner = build({**spec, "algorithm": "quadratic-surrogate"})
        for before in (0, d + d // 2, 4 * d):
            while learner.version < before:
                x = rng.normal(size=d)
                learner.learn({"features": x}, truth(spec["task"], options.labels, x))
            X = rng.normal(size=(options.rounds, d))
            truths = [truth(spec["task"], options.labels, x) for x in X]

            def round_(i: int) -> None:
                learner.predict({"features": X[i]})  # noqa: B023
                learner.learn({"features": X[i]}, truths[i])  # noqa: B023

            base, took = least([bare, round_], options.rounds)
            form = learner.certificate["form"]
            rows.append([name, before, form, f"{took:.2f}", f"{base:.2f}", f"{took / base:.2f}"])
    report.table(
        ["task and loss", "events before", "form", "ms per round", "ms of the bare update", "ratio"], rows
    )


if __name__ == "__main__":
    main()
