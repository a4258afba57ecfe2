"""How long a round of the quadratic surrogate takes, beside the bare rank-one update of its matrix in NumPy.

    OPENBLAS_NUM_THREADS=1 python benchmarks/quadratic_speed.py [--features 1000] [--labels 50] [--rounds 300]

A round is what the service does: predict, then learn. Streams of dense features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from feedrank.learners import build

SPECS = {
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    d, rng = options.features, np.random.default_rng(0)
    matrix, row = np.eye(d), rng.normal(size=d)

    def bare(_: int) -> None:
        np.add(matrix, np.outer(row, row), out=matrix)

    for name, spec in SPECS.items():
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
            print(
                f"{name:28} after {before:5} events, {form:8}: {took:6.2f} ms, bare {base:5.2f} ms, {took / base:5.2f} x"
            )


if __name__ == "__main__":
    main()
