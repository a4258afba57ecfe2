"""Experts that have no round in the kernel, beside those that have one: scored, and taught, by their pieces.

The kernel asks for their log-odds while it scores an instance. They learn just before the others take their steps, which
cannot fail; if one of them does, all of them are as they were.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...instances import EMPTY, Floats
from ...kernel import LookedUp
from ...scaling import ScaledVector
from .experts import Inputs

BY_PIECES = 5  # what the kernel calls them
_NO_ROWS = np.zeros(0, dtype=np.intp)


class ByPieces:
    """The experts of `blend`, a `Blend`, that the kernel does not know."""

    def __init__(self, blend: Any, bias: int) -> None:
        self._blend, self._bias = blend, bias
        self._experts = [expert for expert in blend.experts if expert.kind < 0]
        self._scored = Inputs(ScaledVector(_NO_ROWS, EMPTY), LookedUp(_NO_ROWS, EMPTY))
        self._scores: Floats = np.zeros((0, 0))
        self._lesson: tuple[Any, float, Floats, int] | None = None

    def scores(self, rows: bytes, u: bytes, raw: bytes, z: bytes, dense: bytes) -> Floats:
        """Their log-odds, a row each, of an instance as the kernel has scaled it: features that are unknown come last."""
        places, every_raw, every_z = np.frombuffer(rows, np.intp), np.frombuffer(raw), np.frombuffer(z)
        known, values = len(places), np.frombuffer(u).copy()
        values[: self._bias] = 1.0
        x = ScaledVector(places, values[:known], values[known:], every_raw[:known], every_z[:known])
        x.dense, x.unseen_raw, x.unseen_z = np.frombuffer(dense, np.bool_), every_raw[known:], every_z[known:]
        self._scored = Inputs.of(x, self._bias)
        Z = np.zeros((len(self._experts), self._blend.labels))
        for i, expert in enumerate(self._experts):
            if expert.present:
                np.multiply(expert.scores(self._scored), expert.scale, Z[i])
        self._scores = Z
        return Z

    def plan(self, y: Any, weight: float, linked: Callable[[], Floats], features: int) -> bool:
        """Whether they can learn without one of them leaving; nothing is changed yet."""
        self._lesson = None
        if not any(expert.present for expert in self._experts):
            return True
        if features != self._blend.features and not self._all_stay(features):
            return False
        self._lesson = y, weight, linked(), features
        return True

    def _all_stay(self, features: int) -> bool:
        labels = self._blend.labels
        return all(expert.stays(features, labels) for expert in self._experts if expert.present)

    def commit(self, others: Callable[[], None]) -> None:
        """Their steps, then those of the others: all of it, or, whatever is raised, nothing."""
        if self._lesson is None:
            others()
            return
        y, weight, linked, features = self._lesson
        marks = [(expert, expert.mark()) for expert in self._experts]
        try:
            for expert in self._experts:
                expert.grow(features, self._blend.labels)
            self._teach(y, weight, linked, features)
            others()
        except BaseException:
            for expert, mark in marks:
                expert.rewind(mark)
            raise

    def _teach(self, y: Any, weight: float, linked: Floats, features: int) -> None:
        scored = inputs = self._scored
        x, target = scored.scaled, self._blend.target(y, weight)
        target.errors = target.Y - linked
        fresh = len(x.unseen)
        if fresh:
            joined = np.arange(features - fresh, features, dtype=np.intp)
            every = LookedUp(np.concatenate((x.rows, joined)), np.concatenate((x.raw, x.unseen_raw)))
            inputs = Inputs.of(x.joined(every), self._bias)
        for expert, s in zip(self._experts, self._scores, strict=True):
            if expert.present:
                expert.learn(inputs, scored, s / expert.scale, target)
