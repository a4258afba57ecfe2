"""The learning curve as the contract shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from feedrank.service.contract.json_types import JSON


class CurvePoint(NamedTuple):
    """A point of the learning curve: the loss so far, the time of the event, and the mean loss of each expert."""

    total: float
    at: float | None = None
    experts: tuple[float | None, ...] = ()


def points(curve: Iterable[tuple[int, CurvePoint]]) -> list[JSON]:
    """Each with the mean loss so far, and that of the window since the one before."""
    shown: list[JSON] = []
    before, lost = 0, 0.0
    for rounds, (total, at, experts) in curve:
        shown.append(
            {
                "rounds": rounds,
                "cumulative_loss": total,
                "mean_loss": total / rounds,
                "window_loss": (total - lost) / (rounds - before),
                "at": at,
                "experts": experts,
            }
        )
        before, lost = rounds, total
    return shown
