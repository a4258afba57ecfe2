"""The units of a split with `per`, one row each, in the order of their first exposures: what its verdict is computed from.

Windows are equally long, so units close in the order of the rows: those before `closed` have counted. A row is kept with
its count, sum and number of values above 0 of each measure, so that everybody can work out the verdict anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np

from feedrank.service.contract.json_types import JSON, View

from .packing import pack, unpack
from .per import Rule

DAY = 86400.0
MOST_DAYS = 120
Group = tuple[str | None, ...]  # the value of each segment
_COLUMNS = {
    "arms": "q",
    "first": "d",
    "before": "d",
    "groups": "q",
    "again": "q",
    "counts": "q",
    "above": "q",
    "totals": "d",
}


@dataclass(slots=True)
class Day:
    """Of the units first exposed on one day, those that have counted: how many of each arm, and the sum of their values."""

    day: int
    units: list[int]
    totals: list[float]
    over: list[float]  # what the totals are divided by: of a ratio its own totals, else the units


class UnitTable:
    """Columns of equal length; `counts`, `above` and `totals` have one entry for each measure of each unit.

    `ages` has for each day since a unit's own first exposure the sum of what came on it, of each arm: of the measure that
    decides, or with `returns` the exposures.
    """

    def __init__(self, measures: int, arms: int, returns: bool = False) -> None:
        self.measures, self.closed, self.returns = measures, 0, returns
        self.ages: list[list[float]] = []
        self.rows: dict[str, int] = {}
        self.exposed = [0] * arms
        self.kinds: dict[Group, int] = {}
        self.days: list[Day] = []
        self.arms, self.first, self.before = array("q"), array("d"), array("d")
        self.groups, self.again = array("q"), array("q")
        self.counts, self.above, self.totals = array("q"), array("q"), array("d")

    def __len__(self) -> int:
        return len(self.first)

    def expose(self, unit: str, arm: int, at: float, window: float, before: float, group: Group) -> None:
        """The unit is shown its arm; its window begins with the first time."""
        row = self.rows.get(unit)
        if row is not None:
            again = at < self.first[row] + window
            self.again[row] += again
            if again and self.returns:
                self._age(row, at, 1.0)
            return
        self.rows[unit] = len(self.first)
        self.exposed[arm] += 1
        self.arms.append(arm)
        self.first.append(at)
        self.before.append(before)
        self.groups.append(self.kinds.setdefault(group, len(self.kinds)))
        self.again.append(0)
        for column in (self.counts, self.above):
            column.extend([0] * self.measures)
        self.totals.extend([0.0] * self.measures)

    def add(self, unit: str, measure: int, value: float, at: float, window: float) -> None:
        """A value of the unit; what comes outside its window counts for nothing."""
        row = self.rows.get(unit)
        if row is None or at >= self.first[row] + window:
            return
        place = row * self.measures + measure
        self.counts[place] += 1
        self.above[place] += value > 0
        self.totals[place] += value
        if measure == 0 and not self.returns:
            self._age(row, at, value)

    def _age(self, row: int, at: float, value: float) -> None:
        """What came of a unit, into the day since its first exposure."""
        day = int((at - self.first[row]) / DAY)
        if day >= MOST_DAYS:
            return
        while len(self.ages) <= day:
            self.ages.append([0.0] * len(self.exposed))
        self.ages[day][self.arms[row]] += value

    def reached(self, now: float) -> list[list[int]]:
        """Of each day in `ages`, the units of each arm that have been in for so long."""
        age = (now - np.array(self.first, dtype=np.float64)) / DAY
        arms, width = np.array(self.arms, dtype=np.int64), len(self.exposed)
        return [np.bincount(arms[age >= day], minlength=width).tolist() for day in range(len(self.ages))]

    def close(self, now: float, window: float) -> Iterator[int]:
        """The rows whose windows are over and that have not counted yet, in order."""
        while self.closed < len(self.first) and self.first[self.closed] + window <= now:
            self.closed += 1
            yield self.closed - 1

    def next_due(self, window: float) -> float | None:
        """When the next window is over."""
        return self.first[self.closed] + window if self.closed < len(self.first) else None

    def value(self, row: int, measure: int, rule: Rule) -> float:
        """By what the unit counts, as a share of the rule's scale."""
        place = row * self.measures + measure
        return rule.of(self.counts[place], self.totals[place], self.above[place], self.again[row] > 0)

    def page(self, after: int, limit: int) -> Iterator[tuple[str, int, Group]]:
        """(unit, row, segments) of so many rows after the first `after`."""
        kinds = list(self.kinds)
        for unit, row in islice(self.rows.items(), after, after + limit):
            yield unit, row, kinds[self.groups[row]]

    def group(self, row: int) -> Group:
        """The segments of a unit."""
        return next(islice(self.kinds, self.groups[row], None))

    def count_day(self, row: int, value: float, over: float) -> None:
        """A unit has counted: into the day of its first exposure, days beginning with the first exposure of all."""
        day = int((self.first[row] - self.first[0]) / DAY)
        if not self.days or self.days[-1].day != day:
            width = len(self.exposed)
            self.days = [*self.days[1 - MOST_DAYS :], Day(day, [0] * width, [0.0] * width, [0.0] * width)]
        arm = self.arms[row]
        self.days[-1].units[arm] += 1
        self.days[-1].totals[arm] += value
        self.days[-1].over[arm] += over

    def to_json(self) -> JSON:
        """All of it, as JSON values."""
        columns = {
            name: pack(np.array(getattr(self, name), dtype=_dtype(kind))) for name, kind in _COLUMNS.items()
        }
        return {
            "units": list(self.rows),
            "kinds": list(self.kinds),
            "closed": self.closed,
            **columns,
            "days": [asdict(day) for day in self.days],
            "ages": self.ages,
        }

    def load(self, data: View) -> UnitTable:
        """Itself, as it was when it was written."""
        self.rows = {unit: row for row, unit in enumerate(data["units"])}
        self.kinds = {tuple(kind): number for number, kind in enumerate(data["kinds"])}
        self.closed, self.days = (
            data["closed"],
            [Day(**{"over": day["units"], **day}) for day in data["days"]],
        )
        self.ages = data.get("ages", [])
        for name, kind in _COLUMNS.items():
            setattr(self, name, array(kind, unpack(data[name], _dtype(kind))))
        for arm in self.arms:
            self.exposed[arm] += 1
        return self


def _dtype(kind: str) -> str:
    return "<f8" if kind == "d" else "<i8"
