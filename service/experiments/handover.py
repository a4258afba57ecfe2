"""Handover: the share of pages that the second arm may serve, by the evidence of interleaved pages so far.

A page is the first arm's, drafted from both, or the second arm's. Only drafted pages are evidence: X in [-1, 1] is the
`gain` of a page (interleave.py), which has mean 0 under every position bias where clicks do not look at what is shown, and
below 0 where what the second arm moves up is clicked less. For fixed bets lambda_k and starts s_j (page 0, 32, 96, 224,
... of the evidence)

    V(d) = sum_j w_j sum_k v_k prod_{t > s_j} (1 + lambda_k (X_t + d)),      w_j = 1 / ((j + 1) (j + 2)), sum w_j <= 1

is a nonnegative supermartingale from 1 as long as the second arm is worse by d or more, and by Ville's inequality it ever
reaches 1 / alpha with chance at most alpha while that is so. It need not be so page by page: as the bets never change,
1 + x <= e^x bounds each product by the mean of X since its start, whatever the drift. The weights v_k are even over [0, 1],
as in Cover's universal portfolio. Later starts let a learner be judged without its first, bad pages, and keep V, hence
the probing, up.

    fewer than LEAST lessons           all are the first arm's
    before the proof                   all are drafted while B > -BUDGET, else min(1, PROBE V(0)) are
    V(MARGIN) >= 1 / alpha and B >= 0  proved: the second arm's, but for WATCH of the pages, which stay drafted
    V(0) >= 1 / alpha                  it is better: said, and nothing else changes
    E >= 1 / DOUBT                     after the proof, E <- max(1, E) sum_k v_k (1 - lambda_k X): all are drafted again
    E >= 1 / ALARM                     it is worse: start anew

So what hands over is that the second arm does not lose MARGIN (WIDE MARGIN = 0.01 of the DCG of a click), and has lost
nothing on balance. To prove it strictly better takes several times the pages where clicks hardly tell the two apart, and
there it matters least; the pages that stay drafted go on to prove it.

B <- B + X, kept within [-2 BUDGET, BUDGET], is what drafting has won or lost: a bad challenger spends its budget within a
few pages and is then probed rarely, one that is no worse is compared on every page.

Clicks at will: once FEW units are there (a team is no attack), only the first max(1, [SLACK mean]) pages of a unit count
among the last GENERATION to 2 GENERATION events, as evidence, as lessons and in click rates, `mean` being the pages of a
unit on average. Units that send a share h of all pages raise that mean at most to mean / (1 - h), so that k of them have
k max(1, SLACK mean / (1 - h)) pages that count, however many they send. The same list by the same coins counts once. While
more than CROWD of the pages come from units with FLOOD, or ten times the average, the share goes back to probing (`alarm`).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from feedrank.learners.inference.confidence import BETS, Capital
from feedrank.learners.kernel import elementary
from feedrank.service.contract.json_types import JSON, View

from .examination import Examination
from .interleave import WIDE

FIRST, DRAFT, SECOND = "first", "draft", "second"
PROBE, WATCH, DOUBT, ALARM, BUDGET = 0.15, 0.1, 1 / 3, 0.001, 4.0
MARGIN = 0.01 / WIDE
LEAST = 20  # lessons before the second arm is shown at all
FEW, SLACK, FLOOD, GENERATION, CROWD = 20, 1.2, 20, 2000, 0.1
STARTS = tuple(32 * (2**j - 1) for j in range(16))
_SHARES = [1 / ((j + 1) * (j + 2)) for j in range(len(STARTS))]
_WEIGHTS = BETS / elementary.total(BETS)  # of a geometric grid: even over [0, 1]
_LARGEST = 1e6  # of V and E: beyond, nothing changes, and coming back would take for ever
_HIGHEST = 500  # exponent of two of a bet's capital in the sum, which stays finite


@dataclass(slots=True)
class Handover:
    """The state of the rule, a pure fold over feedback."""

    alpha: float
    capital: Capital = field(default_factory=lambda: Capital.new(2 * len(STARTS)))
    pages: int = 0
    lessons: int = 0
    value: float = 1.0
    safety: float = 1.0
    balance: float = 0.0
    detector: float = 1.0
    proved: bool = False
    better: bool = False
    restarts: int = 0
    events: int = 0
    counts: list[dict[str, int]] = field(default_factory=lambda: [{}, {}])
    crowded: list[int] = field(default_factory=lambda: [0, 0])
    units: list[int] = field(default_factory=lambda: [0, 0])
    by_units: list[int] = field(default_factory=lambda: [0, 0])
    examination: Examination = field(default_factory=Examination)

    @property
    def alarm(self) -> str | None:
        """Why the second arm is held back though it may have been proved."""
        pages = self.events % GENERATION + (GENERATION if self.events >= GENERATION else 0)
        if pages >= 100 and sum(self.crowded) > CROWD * pages:
            return "many pages come from few units: their clicks do not count"
        return None

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of pages that are drafted, and that are the second arm's."""
        if self.lessons < LEAST:
            return 0.0, 0.0
        if self.alarm:
            return PROBE, 0.0
        if self.proved:
            return (WATCH, 1 - WATCH) if self.detector < 1 / DOUBT else (1.0, 0.0)
        return (1.0 if self.balance > -BUDGET else min(1.0, PROBE * self.value)), 0.0

    def mode(self, coin: float) -> str:
        """Whose page it is; `coin` is in [0, 1)."""
        drafted, second = self.shares
        return SECOND if coin < second else DRAFT if coin < second + drafted else FIRST

    def may_count(self, unit: object) -> bool:
        """Whether the next page of this unit still counts."""
        if unit is None or sum(self.units) < FEW:
            return True
        return self._count(f"u{unit}") < max(1, int(SLACK * self._mean))

    @property
    def _mean(self) -> float:
        """Pages of a unit on average."""
        return sum(self.by_units) / max(1, sum(self.units))

    def _count(self, key: str) -> int:
        return self.counts[0].get(key, 0) + self.counts[1].get(key, 0)

    def take(self, event: View) -> bool:
        """One page with feedback, and whether it counts; it is evidence if it has a `gain`."""
        if event.get("truth") == {"clicks": []}:
            return False  # says nothing of either order
        if self.events and self.events % GENERATION == 0:
            self.counts, self.crowded = [{}, self.counts[0]], [0, self.crowded[0]]
            self.units, self.by_units = [0, self.units[0]], [0, self.by_units[0]]
        self.events += 1
        self.lessons += 1
        unit, gain = event.get("unit"), event.get("gain")
        fresh = self.may_count(unit)
        if unit is not None:
            self.by_units[0] += 1
            self.units[0] += f"u{unit}" not in self.counts[0]
            self.crowded[0] += self._add(f"u{unit}") > max(FLOOD, 10 * self._mean)
            if gain is not None:
                fresh = self._add(f"c{event.get('coins')}") == 1 and fresh
        if gain is not None and fresh:
            self._bet(gain)
            self.examination.take(event.get("moves", ()))
        return fresh

    def _add(self, key: str) -> int:
        self.counts[0][key] = self.counts[0].get(key, 0) + 1
        return self._count(key)

    def _bet(self, x: float) -> None:
        rows = [j for j, start in enumerate(STARTS) if start <= self.pages]
        self.pages += 1
        if self.proved:
            factor = sum((_WEIGHTS * (1 - BETS * x)).tolist())
            self.detector = min(max(1.0, self.detector) * factor, _LARGEST)
            if self.detector >= 1 / ALARM:
                self._restart()
                return
        self.balance = max(-2 * BUDGET, min(self.balance + x, BUDGET))
        count = len(rows)
        self.capital.add([*rows, *(len(STARTS) + row for row in rows)], [x] * count + [x + MARGIN] * count)
        exponent = np.minimum(self.capital.exponent, _HIGHEST).astype(np.int32)
        each = np.ldexp(self.capital.mantissa * _WEIGHTS, exponent).tolist()
        self.value, self.safety = _wealth(each[: len(STARTS)]), _wealth(each[len(STARTS) :])
        self.better = self.better or self.value >= 1 / self.alpha
        self.proved = self.proved or (self.safety >= 1 / self.alpha and self.balance >= 0)

    def _restart(self) -> None:
        self.capital, self.pages = Capital.new(2 * len(STARTS)), 0
        self.value = self.safety = 1.0
        self.detector, self.proved, self.better, self.balance = 1.0, False, False, -BUDGET
        self.restarts += 1

    def report(self) -> JSON:
        """What GET says."""
        drafted, second = self.shares
        return {
            "drafted": drafted,
            "share": second,
            "evidence": self.value,
            "safety": self.safety,
            "balance": self.balance,
            "needed": round(1 / self.alpha, 6),
            "pages": self.pages,
            "proved": self.proved,
            "better": self.better,
            "restarts": self.restarts,
            "alarm": self.alarm,
            "examination": self.examination.report(),
        }

    def to_json(self) -> JSON:
        """All of it, as JSON values."""
        return {
            "mantissa": b64encode(self.capital.mantissa.astype("<f8").tobytes()).decode(),
            "exponent": b64encode(self.capital.exponent.astype("<i8").tobytes()).decode(),
            "examination": self.examination.to_json(),
            **{name: getattr(self, name) for name in _PLAIN},
        }

    @classmethod
    def from_json(cls, alpha: float, data: View) -> Handover:
        """The inverse of `to_json`."""
        shape = (2 * len(STARTS), len(BETS))
        capital = Capital(
            np.frombuffer(b64decode(data["mantissa"]), "<f8").reshape(shape).copy(),
            np.frombuffer(b64decode(data["exponent"]), "<i8").reshape(shape).astype(np.int64),
        )
        examination = Examination.from_json(data["examination"])
        return cls(
            alpha, capital, examination=examination, **{name: data[name] for name in _PLAIN if name in data}
        )


def _wealth(each: Sequence[Sequence[float]]) -> float:
    """V of the bets of every start; sums in the order of the list: equal logs must give equal states on every machine."""
    whole = 1.0 - sum(_SHARES) + sum(w * sum(row) for w, row in zip(_SHARES, each, strict=True))
    return min(whole, _LARGEST)


_PLAIN = (
    "pages", "lessons", "value", "safety", "balance", "detector", "proved", "better", "restarts", "events", "counts",
    "crowded", "units", "by_units",
)  # fmt: skip
