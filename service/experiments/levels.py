"""What units tell of the arms: of a split by the first outcome of each, of interleaved lists also by its mean over more.

A unit's rounds are one cluster, and it counts once in a sequence of independent units: a confidence sequence by Ville's
inequality for the supermartingale of `feedrank.learners.inference.confidence`, whose bets on X_ij and on X_ji it keeps.

split       Only a unit's first outcome: who has a second one may be the arm's doing. Where users leave after a failure, the
            means of those who stayed say that the arm which drives its users away is the better one. Their means by
            round are kept beside (`returns`), and nobody is named by them. A unit of arm a, with shares p and guesses m
            made before it, adds for every arm b

                Y_b = m_b + 1[b = a] (y - m_a) / p_a,      X_ij = Y_i - Y_j,      X_ij - (m_i - m_j) >= -1 / min(p_i, p_j)

            E[X_ij | past] is the effect at this time whatever m is, since the arm is a coin that the unit's past does not
            know. m_b is the mean of the arm's units before, plus theta (x - mean of theirs) where the unit brings a
            number x that was known before the experiment (CUPED): good guesses leave less noise. theta is the common
            slope of the units before, so it is predictable and nothing is assumed of x.
interleave  Every arm has a hand in every list, so that nobody stays or leaves for one of them. At level k a unit counts
            when its 2^k-th round is in, by the mean of its first 2^k rounds. Level k has the share s_k of the error,
            sum s_k <= 1, so by a union bound all intervals of all levels hold together. X_ij is the difference of two
            arms' mean credits, or losses, on the same lists; its guess is 0 and c = 1.

What is covered is the running mean over units of the effect on their first outcome, or on their first 2^k rounds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from math import isnan, nan, sqrt

import numpy as np

from feedrank.learners.inference.confidence import BETS, Capital
from feedrank.service.contract.json_types import JSON, View

from .packing import pack, unpack

LEVELS = 16
MOST_RETURNS = 64  # rounds of a unit that are told apart
_RIDGE = 0.25
# log(2 / (0.05 s_k)) in tenths: enough to compare the levels, and the same on every machine.
_GOALS = (4.1, 5.5, 6.6, 7.3, 7.8, 8.2, 8.5, 8.8, 9.1, 9.3, 9.5, 9.7, 9.8, 10.0, 10.1, 10.3)
NO_COVARIATE = nan


def level_share(level: int, many: bool = True) -> float:
    """s_k of the error: 2/3 for the first round of every unit, 1 / (3 k (k + 1)) for level k; all of it if there is one.

    There are `many` where interleaved units count.
    """
    if not many:
        return 1.0
    return 2 / 3 if level == 0 else 1 / (3 * level * (level + 1))


@dataclass(slots=True)
class Fit:
    """The units of one arm: their number, the sum of their values, and the moments with x of those that bring one."""

    n: int = 0
    y: float = 0.0
    with_x: int = 0
    x: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    y_with_x: float = 0.0

    def add(self, y: float, x: float) -> None:
        self.n += 1
        self.y += y
        if not isnan(x):
            self.with_x += 1
            self.x += x
            self.xx += x * x
            self.xy += x * y
            self.y_with_x += y

    def moments(self) -> tuple[float, float]:
        """(sum (x - mean x)^2, sum (x - mean x) (y - mean y))."""
        if self.with_x == 0:
            return 0.0, 0.0
        mean = self.x / self.with_x
        return self.xx - mean * self.x, self.xy - mean * self.y_with_x


@dataclass(slots=True)
class Level:
    """n units with sum m_b and the own units of every arm, sum (X - guess)^2 of every pair, and the capital of both its
    bets.

    Rows 2 r and 2 r + 1 of `capital` are of X_ij and X_ji of the pair r.
    """

    n: int
    guesses: list[float]
    squares: list[float]
    arms: list[Fit]
    capital: Capital

    @classmethod
    def new(cls, arms: int) -> Level:
        pairs = arms * (arms - 1) // 2
        return cls(0, [0.0] * arms, [0.0] * pairs, [Fit() for _ in range(arms)], Capital.new(2 * pairs))

    def slope(self) -> float:
        """theta: the common slope of y on x within the arms, drawn to 0."""
        xx = xy = 0.0
        for fit in self.arms:
            own = fit.moments()
            xx, xy = xx + own[0], xy + own[1]
        return xy / (xx + _RIDGE)

    def guess(self, arm: int, x: float, slope: float) -> float:
        """m_b(x) within [0, 1], drawn to 1/2 by one imagined unit."""
        fit = self.arms[arm]
        mean = (fit.y + 0.5) / (fit.n + 1)
        if isnan(x) or fit.with_x == 0:
            return mean
        return min(1.0, max(0.0, mean + slope * (x - fit.x / fit.with_x)))

    def split(self, arm: int, y: float, x: float, shares: Sequence[float]) -> None:
        """A unit of `arm` with mean value `y`."""
        slope = 0.0 if isnan(x) else self.slope()
        own = 0.0
        for other in range(len(self.arms)):
            guess = self.guess(other, x, slope)
            self.guesses[other] += guess
            if other == arm:
                own = (y - guess) / shares[arm]
        rows, deviations = [], []
        for pair, (i, j) in enumerate(combinations(range(len(self.arms)), 2)):
            if arm in (i, j):
                self.squares[pair] += own * own
                off = (own if arm == i else -own) * min(shares[i], shares[j])
                rows += [2 * pair, 2 * pair + 1]
                deviations += [off, -off]
        self.capital.add(rows, deviations)
        self.n += 1
        self.arms[arm].add(y, x)

    def paired(self, values: Sequence[float]) -> None:
        """A unit that was served by all arms, with the mean value of each."""
        self.n += 1
        for arm, value in enumerate(values):
            self.arms[arm].add(value, NO_COVARIATE)
        deviations = []
        for pair, (i, j) in enumerate(combinations(range(len(values)), 2)):
            off = values[i] - values[j]
            self.squares[pair] += off * off
            deviations += [off, -off]
        self.capital.add(range(len(deviations)), deviations)

    def ahead(self, i: int, j: int) -> float:
        """sum of the guesses of X_ij."""
        return self.guesses[i] - self.guesses[j]

    def means(self) -> list[float | None]:
        """The arms' mean value a unit, less what the units' x explains of it; None without units."""
        slope, all_with_x = self.slope(), sum(fit.with_x for fit in self.arms)
        overall = sum(fit.x for fit in self.arms) / all_with_x if all_with_x else 0.0
        return [
            None
            if fit.n == 0
            else fit.y / fit.n - (slope * (fit.x / fit.with_x - overall) if fit.with_x else 0.0)
            for fit in self.arms
        ]


@dataclass(slots=True)
class Return:
    """Of one arm: how many units reached a round, and the sum of their values in it."""

    units: int = 0
    total: float = 0.0


@dataclass(slots=True)
class UnitLevels:
    """All levels of one measure, and of each unit that may come back how often it did.

    `shares` are the arms' shares of units in a split; None where every unit is served by all arms, and then `totals` are
    a unit's sums. `returns` has, for a unit's 1st, 2nd, ... outcome in a split, who reached it.
    """

    width: int
    shares: tuple[float, ...] | None
    levels: list[Level] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    counts: array[int] = field(default_factory=lambda: array("q"))
    totals: array[float] = field(default_factory=lambda: array("d"))
    returns: list[list[Return]] = field(default_factory=list)

    def add(self, unit: int | None, arm: int, values: Sequence[float], x: float = NO_COVARIATE) -> None:
        """A round of `unit`: the value of its arm, or the values of all arms. Without a name it is a unit of its own."""
        if unit is None:
            self._enter(0, arm, values, x)
            return
        slot = self.slots.get(unit)
        if slot is None:
            slot = self.slots[unit] = len(self.counts)
            self.counts.append(0)
            self.totals.extend([0.0] * (self.width if self.shares is None else 0))
        self.counts[slot] = count = self.counts[slot] + 1
        if self.shares is not None:
            self._came_back(count, arm, values[0])
            if count == 1:
                self._enter(0, arm, values, x)
            return
        start = slot * self.width
        for place, value in enumerate(values, start):
            self.totals[place] += value
        if count & (count - 1) == 0 and count.bit_length() <= LEVELS:
            mean = [total / count for total in self.totals[start : start + self.width]]
            self._enter(count.bit_length() - 1, arm, mean, NO_COVARIATE)

    def _came_back(self, count: int, arm: int, value: float) -> None:
        """The unit's `count`-th outcome."""
        if count > MOST_RETURNS:
            return
        if count > len(self.returns):
            self.returns.append([Return() for _ in range(self.width)])
        own = self.returns[count - 1][arm]
        own.units += 1
        own.total += value

    def _enter(self, level: int, arm: int, values: Sequence[float], x: float) -> None:
        while len(self.levels) <= level:
            self.levels.append(Level.new(self.width))
        if self.shares is None:
            self.levels[level].paired(values)
        else:
            self.levels[level].split(arm, values[0], x, self.shares)

    def c(self, i: int, j: int) -> float:
        """How far X_ij can fall below its guess."""
        return 1.0 if self.shares is None else 1 / min(self.shares[i], self.shares[j])

    def units(self) -> list[int]:
        """Units of each arm with at least one round."""
        return [fit.n for fit in self.levels[0].arms] if self.levels else [0] * self.width

    def sharpest(self, pair: int, i: int, j: int) -> int:
        """The level that tells most of a pair, by about the width of its interval.

        (sqrt(2 V g) + c g) / n with g for log(2 / (alpha s_k)).
        """

        def width(k: int) -> float:
            level, g = self.levels[k], _GOALS[k]
            reach = sqrt(2 * level.squares[pair] * g) + self.c(i, j) * g
            return reach / level.n if level.n else float("inf")

        return min(range(len(self.levels)), key=width, default=0)

    def each_pair(self) -> Iterator[tuple[int, int, int]]:
        """(number of the pair, i, j), i before j."""
        for pair, (i, j) in enumerate(combinations(range(self.width), 2)):
            yield pair, i, j

    def to_json(self) -> JSON:
        return {
            "levels": [
                {
                    "n": level.n,
                    "guesses": level.guesses,
                    "squares": level.squares,
                    "arms": [asdict(fit) for fit in level.arms],
                    "mantissa": pack(level.capital.mantissa.astype("<f8")),
                    "exponent": pack(level.capital.exponent.astype("<i8")),
                }
                for level in self.levels
            ],
            "units": pack(np.fromiter(self.slots, dtype="<u8", count=len(self.slots))),
            "counts": pack(np.array(self.counts, dtype="<i8")),
            "totals": pack(np.array(self.totals, dtype="<f8")),
            "returns": [[asdict(one) for one in arms] for arms in self.returns],
        }

    def load(self, data: View) -> UnitLevels:
        """Itself, as it was when it was written."""
        self.levels = [_level(level) for level in data["levels"]]
        self.slots = {unit: slot for slot, unit in enumerate(unpack(data["units"], "<u8"))}
        self.counts = array("q", unpack(data["counts"], "<i8"))
        self.totals = array("d", unpack(data["totals"], "<f8"))
        self.returns = [[Return(**one) for one in arms] for arms in data["returns"]]
        return self


def _level(data: View) -> Level:
    capital = Capital(
        np.array(unpack(data["mantissa"], "<f8")).reshape(-1, len(BETS)),
        np.array(unpack(data["exponent"], "<i8"), dtype=np.int64).reshape(-1, len(BETS)),
    )
    return Level(data["n"], data["guesses"], data["squares"], [Fit(**fit) for fit in data["arms"]], capital)
