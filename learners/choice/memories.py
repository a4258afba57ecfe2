"""How long rewards are remembered: one share that is forgotten, or several side by side, trusted by what they foretell.

Each memory is a `Bilinear` that forgets another share phi of its precision. On every reward r of a pair, before the step,

    l_k = log(1 + e^s_k) - r s_k,      v_k <- v_k e^-l_k,      v <- (1 - a) v / sum v + a / K,      a = `SWITCH`

and the score of an item is sum_k v_k s_k. Rewards that stay the same are known best by who forgets nothing, those that
change by who forgets fast; the share a lets the best one change (Herbster and Warmuth 1998). One memory has v = 1.
"""

from collections.abc import Sequence

import numpy as np

from ..instances import Floats, Ints
from ..json_types import Json
from ..kernel.elementary import exp_of, log_of, total
from ..weights.base import Arrays
from .bilinear import PRIOR, Bilinear

AUTO = (0.01, 0.001, 0.0)
SWITCH = 1e-3

MemoriesMark = tuple[list[tuple[int, int]], Floats]


class Memories:
    """The weights of a choice. `trust` is v."""

    def __init__(self, forget: Sequence[float], prior: float = PRIOR) -> None:
        self.each = [Bilinear(prior, share) for share in forget]
        self.trust: Floats = np.full(len(self.each), 1.0 / len(self.each))

    @property
    def rows(self) -> int:
        """Contexts, and the constant."""
        return self.each[0].rows

    @property
    def columns(self) -> int:
        """Features of items, and ids."""
        return self.each[0].columns

    def grow(self, rows: int, columns: int) -> None:
        """Room for what has joined."""
        for one in self.each:
            one.grow(rows, columns)

    def along(self, rows: Ints, x: Floats, columns: Ints) -> Floats:
        """x' W on the named columns, of all memories."""
        if len(self.each) == 1:
            return self.each[0].along(rows, x, columns)
        mixed = np.zeros(len(columns))
        for trust, one in zip(self.trust.tolist(), self.each, strict=True):
            mixed += trust * one.along(rows, x, columns)
        return mixed

    def at(self, rows: Ints, column: int) -> Floats:
        """The weights of one column."""
        mixed = np.zeros(len(rows))
        for trust, one in zip(self.trust.tolist(), self.each, strict=True):
            mixed += trust * one.weights[rows, column]
        return mixed

    def step(
        self, rows: Ints, x: Floats, columns: Ints, a: Floats, reward: float, weight: float = 1.0
    ) -> None:
        """Learn that the pair earned `reward`, in [0, 1]."""
        if len(self.each) > 1:
            self.trust = self._trusted(rows, x, columns, a, reward)
        for one in self.each:
            one.step(rows, x, columns, a, reward, weight)

    def _trusted(self, rows: Ints, x: Floats, columns: Ints, a: Floats, reward: float) -> Floats:
        scores = [total(one.along(rows, x, columns) * a) for one in self.each]
        losses = [softplus(s) - reward * s for s in scores]
        least = min(losses)
        v = self.trust * np.array([exp_of(least - loss) for loss in losses])
        trusted: Floats = (1.0 - SWITCH) * (v / total(v)) + SWITCH / len(v)
        return trusted

    def mark(self) -> MemoriesMark:
        """What `rewind` needs to take back all that follows."""
        return [one.mark() for one in self.each], self.trust

    def rewind(self, mark: MemoriesMark) -> None:
        """As at the mark."""
        marks, self.trust = mark
        for one, own in zip(self.each, marks, strict=True):
            one.rewind(own)

    def describe(self) -> list[Json]:
        """How much each memory is trusted."""
        return [
            {"forget": one.forget, "weight": v} for one, v in zip(self.each, self.trust.tolist(), strict=True)
        ]

    def arrays(self) -> Arrays:
        """The weights and their precision; of several memories with the number of each."""
        rows, columns = self.rows, self.columns
        state: Arrays = {}
        for k, one in enumerate(self.each):
            state[named("weights", k)] = one.weights[:rows, :columns]
            state[named("precision", k)] = one.precision[:rows, :columns]
        return state | ({"trust": self.trust} if len(self.each) > 1 else {})

    def restore(self, arrays: Arrays) -> None:
        """All as it was."""
        shape = arrays["weights"].shape
        for k, one in enumerate(self.each):
            weights, precision = arrays[named("weights", k)], arrays[named("precision", k)]
            if weights.shape != shape or precision.shape != shape or len(shape) != 2:
                raise ValueError("weights and their precision differ in shape")
            if not (precision > 0.0).all():
                raise ValueError("a precision is not above 0")
            fresh = Bilinear(one.prior, one.forget)
            fresh.grow(*shape)
            fresh.weights[: shape[0], : shape[1]] = weights
            fresh.precision[: shape[0], : shape[1]] = precision
            self.each[k] = fresh
        if len(self.each) > 1:
            trust = np.array(arrays["trust"])
            if trust.shape != (len(self.each),) or not (trust > 0.0).all():
                raise ValueError("the trust in the memories is not above 0")
            self.trust = trust

    def nbytes(self) -> int:
        """Memory taken."""
        return 16 * len(self.each) * self.rows * self.columns


def named(name: str, k: int) -> str:
    """Of the first memory as of one alone."""
    return f"{name}/{k}" if k else name


def softplus(s: float) -> float:
    """log(1 + e^s)."""
    return max(s, 0.0) + log_of(1.0 + exp_of(-abs(s)))
