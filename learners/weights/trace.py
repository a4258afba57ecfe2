"""The trace norm: margins for weights of low rank, Algorithm 3.

psi(W) = 1/2 ||W||_r^2 of the singular values, r = q / (q - 1), and with theta = U diag(sigma) V'

    W = U diag(sigma^(q - 1) / N^(q - 2)) V' = theta M,    M = V diag((sigma / N)^(q - 2)) V',    N = ||sigma||_q

q = max(2, log min(labels, p)), p the features rounded down to a power of two. So scores are t = M theta' x: only G = theta'
theta, labels x labels, has to be decomposed, G = V diag(sigma^2) V'. A step changes it by its own products,

    b = theta' x,   G <- G - eta (b g' + g b') + eta^2 |x|^2 g g'

and every AFRESH steps it is multiplied out anew. M is made from G when it is asked for (eigen.py). Features that join
behind the FEATURES-th have no weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..instances import Floats, Ints, Matrix, Vector
from ..kernel import exp_of, log_of, times, total
from ..kernel.powers import power
from .base import Arrays, Counters, X
from .eigen import eigen
from .linear import Linear
from .links import dual_exponent, round_down

__all__ = ["FEATURES", "LABELS", "TraceNorm"]

LABELS, FEATURES = 512, 4096
ROOM = f"norm: trace has room for {LABELS} labels"
AFRESH = 256


class TraceNorm(Linear):
    """theta, and G beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.q: float = 2.0
        self.steps: int = 0
        self.G: Floats = np.zeros((0, 0))
        self._M: Floats | None = None

    @property
    def reach(self) -> float:
        """||X||_q <= reach ||X||_op, min(d, p)^(1/q): what the theorems' R is multiplied by."""
        p = min(self.features, self.labels)
        return exp_of(log_of(float(p)) / self.q) if p else 1.0

    def grow(self, features: int, labels: int) -> None:
        """Zero rows and columns for what is new, up to what can be decomposed while others wait."""
        if labels > LABELS:
            raise InputError(ROOM)
        features = min(features, FEATURES)
        super().grow(features, labels)
        if labels > len(self.G):
            G = np.zeros((labels, labels))
            G[: len(self.G), : len(self.G)] = self.G
            self.G, self._M = G, None
        q = dual_exponent(min(labels, round_down(features)))
        if q != self.q:
            self.q, self._M = q, None

    def mark(self) -> Any:
        return super().mark(), self.q, self.G, self.steps

    def rewind(self, mark: Any) -> None:
        super().rewind(mark[0])
        _, self.q, self.G, self.steps = mark
        self._M = None

    def _link(self) -> Floats | None:
        """M; None for the identity."""
        if self.q == 2.0 or not self.G.any():
            return None
        if self._M is None:
            squares, V = eigen(self.G)
            sigma = np.sqrt(np.maximum(squares, 0.0))
            top = float(sigma.max())
            N = top * exp_of(log_of(total(power(sigma / top, self.q))) / self.q)
            self._M = times(V * power(np.minimum(sigma / N, 1.0), self.q - 2.0), np.ascontiguousarray(V.T))
        return self._M

    def block(self, rows: Ints) -> Floats:
        """The rows of W."""
        M, known = self._link(), rows < self.features
        if known.all():
            theta = super().block(rows)
            return theta if M is None else times(theta, M)
        W = np.zeros((len(rows), self.labels))
        W[known] = self.block(rows[known])
        return W

    def scores(self, x: X) -> Floats:
        """t = M theta' x."""
        t = super().scores(self._known(x))
        M = self._link()
        return t if M is None else times(M, t)

    @staticmethod
    def _known(x: X) -> Vector:
        """x on the features that have room."""
        if isinstance(x, Matrix):
            raise TypeError("the trace norm is for labels of one vector, not for a list of items")
        known = x.rows < FEATURES
        return x if known.all() else Vector(x.rows[known], x.values[known])

    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta (x outer g), and G with it."""
        vector = self._known(x)
        columns = g.nonzero()[0]
        places = (vector.rows[:, None], columns)
        before, b = self.theta[places], self.kernel.scores(vector)
        try:
            super().step(vector, g, eta)
            if (self.steps + 1) % AFRESH:
                moved, square = eta * g, total(vector.values * vector.values)
                cross = np.multiply.outer(b, moved)
                G = self.G - (cross + cross.T) + square * np.multiply.outer(moved, moved)
            else:
                theta = np.ascontiguousarray(self.theta[: self.features])
                G = times(np.ascontiguousarray(theta.T), theta)
                G = 0.5 * (G + G.T)
        except BaseException:
            self.theta[places] = before
            raise
        self.G, self._M, self.steps = G, None, self.steps + 1

    def arrays(self) -> Arrays:
        return super().arrays() | {"G": self.G}

    def counters(self) -> Counters:
        return {"steps": self.steps}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """All as it was."""
        super().restore(arrays, counters)
        G = arrays["G"]
        if G.shape != (self.labels, self.labels) or not np.array_equal(G, G.T):
            raise ValueError("the products of the weights do not fit them")
        self.G, self._M, self.steps = G.copy(), None, int(counters["steps"])

    def nbytes(self) -> int:
        return super().nbytes() + 8 * self.labels * self.labels
