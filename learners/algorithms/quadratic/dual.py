"""Ridge regression in its dual form, Eq. (8): g(x) = sum_i alpha_i(x) psi(y_i), alpha(x) = (K + rho I)^{-1} K_x.

Right while there are fewer rows than features, and the only form of a kernel that is not linear.
"""

from __future__ import annotations

import numpy as np

from ... import sparse
from ...instances import Floats, Ints, Matrix
from ...kernel import exp, times
from ...sparse import Csr
from ...weights.base import X
from ...weights.expansion import whole_power
from .resolvent import Resolvent, ResolventMark
from .rows import Rows, RowsMark

__all__ = ["Dual", "KernelFunction", "Support"]


class KernelFunction:
    """k(x, x') = <x, x'>; exp(-||x - x'||^2 / (2 bandwidth^2)) with a bandwidth, (1 + <x, x'>)^degree with a degree."""

    bandwidth: float | None
    degree: int | None

    def __init__(self, bandwidth: float | None = None, degree: int | None = None) -> None:
        self.bandwidth, self.degree = bandwidth, degree

    @property
    def linear(self) -> bool:
        return self.bandwidth is None and self.degree is None

    def __call__(self, dots: Floats, norms: Floats, others: Floats) -> Floats:
        """From inner products (a, b) and squared norms (a,), (b,)."""
        if self.degree is not None:
            return whole_power(1.0 + dots, self.degree)
        if self.bandwidth is None:
            return dots
        distances = np.maximum(norms[:, None] + others - 2.0 * dots, 0.0)
        # Divided twice: the square of a small bandwidth could be 0.
        return exp(-0.5 * distances / self.bandwidth / self.bandwidth)


def squared_norms(x: X) -> Floats:
    """||x||^2 of the rows of x, features not seen yet included."""
    return x.squared_norms() if isinstance(x, Matrix) else np.array([x.squared_norm()])


def columns_of(x: X, features: int) -> Floats | Csr:
    """x as columns (features, rows), dense or CSC; features beyond are left out."""
    rows = x.rows
    values = x.values if isinstance(x, Matrix) else x.values[None, :]
    if len(rows) and rows.max() >= features:
        known = rows < features
        rows, values = rows[known], values[:, known]
    if not isinstance(values, np.ndarray):
        coordinates = values.tocoo()
        at = (rows[coordinates.coords[1]], coordinates.coords[0])
        return sparse.csc_array((coordinates.data, at), shape=(features, values.shape[0]))
    columns = np.zeros((features, values.shape[0]))
    columns[rows] = values.T
    return columns


SupportMark = tuple[RowsMark, Floats, Floats, int]


class Support:
    """The rows that a kernel is taken with, and their squared norms."""

    def __init__(self, kernel: KernelFunction) -> None:
        self.kernel = kernel
        self.rows: Rows = Rows()
        self.norms: Floats = np.zeros(0)
        self.scales: Floats = np.zeros(0)
        self.features: int = 0

    def __len__(self) -> int:
        return self.rows.count

    def append(self, x: X, scale: float = 1.0) -> None:
        """The rows of x join, each to count `scale` squared times."""
        values = x.values if isinstance(x, Matrix) else x.values[None, :]
        self.rows.extend(x.rows, values)
        self.norms = np.concatenate((self.norms, squared_norms(x)))
        self.scales = np.concatenate((self.scales, np.full(values.shape[0], scale)))
        if len(x.rows):
            self.features = max(self.features, int(x.rows.max()) + 1)

    def mark(self) -> SupportMark:
        return self.rows.mark(), self.norms, self.scales, self.features

    def rewind(self, mark: SupportMark) -> None:
        rows, self.norms, self.scales, self.features = mark
        self.rows.rewind(rows)

    def keep(self, count: int) -> None:
        self.rows.keep(count)
        self.norms, self.scales = self.norms[:count].copy(), self.scales[:count].copy()

    def cross(self, x: X) -> Floats:
        """K_x (support, rows of x), rows times their scales."""
        dots = self.rows.matrix(self.features) @ columns_of(x, self.features)
        return self.scales[:, None] * self.kernel(_dense(dots), self.norms, squared_norms(x))

    def scaled_rows(self, features: int) -> Csr:
        """The rows times their scales, one column for each of so many features."""
        return self.rows.matrix(features).multiply(self.scales[:, None])

    def gram(self) -> Floats:
        """K of the support with itself, rows and columns times their scales."""
        matrix = self.rows.matrix(self.features)
        K = self.kernel(_dense(matrix @ matrix.T), self.norms, self.norms)
        return self.scales[:, None] * K * self.scales


def _dense(array: Floats | Csr) -> Floats:
    return array if isinstance(array, np.ndarray) else array.toarray()


class Dual:
    """The rows, their targets, and K in a `Resolvent`. A target that joins later is 0 on earlier rows: nothing to
    do.
    """

    def __init__(self, support: Support, psi: Rows, rho: float | None = None) -> None:
        self.support = support
        self.psi = psi
        self.resolvent: Resolvent = Resolvent() if rho is None else Resolvent.of(support.gram(), rho)

    def mark(self) -> ResolventMark:
        return self.resolvent.mark()

    def rewind(self, mark: ResolventMark) -> None:
        self.resolvent.rewind(mark)

    def predict(self, x: X, columns: Ints, targets: int, rho: float) -> Floats:
        """g (rows of x, targets asked)."""
        cross = self.resolvent.pad(self.support.cross(x))
        psi = self.psi.matrix(targets)
        if cross.shape[1] <= len(columns):
            alpha = self.resolvent.solve(rho, cross)[: len(self.support)]
            return (psi.T @ alpha)[columns].T
        right = self.resolvent.pad(_dense(psi[:, columns]))
        g: Floats = times(cross.T, self.resolvent.solve(rho, right))
        return g

    def alpha(self, x: X, rho: float) -> Floats:
        """alpha(x) of Eq. (8), one column for each row of x."""
        return self.resolvent.solve(rho, self.resolvent.pad(self.support.cross(x)))[: len(self.support)]

    def learn(self, x: X, columns: Ints, values: Floats, rho: float, scale: float = 1.0) -> None:
        """The rows of x join, scale^2 times, with targets `values` in `columns`; then the ridge is rho."""
        cross = scale * self.support.cross(x)
        own = Support(self.support.kernel)
        own.append(x, scale)
        self.resolvent.border(cross, own.gram(), rho)
        self.support.append(x, scale)
        values = scale * values
        self.psi.extend(columns, values)

    def weights(self, T: Floats, rho: float) -> Floats:
        """W (features, functionals) such that T g(x) = x' W, for the linear kernel and T (functionals, targets)."""
        right = self.resolvent.pad(_dense(self.psi.matrix(T.shape[1]) @ T.T))
        solved = self.resolvent.solve(rho, right)[: len(self.support)]
        scaled = self.support.scales[:, None] * solved
        return self.support.rows.matrix(self.support.features).T @ scaled
