"""The whole round on one vector: look up, scale by blocks, score, decide, judge, direction, step. The specification.

    predict   (ranking, margin, label) of an instance; where the order is the decision (`ranks`), no label
    plan      (mistake, updated, sums) of learning from it; nothing is changed yet
    commit    what was planned: all of it, or, whatever is raised, nothing

`update` is 0 for Predtron, which on a mistake takes g = size (e_first - e_y), or the number of the update of dual ascent,
whose certificate adds up `sums` (certified.py). The truth is one label, or for dual ascent a mask of those that are right.
An instance is `{"features": ...}`, or what was read of it. Whatever is unusual gives None: then the learner does the round
piece by piece, with the same bits. What was predicted last is kept for the feedback that mostly follows; `clear` must be
called when names or weights were changed by others.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from .ascent import ascend, best
from .asked import Asked
from .elementary import Floats, Mask, all_finite
from .feature_blocks import FeatureBlocks, judge, match_matrix_of, scaled
from .label_words import NameMatches
from .reference import EMPTY, LookedUp, Table
from .theta import Weights

ROUNDING = 1e-12  # an instance scaled to |x|^2 = 1/2 meets the lemma's condition, wherever its last bit fell
Sums = tuple[int, float, float, float, bool]


def add_mistake(sums: Sums, update: int, h: float, C: float, gamma: float, weight: float) -> Sums:
    """The sums with one more mistake: the lemma promises gamma tau - tau^2 h."""
    mistakes, total, conjugate, promised, held = sums
    tau = C if update == 1 or h == 0.0 else min(C, 0.5 * gamma / h)
    held = held and h <= 0.5 + ROUNDING and weight == 1.0
    return mistakes + 1, total, conjugate, promised + (gamma * tau - tau * tau * h), held


def has_pair(relevant: Mask | int, labels: int) -> bool:
    """Whether there is a relevant label, and another one."""
    if isinstance(relevant, np.ndarray):
        return bool(relevant.any() and not relevant.all())
    return labels > 1


Ascended = tuple[bool, Floats | None, float, float]
"""What `ascend` gives: (mistake, g, total, growth)."""


def sums_after(
    sums: Sums,
    ascended: Ascended,
    relevant: Mask | int,
    labels: int,
    h: float,
    update: int,
    C: float,
    gamma: float,
    weight: float,
) -> Sums:
    """The sums after a round on an x of curvature h, of an event that counts `weight` times, which C has in it."""
    mistake, g, total, growth = ascended
    if mistake:
        sums = add_mistake(sums, update, h, C, gamma, weight)
    if g is not None:
        return (sums[0], sums[1] + total, sums[2] + growth, *sums[3:])
    if h == 0.0 and has_pair(relevant, labels):
        # x = 0 costs every competitor the loss gamma, and no weight can change: the dual rises by gamma C.
        return (sums[0], sums[1] + C, *sums[2:])
    return sums


class Rounds:
    """See above. The weights have one column a label; `blocks`, if any, are those of the features of the table."""

    def __init__(
        self,
        table: Table,
        weights: Weights,
        update: int = 0,
        C: float = 1.0,
        gamma: float = 1.0,
        eta: float = 1.0,
        ranks: bool = False,
        blocks: FeatureBlocks | None = None,
    ) -> None:
        self._table, self._weights, self._ranks, self._blocks = table, weights, ranks, blocks
        self._update, self._C, self._gamma, self._eta = update, C, gamma, eta
        self._asked = Asked(table)
        self._scored: LookedUp | None = None  # what was asked about
        self._x: LookedUp | None = None  # the same, scaled
        self._t: Floats = EMPTY
        self._matches: NameMatches | None = None  # of x with labels' names
        self._step: tuple[Floats | None, float] | None = None

    def clear(self) -> None:
        """Forget the last instance: names or weights have changed."""
        self._scored = self._x = self._step = None
        self._asked.clear()

    def predict(
        self, instance: Any, top: int, names: list[str]
    ) -> tuple[list[tuple[str, float]], float | None, str | None] | None:
        """All labels where `top` is below 0."""
        if not self._look(instance):
            return None
        t = self._t
        if self._ranks:
            order, scores = best(t, -1)
            gaps = [one - other for one, other in pairwise(scores)]
            ranking = list(zip(map(names.__getitem__, order), scores, strict=True))
            return ranking if top < 0 else ranking[:top], min(gaps) + 0.0 if gaps else None, None
        order, scores = best(t, top if top < 0 or top > 1 else 2)
        ranking = list(zip(map(names.__getitem__, order), scores, strict=True))
        if top == 1:
            del ranking[1:]
        return ranking, scores[0] - scores[1] + 0.0 if len(t) > 1 else None, names[order[0]]

    def plan(
        self, instance: Any, truth: Any, weight: float, size: float, sums: Any
    ) -> tuple[bool, bool, Any] | None:
        """`size` is that of Predtron's direction; the event counts `weight` times."""
        if not self._look(instance):
            return None
        t, x = self._t, self._x
        assert x is not None
        if self._update:
            h = x.squared_norm()
            if self._matches is not None:
                h += self._matches.squared_norm()
            update, C, gamma = self._update, self._C * weight, self._gamma
            ascended = ascend(t, truth, h, update, C, gamma)
            mistake, g, _, _ = ascended
            self._step = g, self._eta
            sums = sums_after(sums, ascended, truth, len(t), h, update, C, gamma, weight)
            return mistake, g is not None, sums
        first = int(t.argmax())
        if first == truth:
            self._step = None, self._eta
            return False, False, sums
        g = np.zeros(len(t))
        g[first], g[truth] = size, -size
        self._step = g, self._eta * weight
        return True, True, sums

    def commit(self) -> None:
        """Whatever fails, fails before the step, and what was done until then is taken back."""
        scored, table, weights, blocks = self._x, self._table, self._weights, self._blocks
        if scored is None or self._step is None:
            raise RuntimeError("no round was planned on this state")
        x, (g, eta) = scored, self._step
        self._asked.clear()
        features, labels, events = len(table), weights.labels, table.events
        counts = None if blocks is None else _counts(blocks)
        try:
            if x.unknown:
                weights.grow(features + len(x.unknown), labels)
                x = table.join(x)
                if blocks is not None:
                    blocks.grow(table)
            table.count(x)
            if g is not None:
                if blocks is not None:
                    self._judge(blocks, scored, g)
                    if self._matches is not None:
                        self._matches.step(blocks.shared, g, eta)
                weights.step(x, g, eta)
        except BaseException:
            if table.events > events:
                table.uncount(x)
            table.forget(features)
            weights.shrink(features, labels)
            if blocks is not None and counts is not None:
                blocks.shrink(features, len(counts[0]))
                for array, before in zip(_counts(blocks, copy=False), counts, strict=True):
                    array[:] = before
            self.clear()
            raise
        self._scored = self._x = self._step = None

    def _judge(self, blocks: FeatureBlocks, x: LookedUp, g: Floats) -> None:
        """Which blocks of what was scored pointed where the weights go now."""
        first = int(self._table.bias)
        rows, values = x.rows[first:], x.values[first:]
        judge(blocks, rows, self._weights.theta[rows] * values[:, None], g, self._matches)

    def _scaled(self, blocks: FeatureBlocks, x: LookedUp) -> LookedUp:
        """x by blocks; the bias is in none."""
        first, known = int(self._table.bias), len(x.rows)
        assert x.every is not None  # it was looked up just now
        rows, values = x.every
        values = np.concatenate((values[:first], scaled(blocks, x.rows[first:], values[first:], x.unknown)))
        return LookedUp(x.rows, values[:known], values[known:], x.unknown, (rows, values))

    def _look(self, instance: Any) -> bool:
        """x and the scores of an instance."""
        self._step = None
        table, weights, blocks = self._table, self._weights, self._blocks
        count = len(table)
        if not weights.labels or weights.features != count or (blocks is not None and blocks.rows != count):
            return False
        asked = self._asked.look(instance)
        if asked is None:
            return False
        if asked is self._scored:
            return True
        x = asked
        if blocks is not None:
            x = self._scaled(blocks, x)
        t, matches = weights.scores(x), None
        if blocks is not None and blocks.named:
            if blocks.labels != weights.labels:
                return False
            matches = match_matrix_of(blocks, x, int(table.bias), len(t))
            t = matches.add_to(t, blocks.shared)
        if not all_finite(t):
            return False
        self._scored, self._x, self._t, self._matches = asked, x, t, matches
        return True


def _counts(blocks: FeatureBlocks, copy: bool = True) -> list[Floats]:
    """What a round changes in its blocks, beside their growth."""
    arrays = [blocks.right, blocks.wrong, *([blocks.shared] if blocks.named else [])]
    return [array.copy() for array in arrays] if copy else arrays
