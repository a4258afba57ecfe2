"""The learning curve: cumulative loss over rounds, in a bounded number of points, a deterministic part of the fold.

A point is kept at every `stride` rounds. When there are more than MOST, every other one goes and the stride doubles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MOST = 512


@dataclass(slots=True)
class Curve:
    """Points of (rounds, cumulative loss), and the stride between them."""

    stride: int = 1
    points: list[tuple[int, float]] = field(default_factory=list)

    def count(self, rounds: int, cumulative_loss: float) -> None:
        """One more round."""
        if rounds % self.stride:
            return
        self.points.append((rounds, cumulative_loss))
        if len(self.points) > MOST:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]

    def to_json(self, most: int = MOST, now: tuple[int, float] | None = None) -> list[dict[str, Any]]:
        """At most `most` points, each with the mean so far and the mean of the window since the point before it.

        `now`, the present (rounds, cumulative loss), takes the last point's place: the curve moves with every round, and
        no window is shorter than the stride.
        """
        told: list[dict[str, Any]] = []
        before, lost = 0, 0.0
        points = [*self.points[:-1], now] if now is not None and self.points else self.points
        step = -(-len(points) // most) if points else 1
        # Counted from the end, so that the newest is always there.
        for rounds, total in points[(len(points) - 1) % step :: step]:
            told.append(
                {
                    "rounds": rounds,
                    "cumulative_loss": total,
                    "mean_loss": total / rounds,
                    "window_loss": (total - lost) / (rounds - before),
                }
            )
            before, lost = rounds, total
        return told

    def dump(self) -> list[Any]:
        return [self.stride, self.points]

    @classmethod
    def load(cls, data: list[Any]) -> Curve:
        stride, points = data
        return cls(int(stride), [(int(rounds), float(total)) for rounds, total in points])
