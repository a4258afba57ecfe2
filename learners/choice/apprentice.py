"""The apprentice: the item that the caller would show is served, but for a share e, until the learner is proved not worse.

A round serves A with probability p(A) = e pi(A) + (1 - e) [A = b], pi the learner's probabilities and b the baseline: the
first item that was allowed when A was drawn. With any m that was settled before the draw,

    X = (r - m) (pi(A) - [A = b]) / p(A),    E[X | past] = value of the learner - value of the baseline,

since sum_a pi(a) - [a = b] = 0, and |X| <= c = 1 / min(e, 1 - e). m is the mean reward so far: what is close to its guess
tells with little noise. The confidence sequences of `inference.confidence` bound the running mean of the difference at all
times at once; when its lower bound passes -`NEAR`, the learner is released.

A released learner serves `RELEASED` of the rounds, the baseline the rest: that is what shows when it becomes worse. With
Y = -X - NEAR, which has a mean of at most 0 while it is not, and the bets l of the confidence sequences,

    S_l <- max(S_l, 1) (1 + l Y / (c + NEAR)),    taken back when sum_l w_l S_l >= `ALARM`

An e-detector (Shin, Ramdas and Rinaldo 2023): while the learner is not worse, on average at least ALARM rounds go by, in
practice thousands. What is taken back is an apprentice again and starts its proof anew.

Of a round of several draws (slots), X is the mean of theirs: each has its expectation given the draws before it, whatever
the rewards have to do with each other.

Evidence is what this learner itself drew in the present phase, and nothing else. A log of the baseline alone proves
nothing: with e = 0 there would be nothing to compare.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..inference.confidence import BETS, WEIGHTS, Capital, lower_bounds
from ..instances import Floats
from ..json_types import Json
from ..kernel.elementary import total
from ..weights.base import Arrays, Counters
from .draw_records import DrawEvidence

CONFIDENCE = 0.95
NEAR = 0.01  # of the range of rewards: what counts as not worse
RELEASED = 0.9
ALARM = 30.0


@dataclass(slots=True)
class Phase:
    """The evidence since the version `since`: rounds, their rewards, the sum of X."""

    since: int = 0
    rounds: int = 0
    rewards: float = 0.0
    sum: float = 0.0


ApprenticeMark = tuple[Phase, int, int, Capital, Floats]


@dataclass(slots=True)
class Apprentice:
    """`share` is e of the spec; `released` the version of the release, 0 without one; `taken_back` that of its end."""

    share: float
    released: int = 0
    taken_back: int = 0
    phase: Phase = field(default_factory=Phase)
    capital: Capital = field(default_factory=lambda: Capital.new(2))
    alarms: Floats = field(default_factory=lambda: np.ones(len(BETS)))

    @property
    def present_share(self) -> float:
        """The learner's share of the rounds that are drawn now; 0 where there is no baseline."""
        return max(self.share, RELEASED) if self.released else self.share

    def mixed(self, policy: Floats, baseline: int) -> Floats:
        """p of every item."""
        share = self.present_share
        p = share * policy
        p[baseline] += 1.0 - share
        return p

    def add(self, draws: Sequence[tuple[DrawEvidence, float]], version: int) -> None:
        """One round of the present phase and its rewards; a draw of another phase tells of that one."""
        share, phase = self.present_share, self.phase
        draws = [
            (one, reward)
            for one, reward in draws
            if one.since == phase.since and one.share == share and one.probability > 0.0
        ]
        if not draws:
            return
        guess = (phase.rewards + 0.5) / (phase.rounds + 1)
        gains = [(reward - guess) * ((one.own - one.is_baseline) / one.probability) for one, reward in draws]
        difference = sum(gains) / len(gains)
        reward = sum(reward for _, reward in draws) / len(draws)
        c = _reach(share)
        self.phase = Phase(phase.since, phase.rounds + 1, phase.rewards + reward, phase.sum + difference)
        self.capital.add((0, 1), (difference / c, -difference / c))
        if not self.released:
            if self.interval()[0] > -NEAR:
                self.released = version
                self._begin(version)
            return
        factors = 1.0 + BETS * ((-difference - NEAR) / (c + NEAR))
        self.alarms = np.maximum(self.alarms, 1.0) * factors
        if total(WEIGHTS * self.alarms) >= ALARM:
            self.released, self.taken_back = 0, version
            self._begin(version)

    def _begin(self, version: int) -> None:
        self.phase = Phase(version)
        self.capital = Capital.new(2)
        self.alarms = np.ones(len(BETS))

    def mark(self) -> ApprenticeMark:
        """What `rewind` needs to take the next round back."""
        capital = Capital(self.capital.mantissa.copy(), self.capital.exponent.copy())
        return self.phase, self.released, self.taken_back, capital, self.alarms

    def rewind(self, mark: ApprenticeMark) -> None:
        """As at the mark."""
        self.phase, self.released, self.taken_back, self.capital, self.alarms = mark

    def interval(self) -> tuple[float, float]:
        """(lower, upper) of the mean difference in the present phase, valid at every look."""
        if not self.phase.rounds:
            return -1.0, 1.0
        level = (1.0 - CONFIDENCE) / 2.0
        c = _reach(self.present_share)
        below, above = lower_bounds(self.capital.logs(), (0.0, 0.0), self.phase.rounds, c, level)
        lower = min(1.0, max(-1.0, below))
        return lower, max(lower, min(1.0, -above))

    def describe(self) -> dict[str, Json]:
        """As `GET` shows it: the figures are of the present phase."""
        lower, upper = self.interval()
        phase = self.phase
        return {
            "share": self.present_share,
            "rounds": phase.rounds,
            "difference": phase.sum / phase.rounds if phase.rounds else None,
            "lower": lower,
            "upper": upper,
            "released": self.released or None,
            "taken_back": self.taken_back or None,
        }

    def arrays(self) -> Arrays:
        """The capital, and what the alarm has gathered."""
        return {"capital": self.capital.mantissa, "exponents": self.capital.exponent, "alarms": self.alarms}

    def counters(self) -> Counters:
        """The rest."""
        phase = self.phase
        return {
            "released": self.released,
            "taken_back": self.taken_back,
            "since": phase.since,
            "rounds": phase.rounds,
            "rewards": phase.rewards,
            "sum": phase.sum,
        }

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """All as it was."""
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("another number of bets")
        self.released, self.taken_back = counters["released"], counters["taken_back"]
        self.phase = Phase(*(counters[name] for name in ("since", "rounds", "rewards", "sum")))
        self.capital = Capital(np.array(arrays["capital"]), np.array(arrays["exponents"]))
        self.alarms = np.array(arrays["alarms"])


def _reach(share: float) -> float:
    """c, how far a difference can be from 0."""
    return 1.0 / min(share, 1.0 - share)
