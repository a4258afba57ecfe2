"""Class means of vectors: the label whose mean is nearest. Ahead of all else while every label is rare.

    C_k = sum of u - g over the events of label k,   g the mean of all u,   a_k = 1 / (n_k + 1)
    s_k = 16 (<u - g, a_k C_k> - |a_k C_k|^2 / 2)

n_k is the number of its events, the 1 draws a label with few of them to the mean of all. For bits, the same of all events
without label k is taken off, whose C is -C_k. Kept are plain sums S_k and their squared lengths, so that one product of
u and g with S gives all scores.
"""

import numpy as np

from ...growth import columns_for
from ...instances import Floats
from ...kernel import times
from ...weights.base import Arrays, Counters
from .expert_registry import ExpertEntry, register_expert
from .experts import Inputs, Target
from .vector_expert import VectorExpert

SHARPNESS = 16.0


class ClassMeans(VectorExpert):
    """See above."""

    events: float

    name = "class-means"
    scale: float = 1.0
    widest = 16_384

    def start(self) -> None:
        self.sums: Floats = np.zeros((self.width, columns_for(self.labels)))
        self.squares: Floats = np.zeros(self.labels)
        self.counts: Floats = np.zeros(self.labels)
        self.whole: Floats = np.zeros(self.width)
        self.events = 0.0

    def widen(self, columns: int) -> None:
        kept = min(columns, self.labels)
        sums, both = np.zeros((self.width, columns_for(columns))), np.zeros((2, columns))
        sums[:, :kept] = self.sums[:, :kept]
        both[:, :kept] = self.squares[:kept], self.counts[:kept]
        self.sums, self.squares, self.counts = sums, both[0], both[1]

    def _shares(self) -> tuple[Floats, Floats]:
        """a of each label, and of all without it."""
        own = 1.0 / (self.counts + 1.0)
        return own, 1.0 / (self.events - self.counts + 1.0) if self.bits else np.zeros(self.labels)

    def _lengths(self, along: Floats, size: float) -> Floats:
        """|C_k|^2, of <g, S_k> and <g, g>."""
        n = self.counts
        return np.maximum(self.squares - 2.0 * n * along + n * n * size, 0.0)

    def scores(self, inputs: Inputs) -> Floats:
        u = self.unit(inputs)
        if u is None or not self.labels or not self.events:
            return np.zeros(self.labels)
        g = self.whole / self.events
        both = times(np.stack((u, g)), self.sums)[:, : self.labels]
        size = times(g, g)
        towards = both[0] - both[1] - self.counts * (times(u, g) - size)
        own, others = self._shares()
        constant = 0.5 * (own * own - others * others) * self._lengths(both[1], size)
        return np.asarray(SHARPNESS * ((own + others) * towards - constant))

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        nothing = np.zeros(self.labels)
        u = self.unit(inputs)
        if u is None or not self.labels or not self.events:
            return np.zeros((len(inputs.scaled.rows), self.labels)), nothing, nothing
        g = self.whole / self.events
        C = self.sums[:, : self.labels] - np.multiply.outer(g, self.counts)
        own, others = self._shares()
        lengths = self._lengths(times(g, self.sums)[: self.labels], times(g, g))
        constant = -0.5 * SHARPNESS * (own * own - others * others) * lengths
        return (
            self.spread(inputs, C * (u - g)[:, None] * (SHARPNESS * (own + others))),
            constant,
            nothing,
        )

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        u, w = self.unit(inputs), target.weight
        if u is None:
            return
        along, size = times(u, self.sums), times(u, u)
        squares, counts = self.squares.copy(), self.counts.copy()
        for k in target.relevant.nonzero()[0].tolist():
            self.change(self.sums, k)
            self.sums[:, k] += w * u
            squares[k] += 2.0 * w * along[k] + w * w * size
            counts[k] += w
        self.squares, self.counts = squares, counts
        self.whole, self.events = self.whole + w * u, self.events + w

    def arrays(self) -> Arrays:
        if not self.present:
            return {}
        return {
            "sums": self.sums[:, : self.labels],
            "squares": self.squares,
            "counts": self.counts,
            "whole": self.whole,
        }

    def counters(self) -> Counters:
        return {"events": self.events if self.present else 0.0}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("the means do not fit the vector and the labels")
        if self.present:
            self.sums[:, : self.labels] = arrays["sums"]
            self.squares, self.counts = arrays["squares"], arrays["counts"]
            self.whole, self.events = arrays["whole"], counters["events"]

    def nbytes_for(self, features: int, columns: int) -> int:
        return 8 * self.width * (columns_for(columns) + 1) if self.present else 0


register_expert(ExpertEntry("class-means", ClassMeans, trust=0.4))
