"""What is proved about the quadratic surrogate (Nowak-Vila, Bach, Rudi): constants of losses, comparison, rates.

A loss enters by an affine decomposition over decisions z and truths y, Eq. (11) (a term of y alone changes no decision):

    L(z, y) = <F_z, U_y> + c(y),    A = sqrt(r) ||F||_inf U_max                                               Eq. (14)

r the length of U_y, ||F||_inf = max_z |F_z|, U_max the largest |entry| of U. With n events, kernel values of at most
kappa^2 and a regression target of norm Q, the excess risk is of the order A Q kappa tau^2 n^(-1/4) (Theorem 3.1); where the
margin gamma(x) is rarely small it is of a better one (Corollary 3.6). C is universal and not known: it is 1 here.

Slips of the text. Theorem 3.5: with gamma_p = ||1/gamma||_p the proof gives gamma_p^(p/(p+2)), not gamma_p^(1/(p+2)).
Table 1: |F|^2 of average precision is 1 + 1/2 + .. + 1/m, which is above log(m + 1); and the F-score's |F| comes as close
to 2 as one likes, so that sqrt(2) m is too small. `A_of` has what the decompositions give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from ..instances import Floats, Ints, Mask
from ..losses.rankings import discounts, gains

__all__ = [
    "A_of",
    "Affine",
    "affine",
    "comparison",
    "corollary_3_6",
    "inverse_margin",
    "low_noise",
    "margins",
    "theorem_3_1",
    "theorem_3_5",
]


@dataclass(frozen=True)
class Affine:
    """F (decisions, r) and U (truths, r), with the decisions and truths that the rows stand for."""

    F: Floats
    U: Floats
    decisions: Sequence[object]
    truths: Sequence[object]

    @property
    def largest(self) -> float:
        """||F||_inf, the length of the longest row."""
        return float(np.sqrt((self.F**2).sum(axis=1)).max())

    @property
    def A(self) -> float:
        """Eq. (14)."""
        return math.sqrt(self.U.shape[1]) * self.largest * float(np.abs(self.U).max())


def affine(loss: str, m: int, cutoff: int = 1, highest: int = 1, blocks: Sequence[int] = ()) -> Affine:
    """The decomposition of a loss for m labels, all decisions and truths written out: for small m.

    `zero-one` and `block-zero-one` are of one label out of m; `cutoff` is that of `precision`, grades go up to `highest`.
    """
    if loss in ("zero-one", "block-zero-one"):
        group = np.arange(m) if loss == "zero-one" else np.asarray(blocks)
        onehot = (group[:, None] == np.unique(group)).astype(np.float64)
        return Affine(-onehot, onehot, range(m), range(m))
    if loss in ("hamming", "f-score", "precision", "subset-zero-one"):
        return _of_sets(loss, m, cutoff)
    grades = range(2 if loss == "ap" else highest + 1)
    truths = [np.array(y, dtype=np.float64) for y in product(grades, repeat=m)]
    orders = [np.array(order) for order in permutations(range(m))]
    return _of_orders(loss, m, orders, truths)


def _of_sets(loss: str, m: int, cutoff: int) -> Affine:
    sets: list[Mask] = [np.array(bits, dtype=bool) for bits in product((False, True), repeat=m)]
    chosen = [z for z in sets if z.sum() == cutoff] if loss == "precision" else sets
    if loss == "subset-zero-one":
        return Affine(-np.eye(len(sets)), np.eye(len(sets)), sets, sets)
    if loss == "hamming":
        signs: Floats = 2.0 * np.array(sets, dtype=np.float64) - 1.0
        return Affine(-signs / (2.0 * m), signs, sets, sets)
    if loss == "precision":
        return Affine(
            -np.array(chosen, dtype=np.float64) / cutoff, np.array(sets, dtype=np.float64), chosen, sets
        )
    # 1[y = 0] and y_j 1[|y| = s]; 1[z = 0] and 2 z_j / (|z| + s).
    s = np.arange(1, m + 1)
    F = [np.append(float(not z.any()), np.multiply.outer(z, 2.0 / (z.sum() + s)).ravel()) for z in sets]
    U = [np.append(float(not y.any()), np.multiply.outer(y, 1.0 * (y.sum() == s)).ravel()) for y in sets]
    return Affine(-np.array(F), np.array(U), sets, sets)


def _of_orders(loss: str, m: int, orders: Sequence[Ints], truths: Sequence[Floats]) -> Affine:
    """A best order first: `order[0]` is on top."""
    places = np.array([np.argsort(order) for order in orders])
    if loss == "ndcg":
        D = discounts(m)
        G = np.array([gains(y) for y in truths])
        ideal = np.sort(G, axis=1)[:, ::-1] @ D
        return Affine(-D[places], G / np.where(ideal > 0.0, ideal, 1.0)[:, None], orders, truths)
    js, ls = np.triu_indices(m, 0 if loss == "ap" else 1)
    if loss == "ap":
        both = np.array([(y[js] > 0) & (y[ls] > 0) for y in truths]) / [
            [max(1.0, (y > 0).sum())] for y in truths
        ]
        return Affine(-1.0 / (1.0 + np.maximum(places[:, js], places[:, ls])), both, orders, truths)
    signs = np.array([np.sign(y[js] - y[ls]) for y in truths])
    pairs = np.maximum(1.0, np.abs(signs).sum(axis=1))[:, None]
    return Affine(0.5 * np.where(places[:, js] > places[:, ls], 1.0, -1.0), signs / pairs, orders, truths)


def A_of(loss: str, m: int, cutoff: int = 1, blocks: int = 1) -> float:
    """Table 1: A, or a bound on it, in closed form for any m."""
    harmonic = float((1.0 / np.arange(1, m + 1)).sum())
    D = discounts(m)
    constants: dict[str, float] = {
        "zero-one": math.sqrt(m),
        "block-zero-one": math.sqrt(blocks),
        "subset-zero-one": 2.0 ** (m / 2.0),
        "hamming": 0.5,
        "f-score": 2.0 * math.sqrt(m * m + 1.0),
        "precision": math.sqrt(m / cutoff),
        "ndcg": math.sqrt(m * float((D * D).sum())),
        "pairwise-disagreement": m / 4.0,
        "ap": math.sqrt(0.5 * m * (m + 1.0) * harmonic),
    }
    return constants[loss]


def theorem_3_1(A: float, Q: float, kappa: float, tau: float, n: int) -> float:
    """A Q kappa tau^2 n^(-1/4), with probability 1 - 8 e^(-tau), at lambda_n = n^(-1/2)."""
    return A * Q * kappa * tau * tau * math.pow(n, -0.25)


def comparison(largest: float, excess: float) -> float:
    """Eq. (6): the risk is at most 2 ||F||_inf sqrt(E |g - g*|^2) above the best."""
    return 2.0 * largest * math.sqrt(excess)


def theorem_3_5(largest: float, excess: float, p: float, gamma_p: float) -> float:
    """(16 ||F||_inf^2)^((p+1)/(p+2)) gamma_p^(p/(p+2)) (E |g - g*|^2)^((p+1)/(p+2)), gamma_p = ||1/gamma||_p."""
    power = (p + 1.0) / (p + 2.0)
    return math.pow(16.0 * largest * largest * excess, power) * math.pow(gamma_p, p / (p + 2.0))


def corollary_3_6(A: float, Q: float, kappa: float, tau: float, n: int, p: float, gamma_p: float) -> float:
    """gamma_p^(p/(p+2)) (A^2 Q^2 kappa^2 tau^4 n^(-1/2))^((p+1)/(p+2)); Theorem 3.1 for p = 0."""
    power = (p + 1.0) / (p + 2.0)
    return math.pow(theorem_3_1(A, Q, kappa, tau, n), 2.0 * power) * math.pow(gamma_p, p / (p + 2.0))


def margins(L: Floats, P: Floats) -> Floats:
    """gamma(x) of Eq. (18) for each row of P (x, truths), of a loss matrix L (decisions, truths)."""
    risks = np.sort(P @ L.T, axis=1)
    gaps: Floats = risks[:, 1] - risks[:, 0]
    return gaps


def inverse_margin(gamma: Floats, weights: Floats, p: float) -> float:
    """gamma_p = (E gamma^(-p))^(1/p)."""
    return math.pow(float((weights * gamma**-p).sum()), 1.0 / p)


def low_noise(gamma: Floats, below: Sequence[float]) -> list[float]:
    """The share of margins under each number: Eq. (19) asks that it falls faster than its p-th power."""
    return [float((gamma < eps).mean()) for eps in below]
