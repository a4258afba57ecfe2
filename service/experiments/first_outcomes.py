"""The first outcome of each unit of a split without `per`: what its verdict is computed from, so that it can be listed.

A row for each unit, in the order in which they counted, which is that of `UnitLevels.slots`. A unit is known by the hash
that the log has of it. Those that a snapshot of an older release counted have no row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from math import isnan

import numpy as np

from feedrank.service.contract.json_types import JSON, View

from .levels import NO_COVARIATE, UnitLevels
from .packing import pack, unpack


class FirstOutcomes:
    """Columns of equal length; `older` units counted before the first row, `before` has the numbers that were brought."""

    def __init__(self) -> None:
        self.older = 0
        self.arms, self.values, self.at = array("b"), array("d"), array("d")
        self.before: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self.arms)

    def add(self, arm: int, value: float, at: float, x: float) -> None:
        """One more unit has counted."""
        if not isnan(x):
            self.before[len(self.arms)] = x
        self.arms.append(arm)
        self.values.append(value)
        self.at.append(at)

    def page(self, levels: UnitLevels, after: int, limit: int) -> Iterator[tuple[int, int, int, float]]:
        """(hash, row, outcomes so far, x) of so many units after the first `after`."""
        units = islice(levels.slots.items(), self.older + after, self.older + after + limit)
        for row, (unit, slot) in enumerate(units, after):
            yield unit, row, levels.counts[slot], self.before.get(row, NO_COVARIATE)

    def value_of(self, levels: UnitLevels, unit: int) -> float | None:
        """By what a unit counts in this measure; None if it has not."""
        slot = levels.slots.get(unit)
        row = -1 if slot is None else slot - self.older
        return self.values[row] if row >= 0 else None

    def to_json(self) -> JSON:
        """All of it, as JSON values."""
        return {
            "older": self.older,
            "arms": pack(np.array(self.arms, dtype="<i1")),
            "values": pack(np.array(self.values, dtype="<f8")),
            "at": pack(np.array(self.at, dtype="<f8")),
            "before": [[row, x] for row, x in self.before.items()],
        }

    def load(self, data: View | None, levels: UnitLevels) -> FirstOutcomes:
        """Itself, as it was when it was written beside these levels; without data, these units have no rows."""
        if data is None:
            self.older = len(levels.slots)
            return self
        self.older = data["older"]
        self.arms = array("b", unpack(data["arms"], "<i1"))
        self.values, self.at = (
            array("d", unpack(data["values"], "<f8")),
            array("d", unpack(data["at"], "<f8")),
        )
        self.before = dict(data["before"])
        return self
