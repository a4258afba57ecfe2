"""p-norm links: margins in the l1 norm and in the group (2, 1) norm, Algorithm 3.

psi(W) = 1/2 ||W||_r^2, r = q / (q - 1), q = max(2, log p), and W = (grad psi)^-1(theta) = grad 1/2 ||theta||_q^2:

    l1     W_jk = theta_jk (|theta_jk| / N)^(q - 2),    N = ||theta||_q over all entries,   p = features x labels
    group  W_j  = theta_j (||theta_j||_2 / N)^(q - 2),  N = ||(||theta_j||_2)_j||_q,         p = features

p is rounded down to a power of two, so that q is renewed only when that doubles: the theorem holds for every fixed q.
Between two renewals a round costs what it touches. With a = theta / ref, ref a power of two,

    l1     w_jk = a_jk |a_jk|^(q - 2),       S = sum |a_jk|^q,         t_k = F sum_j x_j w_jk
    group  f_j = (||theta_j||_2 / ref)^(q - 2),  S = sum (||theta_j|| / ref)^q,  t_k = F / ref sum_j x_j f_j theta_jk

where F = ref S^(-(q - 2) / q). A step renews w, or f, where it changed theta, and S by the difference. `drift` bounds the
relative error that S adds up; above TOLERANCE, S is summed afresh, and where it leaves RANGE, ref is chosen anew. For p < 8
the link is the identity.
"""

from typing import Any

import numpy as np

from .. import kernel
from ..growth import grown
from ..instances import Floats, Ints, Matrix, Vector
from ..kernel import exp_of, log_of, times, total
from ..kernel.powers import power
from .base import Arrays, Counters, X
from .linear import Linear

__all__ = ["PNorm", "dual_exponent", "round_down"]

TOLERANCE, ROUNDING = 1e-11, 2.0**-48  # a power has some bits less than a sum
RANGE = 2.0**400  # S stays within 1 / RANGE .. RANGE: no power of an entry overflows


def round_down(count: int) -> int:
    """The largest power of two not above it; 0 of 0."""
    return 1 << count.bit_length() - 1 if count else 0


def dual_exponent(p: int) -> float:
    """q = max(2, log p): r = log p / (log p - 1) breaks for p <= e and passes 2 below p = 8."""
    return max(2.0, log_of(float(p))) if p > 0 else 2.0


class PNorm(Linear):
    """theta with its link. w, or f, are functions of theta, ref and q alone: they are not saved."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.group: bool = norm == "group"
        self.q: float = 2.0
        self.ref: float = 0.0  # 0 where the link is the identity, or all weights are 0
        self.S = 0.0
        self.drift: float = 0.0
        self._w = kernel.Weights()  # of l1
        self._norms: Floats = np.zeros(0)  # of group: ||theta_j|| / ref, and f
        self._f: Floats = np.zeros(0)

    @property
    def N(self) -> float:
        """||theta||_q, inner norms as the link has them."""
        return self.ref * exp_of(log_of(self.S) / self.q) if self.S > 0.0 else 0.0

    @property
    def reach(self) -> float:
        """||x||_q <= reach ||x||_inf, p^(1/q): what the theorems' R is multiplied by."""
        p = self.features if self.group else self.features * self.labels
        return exp_of(log_of(float(p)) / self.q) if p else 1.0

    def _exponent(self) -> float:
        return dual_exponent(round_down(self.features if self.group else self.features * self.labels))

    def grow(self, features: int, labels: int) -> None:
        """Zero rows and columns for what is new; q follows p."""
        super().grow(features, labels)
        self._fit()
        if self._exponent() != self.q:
            self.q = self._exponent()
            self._renew()

    def _fit(self) -> None:
        if self.group:
            self._norms, self._f = grown(self._norms, self.features), grown(self._f, self.features)
        elif (self.features, self.labels) != (self._w.features, self._w.labels):
            self._w.grow(self.features, self.labels)

    def mark(self) -> Any:
        return super().mark(), (self.q, self.ref, self.S, self.drift)

    def rewind(self, mark: Any) -> None:
        super().rewind(mark[0])
        before, self.q = self.q, mark[1][0]
        if not self.group:
            self._w.shrink(self.features, self.labels)
        _, self.ref, self.S, self.drift = mark[1]
        self._norms[self.features :] = self._f[self.features :] = 0.0
        if self.q != before:
            self._powers()

    # ---- what follows from theta

    def _sizes(self, block: Floats) -> Floats:
        """|a| of the entries, or ||a_j|| of the rows; each row scaled by its largest entry, so that no square overflows."""
        sizes: Floats = np.abs(block) / self.ref
        if not self.group:
            return sizes
        if sizes.shape[1] == 1:
            return sizes[:, 0]
        top: Floats = sizes.max(axis=1, initial=0.0)
        sizes /= np.where(top > 0.0, top, 1.0)[:, None]
        # From the first to the last: a column of zeros that joins at the end changes no bit.
        return np.asarray(top * np.sqrt(times(sizes * sizes, np.ones(sizes.shape[1]))))

    def _powers(self) -> None:
        """w, or f, of all theta."""
        if self.ref == 0.0:
            return
        theta = self.theta[: self.features]
        sizes = self._sizes(theta)
        if self.group:
            self._norms[: self.features] = sizes
            self._f[: self.features] = power(sizes, self.q - 2.0)
        else:
            self._w.theta[:] = self._signed(theta, sizes)

    def _signed(self, theta: Floats, sizes: Floats) -> Floats:
        """a |a|^(q - 2)."""
        return np.copysign(power(sizes, self.q - 1.0), theta)

    def _renew(self) -> None:
        """ref, w or f, and S from theta alone; the identity needs none of them."""
        theta = self.theta[: self.features]
        top = float(np.abs(theta).max(initial=0.0))
        self.ref = float(np.ldexp(1.0, int(np.frexp(top)[1]))) if top > 0.0 and self.q > 2.0 else 0.0
        self.S = self.drift = 0.0
        if self.ref > 0.0:
            self._powers()
            self._sum_afresh()

    def _sum_afresh(self) -> None:
        sizes = self._norms[: self.features] if self.group else np.abs(self.theta[: self.features] / self.ref)
        self.S = total(power(np.ascontiguousarray(sizes).ravel(), self.q))
        self.drift = ROUNDING * self.S

    def _follow(self, rows: Ints, columns: Ints, old: Floats) -> None:
        """w, or f, and S after theta[rows, columns] was `old` (of group: the rows' norms)."""
        places = (rows[:, None], columns)
        theta = self.theta[rows] if self.group else self.theta[places]
        if self.ref == 0.0:
            if theta.any():
                self._renew()
            return
        new = self._sizes(theta)
        self._store(rows, places, theta, new)
        with np.errstate(over="ignore", invalid="ignore"):  # then S leaves its range, and is taken anew
            delta = total((power(new, self.q) - power(old, self.q)).ravel())
        self.S += delta
        self.drift += ROUNDING * (abs(self.S) + abs(delta))
        if not 1.0 / RANGE <= self.S <= RANGE:
            self._renew()
        elif self.drift > TOLERANCE * self.S:
            self._sum_afresh()

    def _store(self, rows: Ints, places: Any, theta: Floats, sizes: Floats) -> None:
        if self.group:
            self._norms[rows] = sizes
            self._f[rows] = power(sizes, self.q - 2.0)
        else:
            self._w.theta[places] = self._signed(theta, sizes)

    # ---- scores and steps

    def _factor(self) -> float:
        """F."""
        if self.S <= 0.0:
            return self.ref
        return self.ref * exp_of(-(self.q - 2.0) / self.q * log_of(self.S))

    def block(self, rows: Ints) -> Floats:
        """The rows of W = link(theta)."""
        if self.ref == 0.0:
            return self.theta[rows]
        if self.group:
            return self.theta[rows] * (self._f.take(rows) * (self._factor() / self.ref))[:, None]
        return self._w.take(rows) * self._factor()

    def scores(self, x: X) -> Floats:
        """t = W x, or X w, W = link(theta)."""
        if isinstance(x, Matrix) or self.ref == 0.0:
            return super().scores(x)
        if self.group:
            t: Floats = self.kernel.scores(Vector(x.rows, x.values * self._f.take(x.rows)))
            return t * (self._factor() / self.ref)
        return self._w.scores(x) * self._factor()

    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta * gradient, and what follows from it."""
        rows = x.rows
        columns = np.zeros(1, dtype=np.intp) if isinstance(x, Matrix) else g.nonzero()[0]
        places = (rows[:, None], columns)
        before, state = self.theta[places], (self.ref, self.S, self.drift)
        if self.group:
            old = self._norms.take(rows)
        else:
            old = np.abs(before) / self.ref if self.ref > 0.0 else before
        try:
            super().step(x, g, eta)
            if self.q > 2.0:
                self._follow(rows, columns, old)
        except BaseException:
            self.theta[places] = before
            self.ref, self.S, self.drift = state
            self._powers()
            raise

    # ---- saving

    def counters(self) -> Counters:
        """What depends on the way: ref, S and its error."""
        return {"ref": self.ref, "S": self.S, "drift": self.drift}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """All as it was."""
        super().restore(arrays, counters)
        self.ref, self.S, self.drift = (float(counters[name]) for name in ("ref", "S", "drift"))
        if not (self.ref >= 0.0 and self.S >= 0.0 and self.drift >= 0.0):
            raise ValueError("the norms of the weights are not numbers of at least 0")
        if self.q > 2.0 and self.ref == 0.0 and self.theta.any():
            raise ValueError("the weights have no scale")
        self._powers()

    def nbytes(self) -> int:
        """Bytes of theta, and of w or f, in use."""
        return super().nbytes() + (16 * self.features if self.group else self._w.nbytes())
