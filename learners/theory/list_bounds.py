"""What is proved about the perceptrons for lists (Chaudhuri and Tewari), as functions, and streams that put it to the test.

    R        a bound on the length of every item's feature vector
    w        any ranker; `norm` is ||w||, and `surrogate` its sum of f_t(w), 0 if it ranks all with a margin of 1
    gamma    the margin of a unit-norm ranker, Eq. (21): norm = 1 / gamma, surrogate = 0
    places   m, the longest list (Theorem 6), or k, the cutoff of NDCG (Theorem 8)
    v_max    the largest ratio of two positive weights of a round: 1 for AP, `ndcg_v_max` for NDCG

Eq. (19) is printed without v_max under its first root; the derivation, and Eq. (22), have it there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import floor, log2, sqrt

import numpy as np

from ..instances import Floats, Ints
from ..losses.rankings import ap_loss, ndcg_loss

GradedList = tuple[Floats, Floats]


def ndcg_v_max(highest: int, places: int) -> float:
    """v_max of NDCG with whole grades up to `highest`: the first place at the top grade against the last at grade 1."""
    return (2.0**highest - 1.0) * log2(places + 1)


def _perceptron(surrogate: float, square: float) -> float:
    """x - b sqrt(x) - c <= 0 implies x <= c + b sqrt(c) + b^2; here c = `surrogate`, b^2 = `square`."""
    return surrogate + sqrt(square * surrogate) + square


def perceptron_bound(R: float, norm: float, surrogate: float = 0.0) -> float:
    """Theorem 1: the classification perceptron makes at most F + b sqrt(F) + b^2 mistakes, b = R ||u||, for every u.

    F sums [1 - y_t <x_t, u>]_+ over the rounds with a mistake. It is Predtron on two labels, at any rate.
    """
    return _perceptron(surrogate, norm**2 * R**2)


def perceptron_margin_bound(R: float, gamma: float) -> float:
    """Corollary 2: at most R^2 / gamma^2 mistakes."""
    return perceptron_bound(R, 1.0 / gamma)


def slam_bound(R: float, norm: float, places: int, v_max: float, surrogate: float = 0.0) -> float:
    """Theorems 6, 8: SLAM at its best rate loses at most F + b sqrt(F) + b^2, b^2 = 4 ||w||^2 n R^2 v_max."""
    return _perceptron(surrogate, 4.0 * norm**2 * places * R**2 * v_max)


def slam_margin_bound(R: float, gamma: float, places: int, v_max: float) -> float:
    """Corollary 7: at most 4 n R^2 v_max / gamma^2, however long the stream."""
    return slam_bound(R, 1.0 / gamma, places, v_max)


def slam_rate(R: float, places: int, v_max: float) -> float:
    """The rate that meets Corollary 7 without knowing gamma: 1 / (4 n R^2 v_max); `learning_rate: "theory"`, per round."""
    return 1.0 / (4.0 * places * R**2 * v_max)


def minimax_bound(R: float, norm: float, surrogate: float = 0.0) -> float:
    """Theorem 10: the total loss of Algorithm 3 is at most F + b sqrt(F) + b^2, b = 2 ||w|| R, at any rate."""
    return _perceptron(surrogate, 4.0 * norm**2 * R**2)


def minimax_margin_bound(R: float, gamma: float) -> float:
    """Corollary 11: at most 4 R^2 / gamma^2, however long the lists; it bounds the number of mistakes as well."""
    return minimax_bound(R, 1.0 / gamma)


def adversary_rounds(R: float, gamma: float, dimension: int) -> int:
    """How often the adversary can strike: (T + 1) gamma^2 / (4 R^2) = ||w*||^2 <= 1 and T + 1 <= d.

    The paper stops at a quarter of it, T + 1 = R^2 / gamma^2.
    """
    return max(0, min(dimension, floor(4.0 * (R / gamma) ** 2 + 1e-9)) - 1)


def lower_bound(R: float, gamma: float, dimension: int, measure: str = "ndcg") -> float:
    """Theorem 9: no deterministic learner loses less. A struck round costs at least 1 - D(2), or 1/2 for AP."""
    least = 0.5 if measure == "ap" else 1.0 - 1.0 / log2(3.0)
    return least * adversary_rounds(R, gamma, dimension)


@dataclass(frozen=True)
class Fooled:
    """What the adversary did: the rounds, the learner's loss on them, and a ranker with margin gamma on all of them."""

    rounds: list[GradedList]
    loss: float
    ranker: Floats


def adversary(
    predict: Callable[[Floats], Ints],
    learn: Callable[[Floats, Floats], object],
    *,
    R: float,
    gamma: float,
    dimension: int,
    items: int = 2,
    measure: str = "ndcg",
) -> Fooled:
    """Theorem 9: a stream made against the learner, one that a unit-norm ranker orders with margin gamma.

    Round i shows R e_{i+1}, -R e_{i+1} and copies of R e_1, and calls relevant whichever of the first two is not on top.
    (The paper prints w*_i by the grades of round i; coordinate i + 1 is the one that round i shows.)
    """
    loss_of = ap_loss if measure == "ap" else ndcg_loss
    ranker = np.zeros(dimension)
    ranker[0] = -gamma / (2.0 * R)
    rounds: list[GradedList] = []
    loss = 0.0
    for i in range(1, adversary_rounds(R, gamma, dimension) + 1):
        X, y = np.zeros((items, dimension)), np.zeros(items)
        X[2:, 0] = R
        X[0, i], X[1, i] = R, -R
        order = predict(X.copy())
        relevant = 1 if order[0] == 0 else 0
        y[relevant] = 1.0
        ranker[i] = gamma / (2.0 * R) * (-1.0 if relevant else 1.0)
        loss += loss_of(order, y)
        learn(X.copy(), y.copy())
        rounds.append((X, y))
    return Fooled(rounds, loss, ranker)


def separable(
    seed: int, rounds: int, items: int = 20, dimension: int = 20, levels: int = 5, gamma: float = 0.2
) -> Iterator[GradedList]:
    """The simulation of Section 8: lists that one unit-norm ranker w* orders with margin gamma.

    Each level has a Gaussian of its own; along w* an item is moved into its level's band, of width gamma, with a gap of
    gamma between bands.
    """
    rng = np.random.default_rng(seed)
    ranker = rng.normal(size=dimension)
    ranker /= np.linalg.norm(ranker)
    means = rng.normal(scale=0.5, size=(levels, dimension))
    for _ in range(rounds):
        y = rng.integers(0, levels, items).astype(np.float64)
        X = means[y.astype(np.intp)] + rng.normal(size=(items, dimension))
        along = gamma * (2.0 * (y - (levels - 1) / 2.0) + rng.random(items))
        X += np.multiply.outer(along - X @ ranker, ranker)
        yield X, y
