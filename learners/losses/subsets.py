"""Losses of a predicted set as functions of (a, b, c, d), which may be numbers or arrays that broadcast.

a: relevant and in, b: irrelevant and in, c: relevant and out, d: irrelevant and out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Counts",
    "Losses",
    "SubsetLoss",
    "counts",
    "error_set_size",
    "f_score",
    "hamming",
    "jaccard",
    "subset_zero_one",
]

Counts = int | NDArray[np.intp]
Losses = float | NDArray[np.floating[Any]]
SubsetLoss = Callable[[Counts, Counts, Counts, Counts], Losses]


def counts(sigma: NDArray[np.bool_], y: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """(a, b, c, d) of the predicted mask `sigma` against the true mask `y`."""
    chosen, relevant, a = int(sigma.sum()), int(y.sum()), int((sigma & y).sum())
    return a, chosen - a, relevant - a, y.size - chosen - relevant + a


def subset_zero_one(a: Counts, b: Counts, c: Counts, d: Counts) -> Losses:
    """L = 1 - I(b = 0) I(c = 0)."""
    return 1.0 * (b + c > 0)


def hamming(a: Counts, b: Counts, c: Counts, d: Counts) -> Losses:
    """L = b + c, a count."""
    return 1.0 * (b + c)


def error_set_size(a: Counts, b: Counts, c: Counts, d: Counts) -> Losses:
    """L = b c: the pairs of a relevant label left out and an irrelevant label let in."""
    return 1.0 * (b * c)


def f_score(a: Counts, b: Counts, c: Counts, d: Counts) -> Losses:
    """L = 1 - 2a / (2a + b + c), 0 for two empty sets."""
    return (b + c) / np.maximum(2 * a + b + c, 1)


def jaccard(a: Counts, b: Counts, c: Counts, d: Counts) -> Losses:
    """L = 1 - a / (a + b + c), 0 for two empty sets."""
    return (b + c) / np.maximum(a + b + c, 1)
