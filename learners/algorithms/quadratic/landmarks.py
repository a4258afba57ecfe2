"""Coordinates in the span of a kernel's landmarks."""

from __future__ import annotations

import numpy as np

from ...instances import Floats
from ...kernel import times
from ...kernel.products import forward

__all__ = ["orthonormal"]


def orthonormal(K: Floats) -> Floats:
    """B with <B k_x, B k_z> = k(x, z) on the span of the landmarks: L^{-1} of Cholesky's factor with pivots.

    The landmark that the ones before explain least comes next, until all are explained but for rounding; the columns of
    the others are 0.
    """
    left = K.diagonal().copy()
    enough = 1e-12 * float(left.sum())
    factor, chosen = np.zeros(K.shape), []
    for k in range(len(K)):
        p = int(left.argmax())
        if left[p] <= enough:
            break
        row = (K[p] - times(factor[:k, p], factor[:k])) / np.sqrt(left[p])
        factor[k] = row
        left -= row * row
        chosen.append(p)
        left[chosen] = -1.0
    L = factor[: len(chosen), chosen].T
    basis = np.zeros((len(chosen), len(K)))
    basis[:, chosen] = forward(L, np.eye(len(chosen)))
    return basis
