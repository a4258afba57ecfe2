"""What an expert of the automatic learner is.

All experts see the same round: the inputs of one instance, made once, and the target bits Y, one column each.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...instances import EMPTY, Floats, Ints, Vector
from ...kernel import LookedUp, total
from ...scaling import ScaledVector
from ...weights.base import Savable

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

    def words(self) -> tuple[Ints, Floats, float]:
        """The rows of the words (sparse, u above 0), u on them, and the sum of u over them and those not seen yet."""
        if "words" not in self.kept:
            x = self.scaled
            words = (x.values > 0.0) > x.dense
            values = x.values[words]
            size = total(values) + (total(np.maximum(x.unseen, 0.0)) if len(x.unseen) else 0.0)
            self.kept["words"] = x.rows[words], values, size
        words_of: tuple[Ints, Floats, float] = self.kept["words"]
        return words_of


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
    kind = -1  # what the kernel calls it; below 0, it has no round there and is scored by its pieces
    # False once it has left for good: too many features.
    present = True

    def place(self, first: int, width: int) -> None:
        """The parts of a vector are in these rows from now on; none are where `width` is 0."""
        return

    def stays(self, features: int, columns: int) -> bool:
        """Whether it still takes part with so many: what leaves as it grows says so before."""
        return True

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

    def fused(self) -> tuple[Any, ...]:
        """What the kernel's round needs of it: present, scale, a setting, and its parts."""
        return self.present, self.scale, 0.0

    def reset(self) -> None:
        """Forget what was learned: the world has changed. An expert that follows by itself keeps its weights."""
        return

    def nbytes(self, features: int, columns: int) -> int:
        """Memory that it takes now, of so many features and columns."""
        return self.nbytes_for(features, columns)

    @abstractmethod
    def nbytes_for(self, features: int, columns: int) -> int:
        """Memory that so many features and columns take at most."""
