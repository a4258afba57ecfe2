"""Products and inverses in one fixed order of operations: no BLAS, whose order depends on the CPU.

times(A, B)          A B of vectors and matrices, every sum from the first to the last
add_outer(A, a, F)   A += a F F', in place; symmetric to the last bit where A is
cholesky, forward    A = L L', and L^{-1} B, for small ones
sweep(A)             A^{-1} of a symmetric positive definite A, and its pivots
"""

from typing import Any

import numpy as np

from .elementary import Floats, row_product, total


def dot(a: Floats, b: Floats) -> float:
    """<a, b>."""
    return total(a * b) + 0.0


def times(A: Floats, B: Floats) -> Any:
    """A B: of two vectors a number, else as `A @ B` shapes it."""
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    if A.ndim == 1:
        return dot(A, B) if B.ndim == 1 else row_product(A, B)
    if not A.shape[1]:
        return np.zeros((len(A), *B.shape[1:]))
    if B.ndim == 1:
        return np.add.accumulate(A * B, axis=1)[:, -1] + 0.0
    product: Floats = np.zeros((len(A), B.shape[1]))
    for k in range(A.shape[1]):
        product += np.multiply.outer(A[:, k], B[k])
    return product


def add_outer(A: Floats, a: float, F: Floats) -> None:
    """A += a f f' for every column f of F, one after the other."""
    for f in F.T:
        active = f.nonzero()[0]
        if 8 * len(active) < len(f):
            A[np.ix_(active, active)] += a * np.multiply.outer(f[active], f[active])
        else:
            A += a * np.multiply.outer(f, f)


def cholesky(A: Floats) -> Floats | None:
    """L of A = L L', lower; None where A is not positive definite."""
    L = np.tril(A)
    for j in range(len(A)):
        if not L[j, j] > 0.0:
            return None
        L[j:, j] /= np.sqrt(L[j, j])
        below = L[j + 1 :, j]
        L[j + 1 :, j + 1 :] -= np.tril(np.multiply.outer(below, below))
    return L


def forward(L: Floats, B: Floats) -> Floats:
    """L^{-1} B for a lower triangular L, row by row."""
    X = np.zeros_like(B)
    for i in range(len(L)):
        X[i] = (B[i] - times(L[i, :i], X[:i])) / L[i, i]
    return X


def sweep(A: Floats) -> tuple[Floats, Floats]:
    """(A^{-1}, d), d_p what is left of the p-th diagonal entry when those before it are taken out (Cholesky's squares).

    Pivot by pivot: A_ij <- A_ij - A_ip A_pj / d, A_ip <- A_ip / d, A_pp <- -1 / d; at the end the sign turns. It stops
    at a pivot that is not above 0, and leaves it and those behind it as they are: then there is no inverse.
    """
    A = A.copy()
    pivots = np.zeros(len(A))
    for p in range(len(A)):
        d = A[p, p]
        pivots[p] = d
        if not d > 0.0:
            break
        column = A[p].copy()
        half = column / np.sqrt(d)  # a product of two entries could overflow
        A -= np.multiply.outer(half, half)
        A[p] = A[:, p] = column / d
        A[p, p] = -1.0 / d
    return 0.0 - A, pivots  # no zero with a sign
