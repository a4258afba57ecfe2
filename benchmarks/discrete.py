"""Table 2 of "Sharp analysis of learning with discrete losses" beside our figures. Prints Markdown.

    python benchmarks/discrete.py --data FOLDER [--only scene,yeast,...,ohsumed] [--splits 3] [--online]

FOLDER holds multilabel/ (MULAN sets as ARFF) and letor/ (OHSUMED); a set that is not there is skipped. Each split
takes 60 % of the examples to learn, 20 % to choose kernel, bandwidth and regularization for each loss, 20 % to
test. The choice is made on the batch problem, whose answers the streaming learner gives as well; --online streams
the chosen one and counts equal decisions.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

sys.path.insert(0, str(Path(__file__).resolve().parent))
from data import letor, multilabel

from feedrank.learners import build
from feedrank.learners.losses.rankings import ndcg
from feedrank.learners.quadratic.baselines import RankSVM, Threshold, f_measure, hamming_measure
from feedrank.learners.quadratic.sets import Sets
from feedrank.learners.quadratic.targets import normalised_gains

PAPER = {  # THBM, SSVM, QS of Table 2; 0-1 and Hamming are losses, the F-score a gain
    "bibtex": {"0-1": (0.82, 0.91, 0.78), "hamming": (0.013, 0.013, 0.013), "f-score": (0.44, 0.19, 0.47)},
    "cal500": {"0-1": (1.0, 1.0, 1.0), "hamming": (0.14, 0.13, 0.14), "f-score": (0.46, 0.33, 0.47)},
    "corel5k": {"0-1": (0.99, 0.99, 0.95), "hamming": (0.011, 0.010, 0.0094), "f-score": (0.25, 0.11, 0.26)},
    "enron": {"0-1": (0.92, 0.90, 0.86), "hamming": (0.059, 0.071, 0.086), "f-score": (0.51, 0.49, 0.52)},
    "scene": {"0-1": (0.49, 0.51, 0.34), "hamming": (0.11, 0.11, 0.11), "f-score": (0.63, 0.57, 0.68)},
    "yeast": {"0-1": (0.93, 0.95, 0.76), "hamming": (0.26, 0.40, 0.42), "f-score": (0.48, 0.48, 0.47)},
}
OHSUMED = {3: (0.47, 0.51), 5: (0.45, 0.48), 10: (0.43, 0.46)}  # SSVM, QS
LOSSES = {"0-1": "subset-zero-one", "hamming": "hamming", "f-score": "f-score"}
RATES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
LIST_RATES = (3.0, 10.0, 30.0, 100.0, 300.0)
QUADRATIC = {"algorithm": "quadratic-surrogate"}
WIDTHS = (None, 0.5, 1.0)  # linear, and Gaussian kernels at these shares of the median distance
DECODED = 250  # the F-score's validation looks at this many examples


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and label masks of one set."""
    parts = ("scene-train", "scene-test") if name == "scene" else (name,)
    examples = [example for part in parts for example in multilabel(folder, part, name)]
    features: dict[str, int] = {}
    labels: dict[str, int] = {}
    for values, relevant in examples:
        for key in values:
            features.setdefault(key, len(features))
        for key in relevant:
            labels.setdefault(key, len(labels))
    X, Y = np.zeros((len(examples), len(features))), np.zeros((len(examples), len(labels)), dtype=bool)
    for i, (values, relevant) in enumerate(examples):
        X[i, [features[key] for key in values]] = list(values.values())
        Y[i, [labels[key] for key in relevant]] = True
    return X, Y


def prepared(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Numbers are standardised, words scaled to length 1; then a constant."""
    if set(np.unique(X[train][:200])) <= {0.0, 1.0}:
        Z = X / np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
        return np.hstack((Z, np.ones((len(X), 1))))
    spread = X[train].std(axis=0)
    Z = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.hstack((Z / np.sqrt(X.shape[1]), np.ones((len(X), 1))))


class Batch:
    """The estimator on n examples for every ridge at once: g(x) = k_x' U (L + r sqrt(n))^{-1} U' Psi."""

    def __init__(self, X: np.ndarray, psi: Any, width: float | None) -> None:
        self.X, self.n, self.linear = X, len(X), width is None
        self.bandwidth: float | None = None
        if not self.linear:
            sample = X[:: max(1, len(X) // 400)]
            self.bandwidth = (
                float(width or 1)
                * float(np.median(_distances(sample, sample)[np.triu_indices(len(sample), 1)])) ** 0.5
            )
        self.primal = self.linear and X.shape[1] < len(X)
        L, self.U = eigh(X.T @ X if self.primal else self.kernel(X))
        self.L = np.maximum(L, 0.0)
        self.C = self.U.T @ (psi.T @ X).T if self.primal else (psi.T @ self.U).T

    def kernel(self, Z: np.ndarray) -> np.ndarray:
        if self.bandwidth is None:
            return Z @ self.X.T
        return np.exp(-_distances(Z, self.X) / (2 * self.bandwidth**2))

    def at(self, Z: np.ndarray) -> np.ndarray:
        """Z in the basis U, to be used with several ridges."""
        return (Z if self.primal else self.kernel(Z)) @ self.U

    def predict(self, A: np.ndarray, r: float, columns: np.ndarray) -> np.ndarray:
        return (A / (self.L + r * self.n**0.5)) @ self.C[:, columns]


def _distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0.0)


def decisions(family: Sets, loss: str, theta: np.ndarray) -> np.ndarray:
    """Label sets for the rows of theta; what a whole matrix can decide at once is done so."""
    m = family.labels
    if loss == "hamming":
        return 2 * theta[:, 1:] > theta[:, :1]
    if loss == "f-score":
        return np.array([family.found(loss, row[None]).sigma for row in theta])
    w = theta[:, m + 1 :]
    best = w.argmax(axis=1)
    found = family.member[best].copy()
    for i in np.flatnonzero(w[np.arange(len(w)), best] <= 0):
        found[i] = family.found(loss, theta[i][None]).sigma
    return found


def cost(name: str, Z: np.ndarray, Y: np.ndarray) -> float:
    """The mean loss, with the F-score as 1 - F."""
    if name == "0-1":
        return float((Z != Y).any(axis=1).mean())
    if name == "hamming":
        return float((Z != Y).mean())
    both = Z.sum(axis=1) + Y.sum(axis=1)
    return float(1 - np.where(both > 0, 2 * (Z & Y).sum(axis=1) / np.maximum(both, 1), 1.0).mean())


@dataclass
class Choice:
    """The best on the validation part, and what it does on the test part."""

    valid: float = np.inf
    test: float = np.nan
    width: float | None = None
    bandwidth: float | None = None
    r: float = 1.0
    decided: np.ndarray | None = None

    def offer(self, valid: float, **rest: Any) -> bool:
        if valid < self.valid:
            self.valid = valid
            for key, value in rest.items():
                setattr(self, key, value)
            return True
        return False


def split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """60, 20 and 20 %."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: int(0.6 * n)], order[int(0.6 * n) : int(0.8 * n)], order[int(0.8 * n) :]


def one_split(
    X: np.ndarray, Y: np.ndarray, seed: int
) -> tuple[dict[str, Choice], dict[str, Choice], np.ndarray]:
    """The choice for each loss: of the surrogate, and of the threshold method."""
    train, valid, test = split(len(X), seed)
    Z = prepared(X, train)
    family = Sets("hamming", None)
    family.grow(Y.shape[1])
    entries = [family.psi(y)[0] for y in Y[train]]
    rows = np.repeat(np.arange(len(train)), [len(e) for e in entries])
    psi = sparse.csr_array(
        (np.ones(len(rows)), (rows, np.concatenate(entries))), (len(train), len(family.table))
    )
    chosen, threshold = {name: Choice() for name in LOSSES}, {name: Choice() for name in LOSSES}
    for width in WIDTHS:
        if width is not None and len(train) > 3200:
            continue  # the Gram matrix of the largest set is beyond a benchmark's patience
        batch = Batch(Z[train], psi, width)
        inside, outside, beyond = batch.at(Z[train]), batch.at(Z[valid]), batch.at(Z[test])
        known = {"width": width, "bandwidth": batch.bandwidth}
        for r in RATES:
            for name, loss in LOSSES.items():
                columns = np.minimum(family.columns(loss), len(family.table))
                at = np.where(columns < len(family.table), columns, 0)

                def theta(
                    A: np.ndarray, at: Any = at, columns: Any = columns, r: float = r, batch: Batch = batch
                ) -> np.ndarray:
                    return np.where(columns < len(family.table), batch.predict(A, r, at), 0.0)

                few = slice(DECODED) if name == "f-score" else slice(None)
                found = cost(name, decisions(family, loss, theta(outside[few])), Y[valid][few])
                chosen[name].offer(found, r=r, decided=None, **known) and setattr(
                    chosen[name], "test", theta(beyond)
                )
                if name == "hamming":
                    marginals = [2 * t[:, 1:] - t[:, :1] for t in map(theta, (inside, outside, beyond))]
                    for target in LOSSES:
                        measure = f_measure if target == "f-score" else hamming_measure
                        method = Threshold(measure, 1.0).fit(marginals[0], Y[train])
                        valid_cost = cost(target, method.predict(marginals[1]), Y[valid])
                        threshold[target].offer(
                            valid_cost, test=cost(target, method.predict(marginals[2]), Y[test])
                        )
    for name, choice in chosen.items():
        choice.decided = decisions(family, LOSSES[name], choice.test)
        choice.test = cost(name, choice.decided, Y[test])
    return chosen, threshold, Z


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


def table(folder: Path, names: list[str], splits: int, online: bool) -> None:
    print(
        "| set | measure | ours | THBM, ours | paper: THBM | SSVM | QS | seconds |\n|---|---|---|---|---|---|---|---|"
    )
    for name in names:
        if not (folder / f"{name}.xml").exists():
            print(f"{name}: skipped, there is no {name}.xml in {folder}", file=sys.stderr)
            continue
        start = time.perf_counter()
        X, Y = load(folder, name)
        runs = [one_split(X, Y, seed) for seed in range(splits)]
        for measure, paper in PAPER[name].items():
            figures = [np.array([run[which][measure].test for run in runs]) for which in (0, 1)]
            if measure == "f-score":
                figures = [1 - figure for figure in figures]
            shown = " | ".join(f"{figure.mean():.3g} ± {figure.std():.1g}" for figure in figures)
            took = time.perf_counter() - start
            print(
                f"| {name} | {measure} | {shown} | " + " | ".join(map(str, paper)) + f" | {took:.0f} |",
                flush=True,
            )
            if online:
                chosen, _, Z = runs[0]
                share = streamed(chosen[measure], measure, Z, Y, 0)
                print(
                    f"{name}, {measure}: streamed, {share:.1%} of the test decisions equal", file=sys.stderr
                )


def queries(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """OHSUMED, each feature scaled to [0, 1] within its query, and a constant."""
    for part in range(1, 6):
        for query in letor(folder, f"ohsumed-S{part}"):
            X, y = np.array(query.features), np.array(query.grades)
            spread = np.ptp(X, axis=0)
            scaled = (X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0)
            yield np.hstack((scaled, np.ones((len(X), 1)))), y


def ohsumed(folder: Path, splits: int) -> None:
    if not (folder / "ohsumed-S1.txt.gz").exists():
        print(f"ohsumed: skipped, there is no ohsumed-S1.txt.gz in {folder}", file=sys.stderr)
        return
    lists = list(queries(folder))
    found: dict[int, tuple[list[float], list[float]]] = {k: ([], []) for k in OHSUMED}
    for seed in range(splits):
        train, valid, test = split(len(lists), seed)

        def value(w: np.ndarray, part: np.ndarray, k: int) -> float:
            orders = [(np.argsort(-(lists[i][0] @ w), kind="stable"), lists[i][1]) for i in part]
            return float(np.mean([ndcg(order, y, k) for order, y in orders]))

        machines = [RankSVM(C).fit([lists[i] for i in train]).w for C in (1.0, 10.0, 100.0)]
        X = np.vstack([lists[i][0] for i in train])
        S = X.T @ X
        for k, (ours, pairs) in found.items():
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
    print(
        f"\n| OHSUMED, {splits} splits | ours, streamed | RankSVM, ours | paper: SSVM | QS |\n|---|---|---|---|---|"
    )
    for k, figures in found.items():
        shown = " | ".join(f"{np.mean(figure):.3f} ± {np.std(figure):.3f}" for figure in figures)
        print(f"| NDCG@{k} | {shown} | {OHSUMED[k][0]} | {OHSUMED[k][1]} |", flush=True)


def _round(X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    items = [{"id": str(i), "features": row} for i, row in enumerate(X)]
    return {"items": items}, {"relevance": {str(i): float(grade) for i, grade in enumerate(y)}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join([*PAPER, "ohsumed"]))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--online", action="store_true")
    options = parser.parse_args()
    wanted = options.only.split(",")
    names = [name for name in PAPER if name in wanted]
    if names:
        table(options.data / "multilabel", names, options.splits, options.online)
    if "ohsumed" in wanted:
        ohsumed(options.data / "letor", max(20, options.splits))


if __name__ == "__main__":
    main()
