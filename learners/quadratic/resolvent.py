"""(M + rho I)^{-1} for a symmetric M that grows and a ridge that moves, in O(k^2) a round.

P = (M + rho_0 I)^{-1} is kept at a reference ridge rho_0 and updated exactly as M changes. At another ridge rho =
rho_0 + delta,

    (M + rho I)^{-1} f = (I + delta P)^{-1} P f,

and since ||P|| <= 1 / rho_0, all eigenvalues of I + delta P lie within |delta| / rho_0 of 1: conjugate gradients
take about six steps. P is factored anew when rho leaves a window around rho_0, which with rho = r sqrt(n) happens
as n grows by a quarter. A round is bound by memory, so only the lower triangles of M and P are kept up to date and
read.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, cholesky, eigh, lapack, solve_triangular

from ..growth import columns_for
from ..instances import Floats

__all__ = ["Resolvent"]

# rho / rho_0 stays within [1/WINDOW, WINDOW]: a quarter more events move sqrt(n) by WINDOW^2.
WINDOW = 1.25**0.25
# An update that takes away all but this share of what P holds leaves mostly rounding: P is factored anew instead.
CANCELS = 1e8
# Conjugate gradients stop at STEP; a pass is repeated on what M says is left, until that is below REFINED.
STEP, REFINED, STEPS, PASSES = 1e-12, 1e-10, 60, 4


class Resolvent:
    """M and P at the reference ridge `rho`. Arrays are padded with zeros to a size that depends on `size` alone."""

    def __init__(self) -> None:
        self.size = 0
        self.rho = 0.0
        # 0, unless the ridge is lost in the rounding of M: then it is raised to this.
        self.floor = 0.0
        self.M: Floats = np.zeros((0, 0))
        self.P: Floats = np.zeros((0, 0))

    @classmethod
    def of(cls, M: Floats, rho: float) -> Resolvent:
        """A fresh one on a given matrix."""
        new = cls()
        new._room(len(M))
        new.M[: len(M), : len(M)] = M
        new._factor(rho)
        return new

    @classmethod
    def restored(cls, size: int, rho: float, floor: float, M: Floats, P: Floats) -> Resolvent:
        """From the lower triangles of M and P."""
        new = cls()
        new._room(size)
        new.rho, new.floor = rho, floor
        triangle = np.tri(size, dtype=bool)
        new.M[:size, :size][triangle] = M
        new.P[:size, :size][triangle] = P
        return new

    @property
    def padded(self) -> int:
        return len(self.M)

    def pad(self, F: Floats) -> Floats:
        """F (size, columns), or the vector, with zero rows behind."""
        if len(F) == self.padded:
            return F
        larger = np.zeros((self.padded, *F.shape[1:]))
        larger[: len(F)] = F
        return larger

    def solve(self, rho: float, F: Floats) -> Floats:
        """(M + rho I)^{-1} F, column by column, to the accuracy of M. F is padded, and so is the answer."""
        scale = np.abs(F).max(axis=0, initial=0.0)
        safe = np.where(scale > 0, scale, 1.0)
        rest = F / safe
        rho = max(rho, self.floor)
        V, error = np.zeros_like(rest), np.inf
        for _ in range(PASSES):
            finer = V + self._pass(rho - self.rho, _times(self.P, rest))
            rest = F / safe - _times(self.M, finer) - rho * finer
            before, error = error, float(np.abs(rest).max(initial=0.0))
            if not error < before:
                break
            V = finer
            if error <= REFINED:
                break
        return V * safe

    def _pass(self, delta: float, start: Floats) -> Floats:
        """(I + delta P) V = start by conjugate gradients, all columns side by side."""
        V = start.copy()
        rest = -delta * _times(self.P, start)
        step = rest.copy()
        left = (rest * rest).sum(axis=0)
        enough = STEP * STEP * (start * start).sum(axis=0)
        for _ in range(STEPS):
            if (left <= enough).all():
                break
            image = step + delta * _times(self.P, step)
            curvature = (step * image).sum(axis=0)
            going = (left > enough) & (curvature > 0)
            if not going.any():
                break
            a = np.where(going, left, 0.0) / np.where(going, curvature, 1.0)
            V += a * step
            rest -= a * image
            after = (rest * rest).sum(axis=0)
            step = rest + np.where(going, after, 0.0) / np.where(left > 0, left, 1.0) * step
            left = after
        return V

    def grow(self, size: int) -> None:
        """New rows and columns of zeros in M."""
        old = self.size
        if size > old:
            self._room(size)
            if self.rho:
                new = np.arange(old, size)
                self.P[new, new] = 1.0 / self.rho

    def add(self, F: Floats, rho: float) -> None:
        """M += F F' for padded columns F; `rho` is the ridge from now on."""
        columns = F.shape[1]
        _add(self.M, 1.0, F)
        if not self._near(rho) or 4 * columns > self.size:
            self._factor(rho)
            return
        U = _times(self.P, F)
        inner = np.eye(columns) + F.T @ U
        if not inner.diagonal().max() <= CANCELS:
            self._factor(rho)
            return
        root = cholesky(inner, lower=True)
        _add(self.P, -1.0, solve_triangular(root, U.T, lower=True).T)

    def border(self, cross: Floats, corner: Floats, rho: float) -> None:
        """M <- [[M, cross], [cross', corner]], cross (size, columns); `rho` is the ridge from now on."""
        old, columns = self.size, len(corner)
        self._room(old + columns)
        self.M[old : self.size, :old] = cross.T
        self.M[old : self.size, old : self.size] = corner
        if not self._near(rho) or 4 * columns > self.size:
            self._factor(rho)
            return
        U = _times(self.P, self.pad(cross))
        whole = corner + self.rho * np.eye(columns)
        root, failed = lapack.dpotrf(whole - cross.T @ U[:old], lower=1)
        if failed or not (CANCELS * root.diagonal() ** 2 >= whole.diagonal()).all():
            self._factor(rho)
            return
        U[old : self.size] = -np.eye(columns)
        _add(self.P, 1.0, solve_triangular(root, U.T, lower=True).T)

    def _near(self, rho: float) -> bool:
        return self.rho / WINDOW <= max(rho, self.floor) <= self.rho * WINDOW

    def _room(self, size: int) -> None:
        padded = columns_for(size) + 8  # off the powers of two, whose columns share cache lines
        if padded > self.padded:
            for name in ("M", "P"):
                larger = np.zeros((padded, padded))
                larger[: self.size, : self.size] = getattr(self, name)[: self.size, : self.size]
                setattr(self, name, larger)
        self.size = size

    def _factor(self, rho: float) -> None:
        """P anew, at a reference ridge ahead of rho, so that the window is used to its end."""
        self.rho, self.floor = rho * WINDOW, 0.0
        k = self.size
        if not k:
            return
        M = np.tril(self.M[:k, :k])
        A = M + self.rho * np.eye(k)
        root, failed = lapack.dpotrf(A, lower=1)
        # What is left of each diagonal entry, whatever the scales of the features, must stand above rounding.
        rounding = k * np.finfo(np.float64).eps
        if not failed and (root.diagonal() ** 2 > rounding * A.diagonal()).all():
            self.P[:k, :k] = np.tril(lapack.dpotri(root, lower=1)[0])
            return
        values, Q = eigh(M, lower=True)
        self.floor = max(rho, rounding * float(values[-1]))
        self.rho = self.floor * WINDOW
        self.P[:k, :k] = np.tril((Q / (np.maximum(values, 0.0) + self.rho)) @ Q.T)


def _times(A: Floats, F: Floats) -> Floats:
    """A F, from the lower triangle of A (the upper one of its transpose, as BLAS sees it)."""
    product: Floats = blas.dsymm(1.0, A.T, F) if F.shape[1] > 1 else blas.dsymv(1.0, A.T, F[:, 0])[:, None]
    return product


def _add(A: Floats, a: float, F: Floats) -> None:
    """A += a F F' in the lower triangle, in place."""
    if F.shape[1] > 1:
        blas.dsyrk(a, F, beta=1.0, c=A.T, overwrite_c=1)
        return
    f = np.ascontiguousarray(F[:, 0])
    active = np.flatnonzero(f)
    if 8 * len(active) < len(f):
        A[np.ix_(active, active)] += a * np.multiply.outer(f[active], f[active])
    else:
        blas.dsyr(a, f, a=A.T, overwrite_a=1)
