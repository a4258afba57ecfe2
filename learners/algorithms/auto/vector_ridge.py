"""Ridge regression on a vector, block by block: recursive least squares whose P has blocks alone.

    q_b = P_b u_b,  c = 1 / w + sum_b <u_b, q_b>,  R += (q / c) (Y - R' u)',  P_b -= q_b q_b' / c,  P_b = I / 0.3 at first

One block up to 384 numbers, where it is the ridge itself; above, blocks of at most 256, which share what is left to fit.
With more than 2,048 numbers, or 2^20 weights, it does not take part, so that no event takes a millisecond longer.
"""

from typing import Any

import numpy as np

from ...growth import columns_for
from ...instances import Floats
from ...kernel import add_outer, times
from ...weights.base import Arrays, Counters
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Inputs, Target
from .vector_expert import VectorExpert

RIDGE = 0.3
WHOLE, BLOCK, WEIGHTS = 384, 256, 2**20


class VectorRidge(VectorExpert):
    """See above."""

    size: int

    name = "vector-ridge"
    scale: float = 4.0
    widest = 2_048

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.shift: float = 0.5 if setting.bits else 0.0
        self._spare: Floats = np.zeros((0, 0, 0))
        self._marked: Floats | None = None

    def start(self) -> None:
        count = 1 if self.width <= WHOLE else -(-self.width // BLOCK)
        self.size = -(-self.width // count)
        self.P: Floats = np.zeros((count, self.size, self.size))
        self.P[:] = np.eye(self.size) / RIDGE
        self.R: Floats = np.zeros((count * self.size, columns_for(self.labels)))

    def grow(self, features: int, columns: int) -> None:
        if self.present and not self.stays(features, columns):
            self.present = False
            self.P, self.R, self._spare = np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros((0, 0, 0))
        super().grow(features, columns)

    def stays(self, features: int, columns: int) -> bool:
        return self.width * columns <= WEIGHTS

    def widen(self, columns: int) -> None:
        kept = min(columns, self.labels)
        R = np.zeros((len(self.R), columns_for(columns)))
        R[:, :kept] = self.R[:, :kept]
        self.R = R

    def mark(self) -> Any:
        self._marked = self.P if self.present else None
        return super().mark()

    def _padded(self, u: Floats) -> Floats:
        return np.concatenate((u, np.zeros(len(self.R) - len(u)))) if len(self.R) > len(u) else u

    def scores(self, inputs: Inputs) -> Floats:
        u = self.unit(inputs)
        if u is None:
            return np.zeros(self.labels)
        fit = inputs.kept["fit of vector"] = times(self._padded(u), self.R)[: self.labels]
        return np.asarray(fit - self.shift)

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        u = self.unit(inputs)
        if u is None:
            return
        x = self._padded(u)
        fit = inputs.kept.get("fit of vector")
        miss = target.Y - (times(x, self.R)[: self.labels] if fit is None else fit)
        pieces = x.reshape(len(self.P), self.size)
        q = np.stack([times(piece, P) for piece, P in zip(pieces, self.P, strict=True)])
        c = 1.0 / target.weight + max(times(x, q.ravel()), 0.0)
        R = self.R.copy()
        R[:, : self.labels] += np.multiply.outer(q.ravel() / c, miss)
        P = self.P
        if P is self._marked:  # the way back until the event is over; its memory is used again
            P = self._spare if self._spare.shape == P.shape else np.empty_like(P)
            P[:] = self.P
            self._spare = self.P
        for block, part in zip(P, q, strict=True):
            add_outer(block, -1.0 / c, part[:, None])
        self.R, self.P = R, P

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        nothing = np.zeros(self.labels)
        u = self.unit(inputs)
        if u is None:
            return np.zeros((len(inputs.scaled.rows), self.labels)), nothing, nothing
        block = self.R[: self.width, : self.labels] * u[:, None]
        return self.spread(inputs, block), nothing - self.shift, nothing

    def arrays(self) -> Arrays:
        if not self.present:
            return {}
        return {"P": self.P, "R": self.R[:, : self.labels]}

    def counters(self) -> Counters:
        return {}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("the ridge does not fit the vector and the labels")
        if self.present:
            self.P[:] = arrays["P"]
            self.R[:, : self.labels] = arrays["R"]

    def nbytes_for(self, features: int, columns: int) -> int:
        if not self.present or not self.stays(features, columns):
            return 0
        return 8 * len(self.R) * (2 * self.size + 2 * columns_for(columns))


register_expert(ExpertEntry("vector-ridge", VectorRidge, trust=0.1))
