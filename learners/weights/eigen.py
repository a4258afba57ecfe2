"""Eigenvalues and eigenvectors of a symmetric matrix in one fixed order of operations: the same bits on every CPU.

Householder's reflections make it tridiagonal, T = Q' A Q; then QL steps with implicit shifts (EISPACK's tql2) rotate T to a
diagonal, and the columns of Q with it. O(m^3); scaled by a power of two, so that no square overflows.
"""

from __future__ import annotations

import math

import numpy as np

from ..instances import Floats
from ..kernel import times, total

__all__ = ["eigen"]

STEPS = 60  # of one eigenvalue; a few are enough
PRECISION = 2.0**-52
NOTHING = 1e-120  # beside a largest entry of 1; its square is still a number


def eigen(A: Floats) -> tuple[Floats, Floats]:
    """(values, vectors as columns) of a symmetric A."""
    top = float(np.abs(A).max(initial=0.0))
    if len(A) < 2 or top == 0.0:
        return A.diagonal().copy(), np.eye(len(A))
    scale = float(np.ldexp(1.0, int(np.frexp(top)[1])))
    diagonal, off, V = _tridiagonal(A / scale)
    _rotate(diagonal, off, V)
    return np.array(diagonal) * scale, np.ascontiguousarray(V.T)


def _tridiagonal(A: Floats) -> tuple[list[float], list[float], Floats]:
    """The diagonal of T, what is below it, and Q by rows, one a column of Q."""
    A = A.copy()
    m = len(A)
    reflections: list[tuple[int, Floats, float]] = []
    off = [0.0] * m
    for k in range(m - 2):
        v = A[k + 1 :, k].copy()
        off[k] = float(v[0])
        if float(np.abs(v[1:]).max()) <= NOTHING:
            continue
        off[k] = -math.copysign(math.sqrt(total(v * v)), v[0])
        v[0] -= off[k]
        beta = 2.0 / total(v * v)
        rest = A[k + 1 :, k + 1 :]
        p = beta * times(np.ascontiguousarray(rest), v)
        w = p - (0.5 * beta * total(v * p)) * v
        cross = np.multiply.outer(v, w)
        rest -= cross + cross.T
        reflections.append((k + 1, v, beta))
    off[m - 2] = float(A[m - 1, m - 2])
    V = np.eye(m)
    for first, v, beta in reversed(reflections):
        rest = V[first:, first:]  # of Q', so that a reflection works from the right
        rest -= np.multiply.outer(beta * times(np.ascontiguousarray(rest), v), v)
    return A.diagonal().tolist(), off, V


def _rotate(d: list[float], e: list[float], V: Floats) -> None:
    """T's diagonal d becomes its eigenvalues; e holds what is below it, the last entry is room."""
    m = len(d)
    for first in range(m):
        for _ in range(STEPS):
            last = first
            while last < m - 1 and abs(e[last]) > PRECISION * (abs(d[last]) + abs(d[last + 1])):
                last += 1
            if last == first:
                break
            g = (d[first + 1] - d[first]) / (2.0 * e[first])
            r = math.sqrt(g * g + 1.0) if abs(g) < 1e150 else abs(g)
            g = d[last] - d[first] + e[first] / (g + math.copysign(r, g))
            s = c = 1.0
            p = 0.0
            for i in range(last - 1, first - 1, -1):
                f, b = s * e[i], c * e[i]
                r = math.sqrt(f * f + g * g)
                e[i + 1] = r
                if r == 0.0:
                    d[i + 1] -= p
                    e[last] = 0.0
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                upper = V[i + 1].copy()
                V[i + 1] = s * V[i] + c * upper
                V[i] = c * V[i] - s * upper
            else:
                d[first] -= p
                e[first] = g
                e[last] = 0.0
