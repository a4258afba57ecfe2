"""The apprentice: the caller's own first item is served, but for a share e, until the learner is proved not worse.

A round serves A with probability p(A) = e pi(A) + (1 - e) [A is the first], pi the learner's probabilities. Then

    X = r (pi(A) - [A is the first]) / p(A),    E[X | past] = value of the learner - value of the baseline,

with X >= -1 / (1 - e) and -X >= -1 / e. The confidence sequences of `inference.confidence` bound the running mean of
the difference at all times at once; when its lower bound passes -`NEAR`, the learner is released and serves by itself.
A log of the baseline alone proves nothing: with e = 0 there would be nothing to compare.
"""

from dataclasses import dataclass, field

import numpy as np

from ..inference.confidence import Capital, lower_bounds
from ..instances import Floats
from ..json_types import Json
from ..weights.base import Arrays, Counters

CONFIDENCE = 0.95
NEAR = 0.01  # of the range of rewards: what counts as not worse


ApprenticeMark = tuple[int, float, int, Capital | None]


@dataclass(slots=True)
class Apprentice:
    """The evidence so far; `released` is the version of the release, 0 before it."""

    share: float
    rounds: int = 0
    sum: float = 0.0
    released: int = 0
    capital: Capital = field(default_factory=lambda: Capital.new(2))

    @property
    def serving(self) -> bool:
        """Whether the caller's first item is served as a rule."""
        return self.share > 0.0 and not self.released

    def mixed(self, policy: Floats, first: int) -> Floats:
        """p of every item while it is an apprentice."""
        p = self.share * policy
        p[first] += 1.0 - self.share
        return p

    def add(self, probability: float, is_first: bool, reward: float, version: int) -> None:
        """One round that was served with this probability; what was served without it proves nothing."""
        if not self.serving or not 0.0 < probability <= 1.0:
            return
        own = max(0.0, (probability - (1.0 - self.share) * is_first) / self.share)
        difference = reward * (own - is_first) / probability
        self.rounds += 1
        self.sum += difference
        # Divided by the bounds: both are at least -1.
        self.capital.add((0, 1), (difference * (1.0 - self.share), -difference * self.share))
        if self.interval()[0] > -NEAR:
            self.released = version

    def mark(self) -> ApprenticeMark:
        """What `rewind` needs to take the next round back."""
        capital = (
            Capital(self.capital.mantissa.copy(), self.capital.exponent.copy()) if self.serving else None
        )
        return self.rounds, self.sum, self.released, capital

    def rewind(self, mark: ApprenticeMark) -> None:
        """As at the mark."""
        self.rounds, self.sum, self.released, capital = mark
        if capital is not None:
            self.capital = capital

    def interval(self) -> tuple[float, float]:
        """(lower, upper) of the mean difference so far, valid at every look."""
        if not self.rounds or self.share >= 1.0:
            return -1.0, 1.0
        bounds = (1.0 / (1.0 - self.share), 1.0 / self.share)
        level = (1.0 - CONFIDENCE) / 2.0
        below, above = lower_bounds(self.capital.logs(), (0.0, 0.0), self.rounds, bounds, level)
        lower = min(1.0, max(-1.0, below))
        return lower, max(lower, min(1.0, -above))

    def describe(self) -> dict[str, Json]:
        """As `GET` shows it."""
        lower, upper = self.interval()
        mean = self.sum / self.rounds if self.rounds else None
        return {
            "share": self.share,
            "rounds": self.rounds,
            "difference": mean,
            "lower": lower,
            "upper": upper,
            "released": self.released or None,
        }

    def arrays(self) -> Arrays:
        """The capital."""
        return {"capital": self.capital.mantissa, "exponents": self.capital.exponent}

    def counters(self) -> Counters:
        """The rest."""
        return {"rounds": self.rounds, "sum": self.sum, "released": self.released}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """All as it was."""
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("another number of bets")
        self.rounds, self.sum, self.released = counters["rounds"], counters["sum"], counters["released"]
        self.capital = Capital(np.array(arrays["capital"]), np.array(arrays["exponents"]))
