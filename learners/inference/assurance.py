"""When to decide: a promise on how often decisions are right, proved from the record at every moment.

A caller asks for decisions under a bound q, a precision; d = 1 - q. A prediction has a certainty c (the probability
of what it would decide, or its margin) and is, under the bound, one of four:

    watched   c < tau: it abstains
    trial     c >= tau, but nothing is proved: it abstains, and its answer counts
    audit     c >= tau and proved, but drawn with chance DRAWN: it abstains, so that what nobody judges is covered
    decided   c >= tau and proved

The **record** is one sequence, the predictions of c >= tau. tau may follow whatever came before, so that one proof
does for all thresholds: proportions.py bounds the running mean of the chances of a mistake of any sequence, however
it is picked, as long as each is picked before its truth. With W wrong of the n that count,

    proved    the evidence against a mean chance of d or more has reached 1 / alpha;   decided only while that holds

There are two ways to count, each with half of LEVEL:

    all       whatever was judged; what is decided, or an audit, and still open counts as wrong
    drawn     trials and audits alone; open audits count as wrong. It needs nobody to judge what was decided

Counting an open one as wrong can only lower the evidence, so that whatever proves with it proves with its truth.

**What is proved**, but for a chance of LEVEL, at every moment, however often one looks and whatever the stream does:
the mean chance of a mistake of what counts is below d; `all`: of trials, audits and everything decided. `drawn`: of
trials and audits. An audit differs from what is decided by nothing but chance, so that this holds of what is decided
as far as the stream now is as it was. Assumed of people: who answers abstentions does not pick them by their truth.
What has expired is not open.

**When the stream changes**, a record of better days says little of now. Two accounts stop that, whatever comes:

    B <- min(CREDIT, B + d - [wrong])    for each decided prediction that is judged, from START
    A <- min(AUDITS, A + d - [wrong])    for each audit that is judged, from AUDITS

Below 1 of either it pauses: tau is chosen anew, from what comes now, and trials alone have to lift B from PAUSED to
START. So of N decisions that were judged, after k pauses, M <= d N + (k + 1) START were wrong, and M <= d N + CREDIT in
any stretch between two of them: inequalities on every sequence, but for what was decided while others waited.

**By account** (`account`) nothing has to be proved: after trials have lifted B from 0 to START, it decides whenever
c >= tau and neither account is spent, an open decision reserving OPEN d of B, an open audit d of A. What holds then is
the inequality above, on every sequence and with no chance to fail: M <= d N + (k + 1) START of N decisions that were
judged, after k pauses. It says nothing of chances; it decides sooner, and more where d is near the best possible.

**tau** is the least threshold at which the mistakes among the last WINDOW judged predictions are as seldom as the
record can bear over half as many predictions again; by account, below MOST d. It settles how much is decided, and
nothing of what is proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log
from typing import Any

import numpy as np

from ..json_types import Json
from .proportions import least_right, log_evidence

__all__ = ["AUDIT", "DECIDED", "DRAWN", "LEVEL", "TRIAL", "WATCHED", "Assurance"]

WATCHED, TRIAL, AUDIT, DECIDED = "watched", "trial", "audit", "decided"
DRAWN = 0.05
LEVEL = 0.05
START, CREDIT, AUDITS, PAUSED = 2.0, 6.0, 4.0, -1.0
WINDOW, FIRST = 1_024, 32
LEAST, MOST = 0.2, 0.85
SPARE, RELAXED = 1.0, 1.5
AHEAD = 100
OPEN = 0.2  # 500 open at a full account: twice the standard deviation of their mistakes is what it holds
EVERY = 64  # of so many judged predictions one renews tau
ALPHA = LEVEL / 2  # of each way


@dataclass(slots=True)
class Assurance:
    """The record of one bound: a fold over the predictions under it that were judged, in the order of the log."""

    precision: float
    judged: int = 0
    pauses: int = 0
    paused: bool = False
    credit: float = START
    audits: float = AUDITS
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])  # n and W of `all`, n and W of `drawn`
    recent: list[list[float]] = field(default_factory=list)  # certainty, and 1 if it was wrong
    threshold: float = inf
    following: int = FIRST  # judged predictions at which tau is chosen next
    account: bool = False
    _seen: tuple[int, int, int] = (-1, 0, 0)
    _proved: bool = False
    _asked: tuple[int, int, int] = (-1, 0, 0)
    _least: float | None = None

    @classmethod
    def new(cls, precision: float, account: bool = False) -> Assurance:
        """An empty record. By account it begins with trials, as after a pause."""
        return cls(precision, paused=True, credit=0.0, account=True) if account else cls(precision)

    def judge(self, kind: str, certainty: float, right: bool) -> None:
        """The truth of a prediction under the bound has come."""
        self.judged += 1
        gain = 1.0 - self.precision - (not right)
        if kind != WATCHED:
            self.counts[0] += 1
            self.counts[1] += not right
        if kind in (TRIAL, AUDIT):
            self.counts[2] += 1
            self.counts[3] += not right
        if kind == DECIDED:
            self.credit = min(CREDIT, self.credit + gain)
        elif kind == AUDIT:
            self.audits = min(AUDITS, self.audits + gain)
        elif kind == TRIAL and self.paused:
            self.credit = min(START, max(PAUSED, self.credit + gain))
            self.paused = self.credit < START
        self.recent.append([certainty, float(not right)])
        del self.recent[:-WINDOW]
        if not self.paused and min(self.credit, self.audits) < 1.0:
            self.pauses += 1
            self.paused, self.credit, self.audits = True, PAUSED, AUDITS
            self.threshold, self.following = inf, self.judged + FIRST
            self.recent.clear()
        if self.judged >= self.following:
            self.following = self.judged + 1 + self.judged // EVERY
            self.threshold = self._choose()

    def kind(self, certainty: float, chance: float, decided: int, audits: int) -> str:
        """What a prediction of this certainty is. `chance` in [0, 1) draws audits; `decided` and `audits` are open now."""
        if not certainty >= self.threshold:
            return WATCHED
        seen = (self.judged, decided, audits)
        if seen != self._seen:
            self._proved = self._covered(decided, audits) if self.account else self._evident(decided, audits)
            self._seen = seen
        if not self._proved or self.paused:
            return TRIAL
        return AUDIT if chance < DRAWN else DECIDED

    def proved(self, decided: int, audits: int) -> float | None:
        """The precision proved so far; None if the record proves nothing."""
        seen = (self.judged, decided, audits)
        if seen != self._asked:
            n, wrong = self._ways(decided, audits)
            least = float(least_right(wrong, n, ALPHA).max())
            self._asked, self._least = seen, least if least > 1e-9 else None
        return self._least

    @property
    def nbytes(self) -> int:
        """Memory taken, roughly."""
        return 120 * len(self.recent) + 1_000

    def _covered(self, decided: int, audits: int) -> bool:
        """Whether both accounts bear what is open, and one mistake more."""
        d = 1.0 - self.precision
        return self.credit - OPEN * d * decided >= 1.0 and self.audits - d * audits >= 1.0

    def _evident(self, decided: int, audits: int) -> bool:
        n, wrong = self._ways(decided, audits)
        return bool((log_evidence(wrong, n, 1.0 - self.precision) >= -log(ALPHA)).any())

    def _ways(self, decided: int, audits: int) -> tuple[Any, Any]:
        n, wrong, drawn, wrong_drawn = self.counts
        open_ones = decided + audits
        return (
            np.array([n + open_ones, drawn + audits], dtype=np.float64),
            np.array([wrong + open_ones, wrong_drawn + audits], dtype=np.float64),
        )

    def _bearable(self, n: int) -> float:
        """The most mistakes with which a record of n proves d."""
        low, high = -1.0, (1.0 - self.precision) * n
        least = -log(ALPHA)
        for _ in range(12):
            middle = (low + high) / 2
            if log_evidence(np.array([middle]), np.array([float(n)]), 1.0 - self.precision)[0] >= least:
                low = middle
            else:
                high = middle
        return low

    def _choose(self) -> float:
        """tau."""
        d = 1.0 - self.precision
        target = MOST * d if self.account else self._target(d)
        recent = np.array(self.recent)
        order = np.argsort(-recent[:, 0], kind="stable")
        certainty, wrongs = recent[order, 0], recent[order, 1].cumsum()
        mistakes = (wrongs + 0.5 + np.sqrt(wrongs)) / np.arange(1, len(order) + 1)
        if len(order) >= FIRST:  # where few are as good as they should be, the best of them
            target = min(max(target, RELAXED * float(mistakes[FIRST - 1 :].min())), MOST * d)
        last = np.append(certainty[1:] < certainty[:-1], True)  # of those that are as certain
        fits = np.flatnonzero((mistakes <= target) & last)
        return float(certainty[fits[-1]]) if len(fits) else inf

    def _target(self, d: float) -> float:
        """How seldom mistakes are to be, above tau, for the record to go on proving d."""
        n, wrong, *_ = self.counts
        ahead = max(n // 2, AHEAD)
        share = (self._bearable(n + ahead) - wrong - SPARE) / ahead
        proved = wrong <= self._bearable(n) and not self.paused
        return min(max(share, LEAST * d), MOST * d) if proved else LEAST * d

    # Kept

    def dump(self) -> dict[str, Json]:
        """As JSON, for a snapshot."""
        names = (
            "precision",
            "judged",
            "pauses",
            "paused",
            "credit",
            "audits",
            "following",
            "counts",
            "recent",
        )
        kept = {name: getattr(self, name) for name in names}
        kept |= {"threshold": None if self.threshold == inf else self.threshold}
        return kept | {"account": True} if self.account else kept

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Assurance:
        """What was dumped; ValueError, KeyError or TypeError if it was not that."""
        n, wrong, drawn, wrong_drawn = map(int, data["counts"])
        threshold = data["threshold"]
        return cls(
            float(data["precision"]),
            int(data["judged"]),
            int(data["pauses"]),
            bool(data["paused"]),
            float(data["credit"]),
            float(data["audits"]),
            [n, wrong, drawn, wrong_drawn],
            [[float(certainty), float(wrong)] for certainty, wrong in data["recent"]],
            inf if threshold is None else float(threshold),
            int(data["following"]),
            bool(data.get("account", False)),
        )
