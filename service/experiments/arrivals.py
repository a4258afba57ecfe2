"""How feedback arrives: how many rounds each arm has served, how many have feedback, and after how long.

A round that counts when its answer comes counts late if the answer does. Where the delay depends on arm and outcome
(say, one arm's failures are reported late) the first answers are no sample of the rounds, and an arm looks better than
it is. So long as the arms differ in the share of rounds that are still without an answer, no verdict may be trusted:

    z = |u_i - u_j| / sqrt(u (1 - u) (1 / n_i + 1 / n_j)) > 2,       u_i = 1 - answered_i / n_i, u of both together.

It only withholds verdicts, so it needs no level of its own. Where rounds count when their time to answer is over
(`wait`, with something to count where none came) there is nothing to watch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from math import frexp, sqrt

from feedrank.service.contract.json_types import JSON, View

BUCKETS = 24  # up to half a second, up to 1, 2, 4, ... seconds; the last holds all that is longer
_MOST_Z = 2.0
_LEAST_DIFFERENCE = 0.01


@dataclass(slots=True)
class Arrivals:
    """One list entry an arm: rounds served, rounds answered, and the answers' delays in buckets that double."""

    served: list[int]
    answered: list[int]
    delays: list[list[int]] = field(default_factory=list)

    @classmethod
    def new(cls, arms: int) -> Arrivals:
        return cls([0] * arms, [0] * arms, [[0] * BUCKETS for _ in range(arms)])

    def serve(self, counts: Sequence[int]) -> None:
        """So many more rounds were served by each arm."""
        self.served = [a + b for a, b in zip(self.served, counts, strict=True)]

    def answer(self, arm: int, delay: float | None) -> None:
        """A round of `arm` was answered `delay` seconds after it was served, if that is recorded."""
        self.answered[arm] += 1
        if delay is not None:
            # frexp: delay = m 2^e with m in [1/2, 1), so it is below 2^e; whole arithmetic on every machine.
            bucket = 0 if delay < 0.5 else frexp(delay)[1]
            self.delays[arm][min(bucket, BUCKETS - 1)] += 1

    def differ(self) -> bool:
        """Whether some arm's rounds stay without an answer more often than another's."""
        # An answer beside its instance was never served; a crash may lose a count: no arm has more answers than rounds.
        n = [max(served, answered) for served, answered in zip(self.served, self.answered, strict=True)]
        for i, j in combinations(range(len(n)), 2):
            if min(n[i], n[j]) == 0:
                continue
            open_i, open_j = 1 - self.answered[i] / n[i], 1 - self.answered[j] / n[j]
            both = 1 - (self.answered[i] + self.answered[j]) / (n[i] + n[j])
            spread = sqrt(both * (1 - both) * (1 / n[i] + 1 / n[j]))
            if abs(open_i - open_j) > max(_LEAST_DIFFERENCE, _MOST_Z * spread):
                return True
        return False

    def quantile(self, arm: int, share: float) -> float | None:
        """A delay, in seconds, that at least this share of the arm's answers did not exceed; None without any."""
        delays = self.delays[arm]
        goal, total = share * sum(delays), 0
        if goal <= 0:
            return None
        for bucket, count in enumerate(delays):
            total += count
            if total >= goal:
                return 0.5 if bucket == 0 else 2.0**bucket
        return None

    def report(self, arm: int) -> JSON:
        """What GET says of one arm."""
        return {
            "served": max(self.served[arm], self.answered[arm]),
            "answered": self.answered[arm],
            "delay_median": self.quantile(arm, 0.5),
            "delay_90": self.quantile(arm, 0.9),
            "delays": self.delays[arm],
        }

    def to_json(self) -> JSON:
        return asdict(self)

    @classmethod
    def from_json(cls, data: View) -> Arrivals:
        return cls(**data)
