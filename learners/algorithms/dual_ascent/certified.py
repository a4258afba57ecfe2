"""Dual ascent as a direction, g = -alpha, and the certificate that it carries along.

    D = gamma T - sum_r G(theta_r), T the sum of all tau so far;   lambda M <= D <= min P,   lambda = gamma C - C^2 / 2

The right part is weak duality and always holds. The left part is Lemma 1, which needs a curvature h = <x, H x> <= 1/2 on
every mistake: h = |x|^2 for the squared norm; h <= (max x)^2 / 4 for entropy, being a variance of values in [0, max x].
It also needs one n: where more features than `dimension` came after the first update, the lemma is silent.

With words of labels' names (kernel/label_words.py) h is larger and D, summed up with it, a bound from below: all holds.

Its proof gives more. A mistake on any x adds at least gamma tau - tau^2 h to D, tau = C in update I, and the best tau in
[0, C] in the others. `promised` is the sum of that over the mistakes: promised <= D whatever the scale of the instances.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...instances import Floats, Mask, Matrix, Vector
from ...kernel import ascend
from ...model import Round, Surrogate
from ...theory.dual_ascent_bounds import lemma
from ...weights.entropic import Entropic
from .responses import Logistic, Response, Tilted
from .updates import UPDATES, Update, worst_pair

__all__ = ["DualAscent", "relevant_labels"]

ROUNDING = 1e-12  # an instance scaled to |x|^2 = 1/2 meets the lemma's condition, wherever its last bit fell
Sums = tuple[int, float, float, float, bool]
"""Mistakes M, T, sum_r G, what the proof promises, whether the lemma's condition held."""


def relevant_labels(y: Any, count: int) -> Mask:
    """Y as a mask: of a class, that class; of grades, all above 0."""
    if isinstance(y, np.ndarray):
        return np.asarray(y > 0)
    mask = np.zeros(count, dtype=bool)
    mask[y] = True
    return mask


class DualAscent(Surrogate):
    """Update `update` with parameters C and gamma, on linear weights (squared norm) or entropic ones.

    An event that counts w times has w C in place of C. The lemma is silent then.
    """

    weighs = True

    def __init__(self, update: str, C: float, gamma: float) -> None:
        self.update: Update = UPDATES[update]
        self.number: int = len(update)
        self.C = C
        self.gamma = gamma
        self.sums: Sums = (0, 0.0, 0.0, 0.0, True)
        self.dimension: int | None = None

    def fused(self) -> dict[str, Any]:
        return {"update": self.number, "C": self.C, "gamma": self.gamma}

    def direction(self, round: Round) -> Floats | None:
        """-alpha of this round, or None; the certificate is brought up to date."""
        x = round.x
        if x is None or isinstance(x, Matrix):
            raise TypeError("dual ascent ranks the labels of one vector, not a list of items")
        if isinstance(round.weights, Entropic):
            return self._entropic_direction(round, x, round.weights)
        C, t, weight = self.C * round.weight, round.t, round.weight
        h = x.squared_norm() if round.weights is None else round.weights.curvature(x)
        relevant = round.y > 0 if isinstance(round.y, np.ndarray) else int(round.y)
        mistake, g, total, growth = ascend(t, relevant, h, self.number, C, self.gamma)
        if mistake:
            self._mistake(h, C, weight)
        if g is not None:
            self._add(total, growth)
        elif h == 0.0 and _has_pair(relevant, len(t)):
            # x = 0 costs every competitor the loss gamma, and no weight can change: the dual rises by gamma C.
            self._add(C, 0.0)
        return g

    def _mistake(self, h: float, C: float, weight: float) -> None:
        """One more mistake: the lemma promises gamma tau - tau^2 h."""
        mistakes, total, conjugate, promised, held = self.sums
        tau = C if self.number == 1 or h == 0.0 else min(C, 0.5 * self.gamma / h)
        held = held and h <= 0.5 + ROUNDING and weight == 1.0
        self.sums = mistakes + 1, total, conjugate, promised + (self.gamma * tau - tau * tau * h), held

    def _add(self, total: float, growth: float) -> None:
        mistakes, T, conjugate, promised, held = self.sums
        self.sums = mistakes, T + total, conjugate + growth, promised, held

    def _entropic_direction(self, round: Round, x: Vector, weights: Entropic) -> Floats | None:
        t, C = round.t, self.C * round.weight
        relevant = relevant_labels(round.y, len(t))
        if not _has_pair(relevant, len(t)):
            return None
        r, s = worst_pair(t, relevant)
        mistake = bool(t[r] <= t[s])
        if weights.dimension != self.dimension:
            t = self._resize(t, x, weights)
        if mistake:
            highest = float(max(x.values.max(initial=0.0), x.unseen.max(initial=0.0)))
            self._mistake(0.25 * (highest * highest), C, round.weight)
        response = _response(t, x, weights)
        if response is None:
            self._add(C, 0.0)
            return None
        alpha = self.update(response, relevant, C, self.gamma)
        if alpha is None:
            return None
        self._add(float(alpha[relevant].sum()), response.growth(alpha))
        return -alpha

    def _resize(self, t: Floats, x: Vector, weights: Entropic) -> Floats:
        """n has grown: all scores and G changed with it."""
        if self.dimension is not None:
            mistakes, T, _, promised, held = self.sums
            self.sums = mistakes, T, weights.conjugate(), promised, held and T == 0.0
            t = weights.scores(x)
        self.dimension = weights.dimension
        return t

    def certificate(self) -> dict[str, Any]:
        """lambda M <= D, where `condition_held` says that the lemma promises it."""
        mistakes, total, conjugate, promised, held = self.sums
        return {
            "lambda": lemma(self.C, self.gamma),
            "dual_objective": self.gamma * total - conjugate,
            "mistakes": mistakes,
            "condition_held": held,
            "promised": promised,
        }

    def counters(self) -> dict[str, Any]:
        """What the certificate adds up."""
        return {**dict(zip(_SUMS, self.sums, strict=True)), "dimension": self.dimension}

    def restore(self, counters: dict[str, Any]) -> None:
        """All as it was."""
        mistakes, total, conjugate, promised, held = (counters[name] for name in _SUMS)
        self.sums, self.dimension = (mistakes, total, conjugate, promised, held), counters["dimension"]


_SUMS = ("mistakes", "total", "conjugate", "promised", "condition_held")


def _has_pair(relevant: Mask | int, labels: int) -> bool:
    """Whether there is a relevant label, and another one."""
    if isinstance(relevant, np.ndarray):
        return bool(relevant.any() and not relevant.all())
    return labels > 1


def _response(t: Floats, x: Vector, weights: Entropic) -> Response | None:
    values = np.concatenate((x.values, x.unseen)) if len(x.unseen) else x.values
    highest, lowest = float(values.max(initial=0.0)), float(values.min(initial=math.inf))
    if highest <= 0.0:
        return None
    if lowest == highest or not ((values > 0.0) & (values < highest)).any():
        return Logistic(t, highest)
    return Tilted(t, values, lambda labels: weights.log_probabilities(x, labels))
