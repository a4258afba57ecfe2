"""p-norm links: margins in the l1 norm and in the group (2, 1) norm, Algorithm 3.

psi(W) = 1/2 ||W||_r^2, r = q / (q - 1), q = max(2, log p), and W = (grad psi)^-1(theta) = grad 1/2 ||theta||_q^2:

    l1     W_jk = theta_jk (|theta_jk| / N)^(q - 2),    N = ||theta||_q over all entries,   p = features x labels
    group  W_j  = theta_j (||theta_j||_2 / N)^(q - 2),  N = ||(||theta_j||_2)_j||_q,         p = features

The ratios are at most 1, so no power overflows as p grows; for p < 8 the link is the identity.
"""

import numpy as np

from ..growth import grown
from ..instances import Floats, Ints, Matrix
from ..kernel import exp_of, log_of, times
from ..kernel.powers import power
from .base import Arrays, Counters, X
from .linear import Linear


def dual_exponent(p: int) -> float:
    """q = max(2, log p): r = log p / (log p - 1) breaks for p <= e and passes 2 below p = 8."""
    return max(2.0, log_of(float(p))) if p > 0 else 2.0


class PNorm(Linear):
    """theta with its link. The norms of the rows and N are kept as theta changes, so that scores cost O(active).

    A step renews the active rows and N, O(active x labels + features); a new feature or label changes q, and with it,
    under l1, every row's norm. They are functions of theta and q alone, the same bits however they came about, so they
    are not saved.
    """

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.group = norm == "group"
        self.q = 2.0
        self.N = 0.0
        self._norms: Floats = np.zeros(0)

    def grow(self, features: int, labels: int) -> None:
        """Zero rows and columns for what is new; q follows p."""
        super().grow(features, labels)
        self._norms = grown(self._norms, features)
        q = dual_exponent(features if self.group else features * labels)
        if q != self.q:
            self.q = q
            self._renew(np.empty(0, dtype=np.intp) if self.group else None)

    def rewind(self, mark: tuple[int, int]) -> None:
        super().rewind(mark)
        self.q = dual_exponent(self.features if self.group else self.features * self.labels)
        self._norms[self.features :] = 0.0
        self._renew(None)

    def _renew(self, rows: Ints | None) -> None:
        """The norms of `rows` (None: of all), and N."""
        if rows is None:
            self._norms[: self.features] = self._row_norms(self.theta[: self.features])
        elif rows.size:
            self._norms[rows] = self._row_norms(self.theta[rows])
        norms = self._norms[: self.features]
        top = norms.max(initial=0.0)
        self.N = 0.0
        if top > 0.0:
            self.N = float(top) * exp_of(log_of(float(power(norms / top, self.q).sum())) / self.q)

    def _row_norms(self, block: Floats) -> Floats:
        """||theta_j||_2, or ||theta_j||_q under l1, each row scaled by its largest entry."""
        sizes: Floats = np.abs(block)
        if sizes.shape[1] == 1:
            return sizes[:, 0]
        q = 2.0 if self.group else self.q
        top: Floats = sizes.max(axis=1, initial=0.0)
        sizes /= np.where(top > 0.0, top, 1.0)[:, None]
        if q == 2.0:
            # From the first to the last: a column of zeros that joins at the end changes no bit.
            return np.asarray(top * np.sqrt(times(sizes * sizes, np.ones(sizes.shape[1]))))
        return top * power(power(sizes, q).sum(axis=1), 1.0 / q)

    def block(self, rows: Ints) -> Floats:
        """The rows of W = link(theta)."""
        theta = self.theta[rows]
        if self.N == 0.0 or self.q == 2.0:
            return theta
        sizes = self._norms.take(rows)[:, None] if self.group else np.abs(theta)
        # N comes from rounded powers: a single entry may exceed it by a last bit.
        return theta * power(np.minimum(sizes / self.N, 1.0), self.q - 2.0)

    def scores(self, x: X) -> Floats:
        """t = W x, or X w, W = link(theta)."""
        if isinstance(x, Matrix):
            return super().scores(x)
        return times(x.values, self.block(x.rows)) if len(x.rows) else np.zeros(self.labels)

    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta * gradient, and what follows from it."""
        before = self.theta[x.rows]
        try:
            super().step(x, g, eta)
            self._renew(x.rows)
        except BaseException:
            self.theta[x.rows] = before
            self._renew(None)
            raise

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """theta as it was, and what follows from it."""
        super().restore(arrays, counters)
        self._renew(None)
