"""Experts on the vector of an instance, and on nothing else: absent from the pool until the first one was learned.

They see it at unit length, u = v / |v|: of embeddings the direction says what they mean.
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from ...instances import Floats
from ...kernel.elementary import total
from .expert_registry import Setting
from .experts import Expert, Inputs


class VectorExpert(Expert):
    """`first` and `width` are the rows of the vector; `width` is 0 until there is one."""

    first: int
    width: int
    labels: int

    widest: int
    """The longest vector that it takes."""

    def __init__(self, setting: Setting) -> None:
        self.bits: bool = setting.bits
        self.present: bool = False
        self.first = self.width = self.labels = 0
        self._before: list[tuple[Floats, int, Floats]] = []

    def place(self, first: int, width: int) -> None:
        """The vector is in these rows from now on."""
        if not self.width and 0 < width <= self.widest:
            self.first, self.width = first, width
            self.present = self.stays(0, self.labels)
            if self.present:
                self.start()

    @abstractmethod
    def start(self) -> None:
        """As if nothing had been learned, of vectors this wide and so many labels."""

    def grow(self, features: int, columns: int) -> None:
        if self.present and columns != self.labels:
            self.widen(columns)
        self.labels = columns

    @abstractmethod
    def widen(self, columns: int) -> None:
        """Make room for more labels, in arrays that are new."""

    def reset(self) -> None:
        if self.present:
            self.start()

    def change(self, array: Floats, column: int) -> None:
        """Keep a column that is about to change in place."""
        self._before.append((array, column, array[:, column].copy()))

    def mark(self) -> Any:
        """What changes is replaced, or its columns are kept."""
        self._before = []
        return dict(vars(self))

    def rewind(self, mark: Any) -> None:
        for array, column, old in reversed(mark["_before"]):
            array[:, column] = old
        vars(self).clear()
        vars(self).update(mark)

    def unit(self, inputs: Inputs) -> Floats | None:
        """u; None where an instance has no vector, or one of length 0."""
        if "unit" not in inputs.kept:
            x = inputs.scaled
            at = int(x.rows.searchsorted(self.first))
            there = self.present and at + self.width <= len(x.rows) and x.rows[at] == self.first
            v = x.raw[at : at + self.width] if there else np.zeros(0)
            top = float(np.abs(v).max(initial=0.0))
            if top > 0.0:
                v = v / top
                v = v / np.sqrt(total(v * v))
            inputs.kept["unit"] = v if top > 0.0 else None
        kept: Floats | None = inputs.kept["unit"]
        return kept

    def spread(self, inputs: Inputs, block: Floats) -> Floats:
        """Rows of parts for all features of an instance, `block` those of its vector."""
        every = np.zeros((len(inputs.scaled.rows), self.labels))
        at = int(inputs.scaled.rows.searchsorted(self.first))
        every[at : at + self.width] = block
        return every
