"""(M + rho I)^{-1} for a symmetric M that grows and a ridge that moves, in O(k^2) a round.

P = (M + rho_0 I)^{-1} is kept at a reference ridge rho_0 and updated exactly as M changes. At another ridge rho =
rho_0 + delta,

    (M + rho I)^{-1} f = (I + delta P)^{-1} P f,

and since ||P|| <= 1 / rho_0, all eigenvalues of I + delta P lie within |delta| / rho_0 of 1: conjugate gradients
take about six steps. P is inverted anew when rho leaves a window around rho_0, which with rho = r sqrt(n) happens
as n grows by a quarter. All products are the kernel's, in one order on every CPU; M and P are symmetric to the bit.
"""

from __future__ import annotations

import math

import numpy as np

from ...growth import columns_for
from ...instances import Floats
from ...kernel import add_outer, sweep, times
from ...kernel.products import cholesky, forward

__all__ = ["Resolvent"]

# rho / rho_0 stays within [1/WINDOW, WINDOW]: a quarter more events move sqrt(n) by WINDOW^2.
WINDOW = math.sqrt(math.sqrt(1.25))
# An update that takes away all but this share of what P holds leaves mostly rounding: P is factored anew instead.
CANCELS = 1e8
# Conjugate gradients stop at STEP; a pass is repeated on what M says is left, until that is below REFINED.
STEP, REFINED, STEPS, PASSES = 1e-12, 1e-10, 60, 4


ResolventMark = tuple[int, float, float, tuple[Floats, Floats]]


class Resolvent:
    """M and P at the reference ridge `rho`. Arrays are padded with zeros to a size that depends on `size` alone."""

    def __init__(self) -> None:
        self.size: int = 0
        self.rho: float = 0.0
        # 0, unless the ridge is lost in the rounding of M: then it is raised to this.
        self.floor: float = 0.0
        self.M: Floats = np.zeros((0, 0))
        self.P: Floats = np.zeros((0, 0))
        self._spare: tuple[Floats, Floats] | None = None

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
        entries = (size * (size + 1) // 2,)
        if M.shape != entries or P.shape != entries or not rho >= 0.0 or not floor >= 0.0:
            raise ValueError("the matrices of the regression have another size")
        new = cls()
        new._room(size)
        new.rho, new.floor = rho, floor
        triangle = np.tri(size, dtype=bool)
        for whole, lower in ((new.M, M), (new.P, P)):
            whole[:size, :size][triangle] = lower
            whole[:size, :size] += np.tril(whole[:size, :size], -1).T
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
            finer = V + self._pass(rho - self.rho, times(self.P, rest))
            rest = F / safe - times(self.M, finer) - rho * finer
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
        rest = -delta * times(self.P, start)
        step = rest.copy()
        left = (rest * rest).sum(axis=0)
        enough = STEP * STEP * (start * start).sum(axis=0)
        for _ in range(STEPS):
            if (left <= enough).all():
                break
            image = step + delta * times(self.P, step)
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

    def mark(self) -> ResolventMark:
        """What `rewind` needs: copies of M and P, in arrays that are kept for it, because both change in place."""
        if self._spare is None or self._spare[0].shape != self.M.shape:
            self._spare = (np.empty_like(self.M), np.empty_like(self.P))
        np.copyto(self._spare[0], self.M)
        np.copyto(self._spare[1], self.P)
        return self.size, self.rho, self.floor, self._spare

    def rewind(self, mark: ResolventMark) -> None:
        """All as it was at the mark."""
        self.size, self.rho, self.floor, (self.M, self.P) = mark
        self._spare = None

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
        add_outer(self.M, 1.0, F)
        if not self._near(rho) or 4 * columns > self.size:
            self._factor(rho)
            return
        U = times(self.P, F)
        inner = np.eye(columns) + times(F.T, U)
        root = cholesky(inner) if inner.diagonal().max() <= CANCELS else None
        if root is None:
            self._factor(rho)
            return
        add_outer(self.P, -1.0, forward(root, U.T).T)

    def border(self, cross: Floats, corner: Floats, rho: float) -> None:
        """M <- [[M, cross], [cross', corner]], cross (size, columns); `rho` is the ridge from now on."""
        old, columns = self.size, len(corner)
        self._room(old + columns)
        self.M[old : self.size, :old] = cross.T
        self.M[:old, old : self.size] = cross
        self.M[old : self.size, old : self.size] = corner
        if not self._near(rho) or 4 * columns > self.size:
            self._factor(rho)
            return
        U = times(self.P, self.pad(cross))
        whole = corner + self.rho * np.eye(columns)
        root = cholesky(whole - times(cross.T, U[:old]))
        if root is None or not (CANCELS * np.square(root.diagonal()) >= whole.diagonal()).all():
            self._factor(rho)
            return
        U[old : self.size] = -np.eye(columns)
        add_outer(self.P, 1.0, forward(root, U.T).T)

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
        M = np.ascontiguousarray(self.M[:k, :k])
        # What is left of each diagonal entry, whatever the scales of the features, must stand above rounding.
        rounding = k * np.finfo(np.float64).eps
        while True:
            A = M + self.rho * np.eye(k)
            P, pivots = sweep(A)
            if (pivots > rounding * A.diagonal()).all():
                break
            # The ridge is lost in the rounding of M: it is raised to that of M's largest eigenvalue, or further.
            largest = float(np.abs(M).sum(axis=1).max())
            self.floor = max(rho, rounding * largest, 2.0 * self.floor)
            self.rho = self.floor * WINDOW
        self.P[:k, :k] = P
