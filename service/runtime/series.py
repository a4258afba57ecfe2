"""A long series kept short, such as a learning curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")
SeriesPoint = tuple[int, Value]


@dataclass(slots=True)
class Series(Generic[Value]):
    """A long series kept short: points of (place, value), the places multiples of `stride`.

    When there are more than `most`, every other one goes and the stride doubles. As part of the fold it is the same on
    every replica, and it outlives the log that it came from.
    """

    most: int
    stride: int = 1
    points: list[SeriesPoint[Value]] = field(default_factory=list)

    def keeps(self, place: int) -> bool:
        """Whether a value at this place would be kept."""
        return place % self.stride == 0

    def add(self, place: int, value: Value) -> None:
        """The value at the next place."""
        if not self.keeps(place):
            return
        self.points.append((place, value))
        if len(self.points) > self.most:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]

    def until(self, place: int, value: Value, most: int | None = None) -> list[SeriesPoint[Value]]:
        """At most `most` points, the present one in the place of the last: no distance is shorter than the stride.

        They are counted from the end, so that the newest is always there.
        """
        if not self.points:
            return []
        points = [*self.points[:-1], (place, value)]
        step = 1 if most is None else -(-len(points) // most)
        return points[(len(points) - 1) % step :: step]
