"""The expert that climbs the dual."""

from typing import Any

import numpy as np

from ...growth import columns_for
from ...instances import Floats, Vector
from ...model import Round
from ...weights.base import Arrays, Counters
from ...weights.linear import BRIEF_IN_POOL, Linear
from ..dual_ascent.certified import DualAscent
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target


class DualAscentExpert(Expert):
    """Dual ascent on u, C = 1: update III where one label is right, else every bit by itself.

    W <- W + u alpha';  bits: alpha_k = sigma_k clip((1 - sigma_k s_k) / ||u||^2, 0, C), sigma = 2 Y - 1
    """

    name = "dual-ascent"
    kind = 0
    scale: float = 4.0

    def __init__(self, setting: Setting) -> None:
        self.bits: bool = setting.bits
        self.weights: Linear = Linear(brief=BRIEF_IN_POOL)
        self.ascent: DualAscent = DualAscent("III", 1.0, 1.0)
        self._before: tuple[Vector, Floats, Any] | None = None

    def grow(self, features: int, columns: int) -> None:
        self.weights.grow(features, columns)

    def mark(self) -> Any:
        self._before = None
        return self.weights.mark(), self.ascent.sums

    def rewind(self, mark: Any) -> None:
        if self._before is not None:
            self.weights.kernel.cells(*self._before)
        self.weights.rewind(mark[0])
        self.ascent.sums = mark[1]

    def _step(self, inputs: Inputs, g: Floats) -> None:
        # Mostly a handful of labels change: the others need no copy.
        x = inputs.vector
        self._before = x, g, self.weights.kernel.cells(x, g)
        self.weights.step(x, g, 1.0)

    def fused(self) -> tuple[Any, ...]:
        return True, self.scale, 0.0, self.weights.kernel

    def scores(self, inputs: Inputs) -> Floats:
        return self.weights.scores(inputs.vector)

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        if not self.bits:
            grades: Any = target.relevant.astype(np.float64) if target.only is None else target.only
            g = self.ascent.direction(Round(s, grades, scored.vector, self.weights, weight=target.weight))
            if g is not None:
                self._step(inputs, g)
            return
        length = scored.vector.squared_norm()
        if length > 0.0 and len(s):
            sigma = np.where(target.relevant, 1.0, -1.0)
            alpha = sigma * np.minimum(np.maximum((1.0 - sigma * s) / length, 0.0), target.weight)
            self._step(inputs, -alpha)

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        rows = self.weights.contributions(inputs.vector)
        nothing = np.zeros(rows.shape[1])
        return rows, nothing, nothing

    def arrays(self) -> Arrays:
        return self.weights.arrays()

    def counters(self) -> Counters:
        return self.ascent.counters()

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        self.weights.restore(arrays, {})
        self.ascent.restore(counters)

    def nbytes(self, features: int, columns: int) -> int:
        return self.weights.nbytes()

    def nbytes_for(self, features: int, columns: int) -> int:
        return 8 * features * columns_for(columns)


register_expert(ExpertEntry("dual-ascent", DualAscentExpert, 0.5))
