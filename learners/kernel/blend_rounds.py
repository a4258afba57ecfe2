"""The round of the automatic learner as a whole, where one label is right: what its pieces do, with fewer calls of NumPy.

    predict   look up, scale, score with every expert, pool, calibrate, decide
    plan      judge, and work out all that changes; nothing is changed yet
    commit    write it: all of it, or, whatever is raised, nothing

The formulas are those of the pieces, in algorithms/auto and here: all that this file adds is that nothing is worked out
twice. So the powers of all log-odds are one call, and serve the prediction, the pool and AdaGrad. `bind` shows it the
arrays of the pieces, which stay theirs; `clear` must be called before they are replaced. Whatever is unusual (a table that
has to grow, an alarm of drift, scores that are not finite) gives None: the pieces do it.
"""

from itertools import repeat
from typing import Any

import numpy as np

from . import alarm
from .adaptive import adapted
from .ascent import ascend, best
from .asked import Asked
from .calibrate import calibrated_at, place, recalibrate_at
from .elementary import Floats, all_finite, log_of, total
from .products import times
from .reference import EMPTY, Ints, LookedUp, Table, Vector
from .rounds import sums_after
from .theta import Weights, Write
from .trust import Powers, column, members_of, pooled, trust_after
from .welford import length_of, raised, scale, scores_of_words, tallied, tallied_words, words_alone

# What the experts and the modes are called in algorithms/auto/fused.py; least squares and bits are left to the pieces.
DUAL_ASCENT, NAIVE_BAYES, ADAGRAD, RECENT_ERRORS = 0, 1, 2, 4
EXPERTS = frozenset({DUAL_ASCENT, NAIVE_BAYES, ADAGRAD, RECENT_ERRORS})
PLAIN, WEIGHTED, REJECTING = 0, 4, 5
MODES = frozenset({PLAIN, WEIGHTED, REJECTING})
_ZERO = np.array(0.0)
ALL, ROW = slice(None), np.dtype((np.void, 32))  # a row of the statistics


class Scored:
    """What scoring an instance came upon, for learning: see the comments; p, and p as it is shown."""

    __slots__ = ("T", "before", "choice", "counted", "p", "powers", "rows", "shown", "u", "words", "x")
    rows: Ints  # of features that have not joined those that they will get, behind the others
    u: Floats
    words: Ints  # the rows of those that are
    before: Floats  # rows of the statistics
    counted: Floats | None  # the values to count there; None where each is 1 and always was
    T: Floats  # a' Z, t, and Z: see trust.py
    powers: Powers
    p: Floats
    choice: tuple[int, tuple[int, float]]  # the highest of p, and its place among the knots of calibration
    shown: Floats

    def __init__(self, x: LookedUp) -> None:
        self.x = x


class BlendRounds:
    """See above."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._asked = Asked(table)
        self.clear()

    def clear(self) -> None:
        """Forget the last instance and the arrays: they are about to change."""
        self._features = -1  # that are bound
        self._scored: Scored | None = None
        self._plan: Plan | None = None
        self._asked.clear()

    def bind(self, state: tuple[Any, ...]) -> None:
        """Show it the arrays of the pieces: see algorithms/auto/fused.py."""
        self.clear()
        self._mode, self._statistics, self._bias, self._bias_size, self._idf, trust, *own, experts = state
        self._sums, self._losses, self._seen, self._view, self._costs = own
        *pool, self._prior, self._present, self._doubt = trust
        self._pool: Any = tuple(pool)
        self._members = [(place, *expert) for place, expert in enumerate(experts) if expert[1]]
        self._weights = [part for member in self._members for part in member[5:] if isinstance(part, Weights)]
        self._here = members_of(self._present).here
        # Rows that can join without a table that moves; naive Bayes has one more table, for bits.
        tables = [self._statistics, *(one.room for one in self._weights)]
        tables += [member[-1] for member in self._members if member[1] == NAIVE_BAYES]
        self._room = min(map(len, tables))
        labels, count = len(self._seen), len(self._table)
        fits = labels > 0 and len(self._here) == len(self._members) > 0
        fits = fits and all(one.features == count and one.labels == labels for one in self._weights)
        views = [one for one in (self._view, self._costs) if one is not None]
        if fits and all(len(one) == labels for one in views):
            self._features = count

    # ---- predicting

    def predict(
        self, instance: Any, top: int, names: list[str], words: tuple[float, float], size: float
    ) -> tuple[list[tuple[str, float]], float | None, str | None, list[float]] | None:
        """(ranking, margin, label, probabilities), or None. All labels where `top` is below 0."""
        scored = self._look(instance)
        if scored is None:
            return None
        t = scored.T[1]
        order, scores = best(t, top if top < 0 or top > 1 else 2)
        gap = scores[0] - scores[1] + 0.0 if len(t) > 1 else None
        first = order[0]
        if self._costs is not None:
            first, gap = self._cheapest(scored.shown)
        if self._view is not None:
            order, scores = best(times(self._view, t), top)
        if top == 1:
            del order[1:], scores[1:]
        ranking = list(zip(map(names.__getitem__, order), scores, strict=True))
        label = names[first] if first < len(t) else None
        return ranking, gap, label, scored.shown.take(order).tolist()

    def _look(self, instance: Any) -> Scored | None:
        """All that `predict` and `plan` need of an instance; what was asked about last is not scored again."""
        self._plan = None
        features = len(self._table)
        if features != self._features:
            return None
        x = self._asked.look(instance)
        # A name's __eq__ may have taught the learner.
        if x is None or features != self._features or features + len(x.unknown) > self._room:
            return None
        if self._scored is None or self._scored.x is not x:
            self._scored = self._score(x)
        return self._scored

    def _score(self, x: LookedUp) -> Scored | None:
        scored, members = Scored(x), self._members
        u, words, length = self._scale(x, scored)
        T = np.empty((2 + len(members), len(self._seen)))
        for row, (_, kind, _, factor, setting, *parts) in enumerate(members, 2):
            if kind == NAIVE_BAYES:
                kept, counts, events, _ = parts
                room = setting * float(self._features) + setting
                s = scores_of_words(kept, *words, length, counts, events, room)
            else:
                s = parts[0] if kind == RECENT_ERRORS else parts[0].scores(u)
            np.multiply(s, factor, T[row])
        pooled(T, self._here, self._pool)
        if not all_finite(T):
            return None
        scored.T, scored.powers = T, Powers.of(T)
        scored.p = p = scored.powers.p(1)
        first = int(p.argmax())
        scored.choice = first, place(p.item(first))
        scored.shown = calibrated_at(p, self._sums, *scored.choice) if len(p) > 1 else p
        return scored

    def _scale(self, x: LookedUp, scored: Scored) -> tuple[Vector, tuple[Ints, Floats], float]:
        """u of the known features, the words among them with their u, and the sum of u over these and the unknown ones."""
        assert x.every is not None  # it was looked up
        (rows, raw), known, bias = x.every, len(x.rows), self._bias
        before = self._statistics.take(rows[bias:], axis=0)
        scored.rows, scored.before = rows, before
        u, events = np.empty(len(rows)), self._table.events
        scored.u, scored.counted = u, None
        words = words_alone(before, known - bias, events, bias) if self._idf and self._asked.named else None
        if words is not None:
            np.divide(words, length_of(words, known - bias), out=u[bias:])
            u[:bias] = self._bias_size
            scored.words = rows[bias:]
            # A constant is no word; its 0 counts for nothing below.
            if len(words) and not words.item(words.argmin()) > 0.0:
                scored.words = scored.words.take(words.nonzero()[0])
            only = u[bias:known]
            size = total(only) + (total(u[known:]) if known < len(u) else 0.0)
            return Vector(x.rows, u[:known], EMPTY), (x.rows[bias:], only), size
        scored.counted = raw[bias:]
        u[:known], u[known:], _, dense, _ = scale(
            x.rows, x.values, x.unseen, self._statistics, bias, self._idf, events
        )
        at = ((u[:known] > _ZERO) > dense).nonzero()[0]
        positive = np.maximum(u[known:], _ZERO)
        only = u.take(at)
        scored.words = np.concatenate((rows.take(at), rows[known:][positive > _ZERO]))
        u[:bias] = self._bias_size
        return Vector(x.rows, u[:known], EMPTY), (rows.take(at), only), total(only) + total(positive)

    def _expected(self, p: Floats) -> Floats:
        """The expected cost of every label under p, but for a constant, and behind the last that of REJECT."""
        costs: Floats = p * self._costs
        return np.append(1.0 - p, total(costs)) if self._mode == REJECTING else -costs

    def _cheapest(self, p: Floats) -> tuple[int, float | None]:
        """The label of least expected cost under p, one behind the last for REJECT; and the gap to the next."""
        expected = self._expected(p)
        first = int(expected.argmin())
        if len(expected) < 2:
            return first, None
        least = expected.item(first)
        expected[first] = np.inf
        return first, expected.item(expected.argmin()) - least + 0.0

    # ---- learning

    def _lost(self, first: int, p: Floats | None, y: int) -> float:
        """What deciding by log-odds costs, whose highest is the `first`, and whose probabilities are p."""
        if self._costs is None or p is None:
            return 0.0 if first == y else 1.0
        first = int(self._expected(p).argmin())
        if first == y:
            return 0.0
        return 1.0 if self._mode == REJECTING and first < len(p) else float(self._costs[y])

    def plan(
        self,
        instance: Any,
        y: int,
        weight: float,
        trust: tuple[float, float],
        drift: tuple[Any, ...],
        sums: Any,
        words: tuple[float, float],
        curves: tuple[float, int],
    ) -> tuple[Any, ...] | None:
        """(the loss, the five after it, the features then), or None."""
        scored = self._look(instance)
        if scored is None:
            return None
        loss = self._lost(scored.powers.firsts[1], scored.shown, y)
        most = 1.0 if self._costs is None else max(1.0, float(self._costs.max()))
        count, lost, first, second, third = drift
        share = min(loss / most, 1.0)
        evidence = alarm.evidence_after((first, second, third), count, lost, share)
        if not alarm.value(evidence) < alarm.THRESHOLD:
            return None
        plan = Plan(self._seen, y, weight)
        gaps, pools = self._judge(scored, plan, trust[0])
        known = len(scored.x.rows) - self._bias
        old, counted = scored.before, scored.counted
        new = tallied_words(old, known) if counted is None else tallied(old, counted)
        # Rows as entries of one array: NumPy is three times as fast on those.
        entries, rows = self._statistics.view(ROW).ravel(), scored.rows[self._bias :]
        plan.cells.append((entries, rows, old.view(ROW).ravel(), new.view(ROW).ravel()))
        for row, member in enumerate(self._members, 2):
            if member[1] == DUAL_ASCENT:
                sums = self._ascend(scored, plan, row, member, sums)
            elif member[1] == NAIVE_BAYES:
                plan.count_words(scored, *member[4:])
                words = words[0] + weight * len(scored.words), words[1] + weight
            elif member[1] == ADAGRAD:
                plan.adapt(scored, row, *member[4:])
            else:
                plan.average_errors(scored, *member[4:])
        self._plan = plan
        alarmed = count + 1, lost + share, *evidence
        features = self._features + len(scored.x.unknown)
        return loss, (gaps, trust[1] + pools), alarmed, sums, words, curves, features

    def _judge(self, scored: Scored, plan: "Plan", gaps: float) -> tuple[float, float]:
        """D and the pool's loss; the pool, the experts alone, and calibration after this round are planned."""
        T, powers, y = scored.T, scored.powers, plan.y
        teaches = self._seen.item(y) > 0.0
        own, pools, *others = powers.log_losses(column(T, y))
        newton = (T[2:], plan.Y, powers.p(0), plan.weight, False) if teaches else None
        gone = 0.0 if len(self._here) == len(self._present) else log_of(float(T.shape[1]))
        gaps, pool = trust_after(
            [own, *others], gone, newton, self._pool, self._prior, self._present, self._doubt, gaps
        )
        alone, knots, (first, between) = self._losses.copy(), self._sums.copy(), scored.choice
        for row, member in enumerate(self._members, 2):
            p = None if self._costs is None else powers.p(row)
            alone[member[0]] += self._lost(powers.firsts[row], p, y)
        recalibrate_at(scored.p.item(first), teaches and first == y, knots, between)
        arrays, after = (*self._pool, self._losses, self._sums), (*pool, alone, knots)
        plan.numbers += zip(arrays, repeat(ALL), after, strict=False)
        return gaps, pools

    def _ascend(self, scored: Scored, plan: "Plan", row: int, member: tuple[Any, ...], sums: Any) -> Any:
        """The certificate's sums after the step that is planned."""
        s, h, weight = scored.T[row] / member[3], total(scored.u * scored.u), plan.weight
        ascended = ascend(s, plan.y, h, 3, weight, 1.0)
        if ascended[1] is not None:
            plan.step = member[5], Vector(scored.rows, scored.u, EMPTY), ascended[1]
        return sums_after(sums, ascended, plan.y, len(s), h, 3, weight, 1.0, weight)

    def commit(self) -> None:
        """Whatever fails, what was done until then is taken back."""
        table, features, scored, plan = self._table, self._features, self._scored, self._plan
        if scored is None or plan is None or features != len(table):
            raise RuntimeError("no round was planned on this state")
        self._asked.clear()
        events, after, labels = table.events + 1, features + len(scored.x.unknown), len(self._seen)
        try:
            if after > features:
                table.join(scored.x)
                for weights in self._weights:
                    weights.grow(after, labels)
            for array, where, _, new in plan.cells:
                array[where] = new
            if plan.step is not None:
                weights, x, g = plan.step
                weights.step(x, g, 1.0)
        except BaseException:
            for array, where, old, _ in plan.cells:
                array[where] = old
            for weights in self._weights:
                weights.shrink(features, labels)
            table.forget(features)
            self.clear()
            raise
        # From here on nothing is called or made any more, so that nothing can fail.
        for array, where, new in plan.numbers:
            array[where] = new
        table.events, self._features = events, after
        self._scored = self._plan = None


class Plan:
    """What a round with truth y changes: `cells` that are far apart, with what was there, the step, and `numbers`."""

    __slots__ = ("Y", "cells", "numbers", "step", "weight", "y")

    def __init__(self, seen: Floats, y: int, weight: float) -> None:
        self.y, self.weight = y, weight
        self.Y = np.zeros(len(seen))
        self.Y[y] = 1.0
        self.cells: list[Write] = []
        self.step: tuple[Weights, Vector, Floats] | None = None
        self.numbers: list[tuple[Floats, Any, Any]] = [(seen, y, seen.item(y) + 1.0)]

    def count_words(
        self, scored: Scored, smoothing: float, kept: Weights, words: Floats, events: Floats, _: Floats
    ) -> None:
        """Naive Bayes: see its `learn`."""
        flat, places = kept.column(scored.words, self.y)
        old = flat.take(places)
        self.cells.append((flat, places, old, raised(old, self.weight / smoothing)))
        self.numbers.append((words, self.y, words.item(self.y) + self.weight * len(places)))
        self.numbers.append((events, self.y, events.item(self.y) + self.weight))

    def adapt(self, scored: Scored, row: int, rate: float, weights: Weights, squares: Weights) -> None:
        """AdaGrad, whose log-odds are its scores."""
        miss = scored.powers.p(row) - self.Y
        if self.weight != 1.0:
            miss *= self.weight
        W, G, rows = weights.room, squares.room, scored.rows
        old = W[rows], G[rows]
        new = adapted(*old, scored.u, miss, rate)
        self.cells += [(W, rows, old[0], new[0]), (G, rows, old[1], new[1])]

    def average_errors(self, scored: Scored, memory: float, errors: Floats) -> None:
        """The recent errors."""
        step = self.weight / (self.weight + memory)
        self.numbers.append((errors, ALL, errors + step * ((self.Y - scored.p) - errors)))
