"""Entropic dual ascent on words: multiplicative steps, so that few words may say much (Shalev-Shwartz and Singer).

    w_jk = u_jk / Z_k,  Z_k = sum_j u_jk,  s_k = sum_j x_j w_jk     over at least 50,000 features, u = 1 at the start
    u_jr <- u_jr e^(tau x_j),  u_js <- u_js e^(-tau x_j)            tau in [0, C], C = 5: the margin is gamma = .0002

r is the lowest label that is right, s the highest other one: update II, whenever s_r - s_s < gamma. x are the words of the
inputs, as in naive Bayes. Kept are d = u - 1, 0 for a pair that no step has touched, and D_k, the sum of d: how a step is
solved is in kernel/entropy.py. Bits have no pair; there it takes no part.
"""

from typing import Any

import numpy as np

from ... import kernel
from ...growth import columns_for, grown
from ...instances import Floats, Vector
from ...kernel import total
from ...weights.base import Arrays, Counters
from ...weights.linear import BRIEF_IN_POOL
from ...weights.stored_rows import restore_stored, stored
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target

C, GAMMA = 5.0, 0.0002
DIMENSION = 50_000


class Entropy(Expert):
    """See above."""

    features: int
    labels: int

    name = "entropy"
    kind = 7
    scale: float = 4.0 / GAMMA

    def __init__(self, setting: Setting) -> None:
        self.present: bool = not setting.bits
        self.features = self.labels = 0
        self._kept = kernel.Weights(brief=BRIEF_IN_POOL)
        self.sums: Floats = np.zeros(0)
        self._before: list[Any] = []

    def grow(self, features: int, columns: int) -> None:
        self.features, self.labels = features, columns
        if self.present:
            self._kept.grow(features, columns)
            self.sums = grown(self.sums, columns)

    def mark(self) -> Any:
        self._before = []
        return self._kept, self.sums.copy(), self.features, self.labels

    def rewind(self, mark: Any) -> None:
        for cells, rows, pair, old in self._before:
            for label, column in zip(pair, old.T, strict=True):
                cells.set_column(rows, label, np.ascontiguousarray(column))
        self._kept, self.sums, self.features, self.labels = mark
        if self.present:
            self._kept.shrink(self.features, self.labels)

    @property
    def _size(self) -> float:
        return float(max(DIMENSION, self.features))

    def _mass(self) -> Floats:
        """Z."""
        mass: Floats = self.sums[: self.labels] + self._size
        return mass

    def scores(self, inputs: Inputs) -> Floats:
        if not self.present:
            return np.zeros(self.labels)
        rows, values, size = inputs.words()
        return np.asarray((self._kept.scores(Vector(rows, values)) + size) / self._mass())

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        rows, values, _ = inputs.words()
        relevant = target.relevant
        if not self.present or not len(rows) or not relevant.any() or relevant.all():
            return
        pair = int(np.where(relevant, s, np.inf).argmin()), int(np.where(relevant, -np.inf, s).argmax())
        if s[pair[0]] - s[pair[1]] >= GAMMA:
            return
        cells, sums, most = self._kept.columns(rows, *pair), self.sums[list(pair)], C * target.weight
        self._before.append((self._kept, rows, pair, cells.copy()))
        kernel.entropic_step(cells, sums, np.arange(len(rows)), values, (0, 1), self._size, most, GAMMA)
        for label, column in zip(pair, cells.T, strict=True):
            self._kept.set_column(rows, label, np.ascontiguousarray(column))
        self.sums[list(pair)] = sums

    def fused(self) -> tuple[Any, ...]:
        return self.present, self.scale, GAMMA, self._kept, self.sums, C, DIMENSION

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        x, nothing = inputs.scaled, np.zeros(self.labels)
        every = np.zeros((len(x.rows), self.labels))
        if not self.present:
            return every, nothing, nothing
        rows, values, size = inputs.words()
        mass = self._mass()
        every[~x.dense & (x.values > 0.0)] = (1.0 + self._kept.take(rows)) * values[:, None] / mass
        return every, (size - total(values)) / mass, nothing

    def arrays(self) -> Arrays:
        return {"cells": stored(self._kept), "sums": self.sums[: self.labels]}

    def counters(self) -> Counters:
        return {}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("the entropic weights do not fit the features and labels")
        restore_stored(self._kept, arrays["cells"])
        if not self._kept.ends()[0] > -1.0 or (arrays["sums"] <= -self._size).any():
            raise ValueError("the entropic weights are not all above 0")
        self.sums[: self.labels] = arrays["sums"]

    def nbytes(self, features: int, columns: int) -> int:
        return self._kept.nbytes() + 8 * columns if self.present else 0

    def nbytes_for(self, features: int, columns: int) -> int:
        return 8 * columns_for(columns) * (features + 1) if self.present else 0


register_expert(ExpertEntry("entropy", Entropy, 0.0))
