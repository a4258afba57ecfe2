"""How the confidence sequences came to where they are: the sums behind them at a bounded number of events.

A point is kept at every `stride` events. When there are more than MOST, every other one goes and the stride doubles. It
is part of the fold, so every replica shows the same past, and it outlives the log that it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from feedrank.service.experiments.confidence import Sums, interval

MOST = 128
Point = tuple[int, list[tuple[int, float, float]]]
# Intervals are solved for, and the same few are looked at again and again.
_interval = lru_cache(maxsize=16_384)(
    lambda n, total, squares, alpha, c: interval(Sums(n, total, squares), alpha, c)
)


@dataclass(slots=True)
class Trace:
    """Points of (events, the sums of each pair of arms)."""

    stride: int = 1
    points: list[Point] = field(default_factory=list)

    def count(self, events: int, pairs: Sequence[Sums]) -> None:
        """One more event is in the sums."""
        if events % self.stride:
            return
        self.points.append(point(events, pairs))
        if len(self.points) > MOST:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]

    def up_to(self, events: int, pairs: Sequence[Sums]) -> list[Point]:
        """The points, the last of them being now."""
        return [*self.points[:-1], point(events, pairs)] if self.points else []

    def dump(self) -> list[Any]:
        return [self.stride, self.points]

    @classmethod
    def load(cls, data: list[Any]) -> Trace:
        stride, points = data
        return cls(stride, [(at, [(n, total, squares) for n, total, squares in sums]) for at, sums in points])


def point(events: int, pairs: Sequence[Sums]) -> Point:
    return events, [(sums.n, sums.total, sums.squares) for sums in pairs]


def solved(points: Sequence[Point], alpha: float, bounds: Sequence[float]) -> list[dict[str, Any]]:
    """Each point with the interval of each pair at that time; `bounds` holds the c of each pair."""
    told = []
    for events, pairs in points:
        differences = []
        for (n, total, squares), c in zip(pairs, bounds, strict=True):
            lower, upper = _interval(n, total, squares, alpha, c)
            mean = total / n if n else None
            differences.append({"rounds": n, "difference": mean, "lower": lower, "upper": upper})
        told.append({"events": events, "differences": differences})
    return told
