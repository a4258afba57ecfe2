"""Ratios of totals: of each unit a pair (n, d), of an arm R = sum n / sum d, such as revenue per order or clicks per visit.

Units are drawn, and values of one unit are alike; so a unit is one pair, whatever its number of orders. n and d are capped
totals, as shares of their caps. For any ratio k, X = n - k d has sum E[X] = 0 where k is the arm's ratio, and with
guesses g of X made before the unit, X - g >= -(1 + k). By Fan's inequality, with psi(l) = -log(1 - l) - l,

    log E(k) = log sum_i w_i exp(l_i sum X / c - psi(l_i) sum (X - g)^2 / c^2),      c = 1 + k,

is that of a nonnegative supermartingale from 1 at k = R, and where R < k; the same of -X where R > k. Sums of n, d and of
the products of their residuals are enough for every k at once.

Of two arms i and j the product of both is one too, since their units are others: R_i - R_j <= e is excluded where

    min_k  log E_i(k + e) + log E'_j(k) >= log(2 / alpha),

k standing for R_j, which nobody knows. No delta method, no union over k: it holds at every look, while the ratio of an arm
stays what it is. An arm that changes only how often its users come has another sum of d and no other ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import log

import numpy as np
from numpy.typing import NDArray

from feedrank.learners.inference.confidence import BETS, LOG_WEIGHTS
from feedrank.service.contract.json_types import JSON, View

Floats = NDArray[np.float64]
PSI: Floats = -np.log1p(-BETS) - BETS
POINTS, HALVINGS, FAR = 33, 30, 1e6


@dataclass(slots=True)
class RatioArm:
    """Sums over the units of one arm: n, d, and products of what they were beyond their guesses."""

    units: int = 0
    n: float = 0.0
    d: float = 0.0
    nn: float = 0.0
    nd: float = 0.0
    dd: float = 0.0

    def add(self, n: float, d: float) -> None:
        """One unit; the guesses are the means so far, drawn to 1/2 by one imagined unit."""
        count = self.units + 1
        beyond_n, beyond_d = n - (self.n + 0.5) / count, d - (self.d + 0.5) / count
        self.nn += beyond_n * beyond_n
        self.nd += beyond_n * beyond_d
        self.dd += beyond_d * beyond_d
        self.units, self.n, self.d = count, self.n + n, self.d + d

    @property
    def ratio(self) -> float | None:
        """R; None without anything to divide by."""
        return self.n / self.d if self.d > 0 else None

    def evidence(self, k: Floats, sign: int) -> Floats:
        """log E of a ratio above each k (sign 1), or below (-1)."""
        c = 1.0 + k
        total = sign * (self.n - k * self.d) / c
        squares = (self.nn - 2 * k * self.nd + k * k * self.dd) / (c * c)
        exponents = np.multiply.outer(total, BETS) - np.multiply.outer(squares, PSI) + LOG_WEIGHTS
        top = exponents.max(axis=1)
        summed: Floats = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
        return summed


@dataclass(slots=True)
class RatioArms:
    """All arms."""

    arms: list[RatioArm]

    @classmethod
    def new(cls, arms: int) -> RatioArms:
        """No units yet."""
        return cls([RatioArm() for _ in range(arms)])

    def excludes(self, i: int, j: int, e: float, alpha: float) -> bool:
        """Whether R_i - R_j <= e is excluded at `alpha`, one side of two."""
        one, other = self.arms[i], self.arms[j]
        own, beside = one.ratio, other.ratio
        if own is None or beside is None or own - e <= beside:
            return False
        # Evidence is least between the two estimates: beyond them one of the two grows, the other is near 0.
        reach = 0.25 * (own - e - beside)
        k = np.linspace(max(0.0, -e, beside - reach), max(0.0, -e, own - e + reach), POINTS)
        return float((one.evidence(k + e, 1) + other.evidence(k, -1)).min()) >= log(2 / alpha)

    def lower(self, i: int, j: int, alpha: float) -> float | None:
        """The least R_i - R_j that is not excluded at `alpha`, one side of two; None where nothing is."""
        own, beside = self.arms[i].ratio, self.arms[j].ratio
        if own is None or beside is None:
            return None
        high = own - beside
        step = max(1e-9, own + beside)
        while not self.excludes(i, j, high - step, alpha):
            step *= 2
            if step > FAR * (own + beside + 1e-9):
                return None
        low = high - step
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.excludes(i, j, middle, alpha) else (low, middle)
        return low

    def intervals(self, alpha: float, scale: float, most: float) -> list[JSON]:
        """Of each pair of arms, i minus j, in the units of the measure: within -`most` and `most`."""
        found = []
        for i, j in combinations(range(len(self.arms)), 2):
            below, above = self.lower(i, j, alpha), self.lower(j, i, alpha)
            one, other = (self.arms[arm].ratio for arm in (i, j))
            low = -most if below is None else max(-most, scale * below)
            high = most if above is None else min(most, -scale * above)
            found.append(
                {
                    "arms": (i, j),
                    "means": [None if each is None else scale * each for each in (one, other)],
                    "difference": None if one is None or other is None else scale * (one - other),
                    "lower": low,
                    "upper": max(low, high),
                    "sign": 1
                    if below is not None and below > 0
                    else -1
                    if above is not None and above > 0
                    else 0,
                    "units": self.arms[i].units + self.arms[j].units,
                }
            )
        return found

    def means(self, scale: float) -> list[float | None]:
        """The ratios, in the units of the measure."""
        return [None if (ratio := arm.ratio) is None else scale * ratio for arm in self.arms]

    def to_json(self) -> list[JSON]:
        return [asdict(arm) for arm in self.arms]

    @classmethod
    def from_json(cls, data: Sequence[View]) -> RatioArms:
        """The inverse of `to_json`."""
        return cls([RatioArm(**arm) for arm in data])
