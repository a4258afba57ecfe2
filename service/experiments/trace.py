"""The history of the confidence intervals, at a bounded number of points.

A point is kept at every `stride` events. When there are more than MOST, every other one goes and the stride doubles. It
is part of the fold, so every replica shows the same past, and it outlives the log that it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from feedrank.service.contract.json_types import JSON, View

MOST = 128
# Of each pair of arms: units, rounds a unit, difference, lower, upper.
PairMoment = tuple[int, int, float, float, float]
TracePoint = tuple[int, list[PairMoment]]


@dataclass(slots=True)
class Trace:
    """Points of (events, the interval of each pair of arms)."""

    stride: int = 1
    points: list[TracePoint] = field(default_factory=list)

    def count(self, events: int, moments: Callable[[], list[PairMoment]]) -> None:
        """One more event is in the figures; they are solved for only where a point is kept."""
        if events % self.stride:
            return
        self.points.append((events, moments()))
        if len(self.points) > MOST:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]

    def up_to(self, events: int, moments: list[PairMoment]) -> list[TracePoint]:
        """The points, the last of them being now."""
        return [*self.points[:-1], (events, moments)] if self.points else []

    def dump(self) -> list[object]:
        return [self.stride, self.points]

    @classmethod
    def load(cls, data: list[Any]) -> Trace:
        stride, points = data
        return cls(stride, [(at, [(n, k, d, lo, hi) for n, k, d, lo, hi in pairs]) for at, pairs in points])


def moment(difference: View) -> PairMoment:
    """A difference of the report, as a point keeps it."""
    return (
        difference["units"],
        difference["rounds_per_unit"],
        difference["difference"] or 0.0,
        difference["lower"],
        difference["upper"],
    )


def as_json(point: TracePoint) -> JSON:
    """A point as GET shows it."""
    events, moments = point
    names = ("units", "rounds_per_unit", "difference", "lower", "upper")
    return {"events": events, "differences": [dict(zip(names, moment, strict=True)) for moment in moments]}
