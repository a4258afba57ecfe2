"""Table 2 of "Sharp analysis of learning with discrete losses" beside our figures.

    python benchmarks/discrete.py --data DATA [--only scene,yeast,...,ohsumed] [--splits 3] [--online]

DATA holds multilabel/ (MULAN sets as ARFF) and letor/ (OHSUMED); a set that is not there is skipped. Each split
takes 60 % of the examples to learn, 20 % to choose kernel, bandwidth and regularization for each loss, 20 % to
test. The choice is made on the batch problem, whose answers the streaming learner gives as well; --online streams
the chosen one and counts equal decisions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from data import letor
from discrete_batch import LOSSES, Choice, load, one_split, split, structured
from quadratic_baselines import RankSVM
from report import Report, arguments, part, track

from feedrank.learners import build
from feedrank.learners.algorithms.quadratic.targets import normalised_gains
from feedrank.learners.losses.rankings import ndcg

PAPER = {  # QS, THBM, SSVM of Table 2; 0-1 and Hamming are losses, the F-score a gain
    "bibtex": {"0-1": (0.78, 0.82, 0.91), "hamming": (0.013, 0.013, 0.013), "f-score": (0.47, 0.44, 0.19)},
    "cal500": {"0-1": (1.0, 1.0, 1.0), "hamming": (0.14, 0.14, 0.13), "f-score": (0.47, 0.46, 0.33)},
    "corel5k": {"0-1": (0.95, 0.99, 0.99), "hamming": (0.0094, 0.011, 0.010), "f-score": (0.26, 0.25, 0.11)},
    "enron": {"0-1": (0.86, 0.92, 0.90), "hamming": (0.086, 0.059, 0.071), "f-score": (0.52, 0.51, 0.49)},
    "scene": {"0-1": (0.34, 0.49, 0.51), "hamming": (0.11, 0.11, 0.11), "f-score": (0.68, 0.63, 0.57)},
    "yeast": {"0-1": (0.76, 0.93, 0.95), "hamming": (0.42, 0.26, 0.40), "f-score": (0.47, 0.48, 0.48)},
}
OHSUMED = {3: (0.51, 0.47), 5: (0.48, 0.45), 10: (0.46, 0.43)}  # QS, SSVM
OURS = ("QS, ours", "THBM, ours", "SSVM, ours")
LIST_RATES = (3.0, 10.0, 30.0, 100.0, 300.0)
QUADRATIC = {"algorithm": "quadratic-surrogate"}


def streamed(choice: Choice, name: str, Z: np.ndarray, Y: np.ndarray, seed: int) -> float:
    """The share of test decisions that the streaming learner shares with the batch estimator."""
    train, _, test = split(len(Z), seed)
    kernel = (
        {}
        if choice.bandwidth is None
        else {"kernel": "gaussian", "bandwidth": choice.bandwidth, "budget": len(train)}
    )
    labels = [str(j) for j in range(Y.shape[1])]
    spec = {"task": "multilabel", **QUADRATIC, "loss": LOSSES[name], "labels": labels}
    learner = build({**spec, "regularization": choice.r, **kernel})
    for i in train:
        learner.learn({"features": Z[i]}, {"labels": [labels[j] for j in np.flatnonzero(Y[i])]})
    same = 0
    for i, decided in zip(test, choice.decided, strict=True):
        same += set(learner.predict({"features": Z[i]}).labels) == {
            labels[j] for j in np.flatnonzero(decided)
        }
    return same / len(test)


def table(report: Report, folder: Path, names: list[str], splits: int, online: bool) -> None:
    rows: list[list[object]] = []
    shares: list[list[object]] = []
    for name in names:
        if not (folder / f"{name}.xml").exists():
            report.text(f"({name}: skipped, there is no {name}.xml)\n")
            continue
        start = time.perf_counter()
        X, Y = load(folder, name)
        results: dict[str, list[dict[str, Choice]]] = {method: [] for method in OURS}
        for seed in track(range(splits), name):
            chosen, threshold, Z = one_split(X, Y, seed)
            for method, choices in zip(OURS, (chosen, threshold, structured(Z, Y, seed)), strict=True):
                results[method].append(choices)
            if online and seed == 0:
                for measure in LOSSES:
                    share = streamed(chosen[measure], measure, Z, Y, seed)
                    shares.append([name, measure, f"{share:.1%}"])
        took = f"{time.perf_counter() - start:.0f}"
        for measure, paper in PAPER[name].items():
            figures = [np.array([choices[measure].test for choices in each]) for each in results.values()]
            if measure == "f-score":
                figures = [1 - figure for figure in figures]
            rows.append([name, measure, *map(shown, figures), *paper, took])
    report.table(["set", "measure", *OURS, "paper: QS", "THBM", "SSVM", "seconds"], rows)
    if shares:
        report.table(["set", "measure", "test decisions of the streaming learner equal to the batch"], shares)


def shown(figure: np.ndarray) -> str:
    """The mean over the splits, and their spread if there are several."""
    return f"{figure.mean():.3g}" + (f" ± {figure.std():.1g}" if len(figure) > 1 else "")


def queries(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """OHSUMED, each feature scaled to [0, 1] within its query, and a constant."""
    for number in range(1, 6):
        for query in letor(folder, f"ohsumed-S{number}"):
            X, y = np.array(query.features), np.array(query.grades)
            spread = np.ptp(X, axis=0)
            scaled = (X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0)
            yield np.hstack((scaled, np.ones((len(X), 1)))), y


def ohsumed(report: Report, folder: Path, splits: int) -> None:
    lists = list(queries(folder))
    results: dict[int, tuple[list[float], list[float]]] = {k: ([], []) for k in OHSUMED}
    for seed in track(range(splits), "ohsumed"):
        train, valid, test = split(len(lists), seed)

        def value(w: np.ndarray, some: np.ndarray, k: int) -> float:
            orders = [(np.argsort(-(lists[i][0] @ w), kind="stable"), lists[i][1]) for i in some]
            return float(np.mean([ndcg(order, y, k) for order, y in orders]))

        machines = [RankSVM(C).fit([lists[i] for i in train]).w for C in (1.0, 10.0, 100.0)]
        X = np.vstack([lists[i][0] for i in train])
        S = X.T @ X
        for k, (ours, pairs) in results.items():
            # With some twenty queries to choose by, NDCG@10 is the steadiest guide for every k.
            pairs.append(value(max(machines, key=lambda w: value(w, valid, 10)), test, k))
            gains = X.T @ np.concatenate([normalised_gains(lists[i][1], k) for i in train])
            weights = {
                r: np.linalg.solve(S + r * len(train) ** 0.5 * np.eye(len(S)), gains) for r in LIST_RATES
            }
            best = max(LIST_RATES, key=lambda r: value(weights[r], valid, 10))
            learner = build({"task": "subset-ranking", **QUADRATIC, "cutoff": k, "regularization": best})
            for i in train:
                learner.learn(*_round(*lists[i]))
            ranked = [[int(name) for name, _ in learner.predict(_round(*lists[i])[0]).ranking] for i in test]
            ours.append(
                float(np.mean([ndcg(np.array(o), lists[i][1], k) for o, i in zip(ranked, test, strict=True)]))
            )
    report.table(
        [f"OHSUMED, {splits} splits", "QS, ours, streamed", "RankSVM, ours", "paper: QS", "SSVM"],
        [
            [f"NDCG@{k}", *(f"{np.mean(f):.3f} ± {np.std(f):.3f}" for f in figures), *OHSUMED[k]]
            for k, figures in results.items()
        ],
    )


def _round(X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    items = [{"id": str(i), "features": row} for i, row in enumerate(X)]
    return {"items": items}, {"relevance": {str(i): float(grade) for i, grade in enumerate(y)}}


def main() -> None:
    parser = arguments(__doc__, "discrete", "multilabel", "letor")
    parser.add_argument("--only", default=",".join([*PAPER, "ohsumed"]))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--online", action="store_true")
    options = parser.parse_args()
    report = Report("Learning with discrete losses: Table 2", options.out)
    wanted = options.only.split(",")
    names = [name for name in PAPER if name in wanted]
    folder = part(options.data, "multilabel") if names else None
    if folder is not None:
        table(report, folder, names, 1 if options.quick else options.splits, options.online)
    folder = part(options.data, "letor") if "ohsumed" in wanted else None
    if folder is not None:
        ohsumed(report, folder, 1 if options.quick else max(20, options.splits))


if __name__ == "__main__":
    main()
