"""Ridge regression in its primal form: g(x) = B (S + rho I)^{-1} x, S = sum x x', B = sum psi(y) x'."""

from __future__ import annotations

import numpy as np

from ...growth import grown
from ...instances import Floats, Ints
from ...kernel import times
from .resolvent import Resolvent, ResolventMark

__all__ = ["Primal"]


PrimalMark = tuple[int, Floats, ResolventMark]


class Primal:
    """S in a `Resolvent`, and B with one row a target, padded as S is."""

    def __init__(self, resolvent: Resolvent | None = None, B: Floats | None = None) -> None:
        self.resolvent: Resolvent = resolvent or Resolvent()
        self.targets: int = 0 if B is None else len(B)
        self.B: Floats = np.zeros((0, 0)) if B is None else B
        self._before: tuple[Floats, Ints, Floats] | None = None
        self._fit()

    def grow(self, features: int, targets: int) -> None:
        """New features and targets were 0 on the past: zero rows and columns of S and B, exactly."""
        self.resolvent.grow(features)
        self._fit()
        self.B = grown(self.B, targets)
        self.targets = max(self.targets, targets)

    def mark(self) -> PrimalMark:
        """What `rewind` needs; `learn` keeps the rows of B that it changes."""
        self._before = None
        return self.targets, self.B, self.resolvent.mark()

    def rewind(self, mark: PrimalMark) -> None:
        """All as it was at the mark."""
        if self._before is not None:
            B, columns, rows = self._before
            B[columns] = rows
        self.targets, self.B, resolvent = mark
        self.resolvent.rewind(resolvent)

    def _fit(self) -> None:
        if self.B.shape[1] != self.resolvent.padded:
            B = np.zeros((len(self.B), self.resolvent.padded))
            width = min(self.B.shape[1], self.resolvent.size)
            B[:, :width] = self.B[:, :width]
            self.B = B

    def predict(self, F: Floats, columns: Ints, rho: float) -> Floats:
        """g (F's columns, targets asked)."""
        F = self.resolvent.pad(F)
        if F.shape[1] <= len(columns):
            V = self.resolvent.solve(rho, F)
            if 2 * len(columns) > self.targets:
                return np.asarray(times(self.B[: self.targets], V)[columns].T)
            return np.asarray(times(self.B[columns], V).T)
        return np.asarray(times(F.T, self.resolvent.solve(rho, np.ascontiguousarray(self.B[columns].T))))

    def learn(self, F: Floats, columns: Ints, values: Floats, rho: float) -> None:
        """The columns of F join, with targets `values` (one row a column of F) in `columns`; then the ridge is
        rho.
        """
        F = self.resolvent.pad(F)
        more = times(values.T, F.T)
        before = self.B[columns]
        self._before = (self.B, columns, before)
        more += before
        self.B[columns] = more
        self.resolvent.add(F, rho)

    def weights(self, T: Floats, rho: float) -> Floats:
        """W (features, functionals) such that T g(x) = x' W, for T (functionals, targets)."""
        solved = self.resolvent.solve(rho, np.ascontiguousarray(times(T, self.B[: self.targets]).T))
        return solved[: self.resolvent.size]
