"""The bounds of label ranking by dual ascent: lambda M <= D <= P(w) for every competitor w, Eq. (3).

P(w) = sum_r F(w_r) + C sum_i hinge(w; x_i, Y_i)
hinge(w; x, Y) = max_{r in Y, s not in Y} [gamma - (<w_r, x> - <w_s, x>)]_+                                Eq. (1)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..instances import Floats, Mask

__all__ = ["complexity", "hinge", "lemma", "mistake_bound", "primal"]


def lemma(C: float, gamma: float, curvature: float = 0.5) -> float:
    """lambda = gamma C - C^2 / 2: what a mistake adds to the dual objective at least, where <x, H x> <= 1/2.

    For any other `curvature` that <x, H x> does not pass, by the same proof: gamma C - C^2 curvature.
    """
    return gamma * C - C * C * curvature


def hinge(scores: Floats, relevant: Mask, gamma: float) -> float:
    """The loss of the scores of all labels on one example; 0 where the relevant set is empty or full."""
    if not relevant.any() or relevant.all():
        return 0.0
    return max(0.0, gamma - float(scores[relevant].min() - scores[~relevant].max()))


def complexity(w: Floats, kind: str = "squared-norm") -> float:
    """sum_r F(w_r) over the columns of w: |w_r|^2 / 2, or sum_j w_rj log(n w_rj) of columns that are distributions.

    n is the number of rows: give all of the learner's `dimension` of them.
    """
    if kind == "squared-norm":
        return 0.5 * float(np.einsum("jr,jr->", w, w))
    if (w < 0.0).any() or not np.allclose(w.sum(axis=0), 1.0, rtol=0.0, atol=1e-9):
        raise ValueError(
            "entropy is a complexity of distributions: columns must be non-negative and sum to 1"
        )
    return float((w * np.log(np.where(w > 0.0, len(w) * w, 1.0))).sum())


def primal(
    w: Floats, stream: Iterable[tuple[Floats, Mask]], C: float, gamma: float, kind: str = "squared-norm"
) -> float:
    """P(w) of a competitor w (features, labels) on a recorded stream of (x, mask of the relevant labels)."""
    return complexity(w, kind) + C * sum(hinge(x @ w, relevant, gamma) for x, relevant in stream)


def mistake_bound(objective: float, C: float, gamma: float) -> float:
    """M <= P(w) / lambda, given the primal objective of some competitor; infinite for C >= 2 gamma."""
    promised = lemma(C, gamma)
    return objective / promised if promised > 0.0 else np.inf
