"""The batch side of `discrete.py`: the surrogate for every ridge at once, thresholds, a structured SVM, and the choices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import multilabel
from quadratic_baselines import Threshold, f_measure, hamming_measure
from scipy import sparse
from scipy.linalg import eigh

from feedrank.learners.algorithms.quadratic.sets import Sets
from feedrank.learners.tasks.multilabel import Hamming, Multilabel, SubsetZeroOne

LOSSES = {"0-1": "subset-zero-one", "hamming": "hamming", "f-score": "f-score"}
RATES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
WIDTHS = (None, 0.5, 1.0)  # linear, and Gaussian kernels at these shares of the median distance
DECODED = 250  # the F-score's validation looks at this many examples
LAMBDAS, EPOCHS = (1e-4, 1e-3), 4  # of the structured SVM


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
        return np.array([family.decode(loss, row[None]).sigma for row in theta])
    w = theta[:, m + 1 :]
    best = w.argmax(axis=1)
    value = family.member[best].copy()
    for i in np.flatnonzero(w[np.arange(len(w)), best] <= 0):
        value[i] = family.decode(loss, theta[i][None]).sigma
    return value


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
    theta: np.ndarray | None = None
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


def f_loss(a: Any, b: Any, c: Any, d: Any) -> Any:
    """1 - 2 a / (2 a + b + c), 0 for two empty sets."""
    return 1.0 - np.where(2 * a + b + c > 0, 2.0 * a / np.maximum(2 * a + b + c, 1), 1.0)


def ssvm(task: Multilabel, X: np.ndarray, Y: np.ndarray, regularization: float, seed: int) -> np.ndarray:
    """The structured SVM: W = argmin l/2 ||W||^2 + mean_i max_s {L(s, y_i) + <rep(s) - rep(y_i), W x_i>}.

    Stochastic subgradients with step 1 / (l k), the iterates averaged with weights k: W_k = theta_k / (l k), so two
    running sums are enough.
    """
    n, m = Y.shape
    K = EPOCHS * n
    theta, averaged = np.zeros((X.shape[1], m)), np.zeros((X.shape[1], m))
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (EPOCHS, 1)), axis=1).ravel()
    for k, i in enumerate(order, start=1):
        rows = np.flatnonzero(X[i])
        x = X[i, rows]
        t = x @ theta.take(rows, axis=0) / (regularization * k)
        rival = task.augmented(Y[i], t)
        if rival is not None and (rival != Y[i]).any():
            step = np.multiply.outer(x, task.rep(Y[i], m) - task.rep(rival, m))
            theta[rows] += step
            averaged[rows] += (K - k + 1) * step
    return averaged * (2.0 / (regularization * K * (K + 1)))


def structured(Z: np.ndarray, Y: np.ndarray, seed: int) -> dict[str, Choice]:
    """The structured SVM of each loss, its regularization chosen on the validation part."""
    train, valid, test = split(len(Z), seed)
    tasks: dict[str, Multilabel] = {
        "0-1": SubsetZeroOne(),
        "hamming": Hamming(),
        "f-score": Multilabel(f_loss),
    }
    chosen = {name: Choice() for name in LOSSES}
    for name, task in tasks.items():
        for regularization in LAMBDAS:
            W = ssvm(task, Z[train], Y[train], regularization, seed)
            value = cost(name, Z[valid] @ W > 0, Y[valid])
            chosen[name].offer(value, test=cost(name, Z[test] @ W > 0, Y[test]), r=regularization)
    return chosen


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
        shared = {"width": width, "bandwidth": batch.bandwidth}
        for r in RATES:
            for name, loss in LOSSES.items():
                columns = np.minimum(family.columns(loss), len(family.table))
                at = np.where(columns < len(family.table), columns, 0)

                def theta(
                    A: np.ndarray, at: Any = at, columns: Any = columns, r: float = r, batch: Batch = batch
                ) -> np.ndarray:
                    return np.where(columns < len(family.table), batch.predict(A, r, at), 0.0)

                few = slice(DECODED) if name == "f-score" else slice(None)
                value = cost(name, decisions(family, loss, theta(outside[few])), Y[valid][few])
                if chosen[name].offer(value, r=r, **shared):
                    chosen[name].theta = theta(beyond)
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
        assert choice.theta is not None
        choice.decided = decisions(family, LOSSES[name], choice.theta)
        choice.test = cost(name, choice.decided, Y[test])
    return chosen, threshold, Z
