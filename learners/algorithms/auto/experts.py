"""What an expert of the automatic learner is, and the one that climbs the dual.

All experts see the same round: the inputs of one instance, made once, and the target bits Y, one column each.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...growth import columns_for
from ...instances import EMPTY, Floats, Vector
from ...kernel import LookedUp
from ...model import Round
from ...scaling import ScaledVector
from ...weights.base import Arrays, Counters, Savable
from ...weights.linear import Linear
from ..dual_ascent.certified import DualAscent

BIAS_SIZE = 0.2


@dataclass(slots=True)
class Inputs:
    """An instance as the experts see it: u with a small constant (`vector`), and what the scaling knows (`scaled`)."""

    scaled: ScaledVector
    vector: Vector
    kept: dict[str, Any] = field(default_factory=dict)  # what an expert made of it once and needs again

    @classmethod
    def of(cls, x: ScaledVector, bias: int) -> "Inputs":
        values = x.values
        if bias:
            values = values.copy()
            values[0] = BIAS_SIZE
        return cls(x, LookedUp(x.rows, values, x.unseen))


@dataclass(slots=True)
class Target:
    """The truth of a round: Y, one number a column, the columns that are relevant, and how often the event counts.

    `errors` are Y - p, p the pool's probabilities.
    """

    Y: Floats
    relevant: npt.NDArray[np.bool_]
    weight: float = 1.0
    only: int | None = None  # the column, where it is one
    errors: Floats = field(default_factory=lambda: EMPTY)


class Expert(Savable):
    """One learner of the pool. Its log-odds are `scale` times its scores."""

    name: str
    scale: float
    kind: int  # what the kernel calls it
    # False once it has left for good: too many features.
    present = True

    @abstractmethod
    def grow(self, features: int, columns: int) -> None:
        """Make room for what has joined."""

    @abstractmethod
    def scores(self, inputs: Inputs) -> Floats:
        """One score a column."""

    @abstractmethod
    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        """One step: every feature of `inputs` is known; `s` are the scores of `scored`."""

    @abstractmethod
    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        """What the scores are sums of: a row for each active feature, the constant part, the random features' part."""

    @abstractmethod
    def mark(self) -> Any:
        """What `rewind` needs to take back all that happens after it."""

    @abstractmethod
    def rewind(self, mark: Any) -> None:
        """All as it was at the mark."""

    def fused(self) -> tuple[Any, ...] | None:
        """What the kernel's round needs of it: present, scale, a setting, and its parts."""
        return None

    def reset(self) -> None:
        """Forget what was learned: the world has changed. An expert that follows by itself keeps its weights."""
        return

    @abstractmethod
    def nbytes_for(self, features: int, columns: int) -> int:
        """Memory that so many features and columns take."""


class DualAscentExpert(Expert):
    """Dual ascent on u, C = 1: update III where one label is right, else every bit by itself.

    W <- W + u alpha';  bits: alpha_k = sigma_k clip((1 - sigma_k s_k) / ||u||^2, 0, C), sigma = 2 Y - 1
    """

    name = "dual-ascent"
    kind = 0
    scale = 4.0

    def __init__(self, bits: bool) -> None:
        self.bits = bits
        self.weights = Linear()
        self.ascent = DualAscent("III", 1.0, 1.0)
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

    def nbytes_for(self, features: int, columns: int) -> int:
        return 8 * features * columns_for(columns)
