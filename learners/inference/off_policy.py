"""What a policy would have earned, from what another one logged with its probabilities; valid at every look.

A round has items a with logged probabilities p(a), a choice A drawn by them, its reward r in [0, 1], and a guess q(a) of
every item's reward, made before the draw. For a policy pi, with w(a) = pi(a) / p(a) and a bound c,

    q'(a) = min(q(a), c / w(a)),        X = sum_a pi(a) q'(a) + w(A) (r - q'(A)).

E[X | past] = sum_a pi(a) E[r(a)] whatever q is, as far as p reaches; where p(a) = 0 < pi(a) the item counts 0, so that
E[X | past] is never above the value. X minus its guess, the first sum, is at least -w(A) q'(A) >= -c for *any* weights:
the sequences of `confidence` hold although the weights are unbounded. That is the lower bound; the upper one is the
same on 1 - r and 1 - q. A small c is good where the policies are alike, a large one where they are not: both are kept,
each at half the error. What is covered is the mean of the policy's value over the rounds so far, whatever its drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .confidence import Capital, lower_bounds

BOUNDS = (2.0, 16.0)
_ROWS = (*BOUNDS, *BOUNDS)  # on r, then on 1 - r


@dataclass(frozen=True, slots=True)
class LoggedChoice:
    """One round as it was logged: `reward` in [0, 1] of the item at index `chosen`, drawn by `probabilities`."""

    probabilities: Sequence[float]
    chosen: int
    reward: float


@dataclass(slots=True)
class ValueEstimate:
    """The running value of one policy: the capital of X on r and on 1 - r, for each bound c, and the sums of its guesses.

    `total` is of the doubly robust estimate with q itself, `weights` of w(A), which should be near n.
    """

    n: int = 0
    total: float = 0.0
    weights: float = 0.0
    weights_squared: float = 0.0
    guesses: list[float] = field(default_factory=lambda: [0.0] * len(_ROWS))
    capital: Capital = field(default_factory=lambda: Capital.new(len(_ROWS)))

    def add(self, logged: LoggedChoice, policy: Sequence[float], guesses: Sequence[float]) -> None:
        """Take in a round; `policy` and `guesses` (in [0, 1]) must not depend on its choice or reward."""
        chosen, r = logged.chosen, logged.reward
        w = policy[chosen] / logged.probabilities[chosen]
        self.n += 1
        self.total += sum(pi * q for pi, q in zip(policy, guesses, strict=True)) + w * (r - guesses[chosen])
        self.weights += w
        self.weights_squared += w * w
        deviations = []
        for row, c in enumerate(_ROWS):
            earned = row < len(BOUNDS)
            guess = cut = 0.0
            for a, (pi, p, q) in enumerate(zip(policy, logged.probabilities, guesses, strict=True)):
                own = q if earned else 1 - q
                # min(q, c / w) without dividing by pi or p, either of which may be 0.
                capped = own if own * pi <= c * p else c * p / pi
                guess += pi * capped
                if a == chosen:
                    cut = capped
            self.guesses[row] += guess
            # Rounding may pass the bound by the last bit, which a bet below 1 / c forgives.
            deviations.append(w * ((r if earned else 1 - r) - cut) / c)
        self.capital.add(range(len(_ROWS)), deviations)

    def add_chosen(self, probability: float, policy: float, reward: float) -> None:
        """A round of which only the chosen item's `probability` was logged: X = w r, with a guess of 0 on both sides."""
        w = policy / probability
        self.n += 1
        self.total += w * reward
        self.weights += w
        self.weights_squared += w * w
        values = [w * reward, w * (1 - reward)]
        self.capital.add(range(len(_ROWS)), [values[row // len(BOUNDS)] / c for row, c in enumerate(_ROWS)])

    def mean(self) -> float | None:
        """The doubly robust estimate, within [0, 1]; None before the first round."""
        return None if self.n == 0 else min(1.0, max(0.0, self.total / self.n))

    def effective(self) -> float:
        """(sum w)^2 / sum w^2: as many rounds of the policy's own would say about as much."""
        return self.weights**2 / self.weights_squared if self.weights_squared > 0 else 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """(lower, upper) for the mean value so far; each side and each c has its share of alpha."""
        if self.n == 0:
            return 0.0, 1.0
        low = lower_bounds(self.capital.logs(), self.guesses, self.n, _ROWS, alpha / len(_ROWS))
        lower = min(1.0, max(0.0, *low[: len(BOUNDS)]))
        return lower, max(lower, min(1.0, 1 - max(low[len(BOUNDS) :])))


@dataclass(slots=True)
class RunningGuess:
    """q(a) for items that come back: the mean reward of the item so far, drawn to the overall mean by two rounds."""

    n: int = 0
    total: float = 0.0
    items: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __call__(self, name: str) -> float:
        overall = (self.total + 0.5) / (self.n + 1)
        n, total = self.items.get(name, (0, 0.0))
        return (total + 2 * overall) / (n + 2)

    def add(self, name: str, reward: float) -> None:
        """The reward of a round whose guess has been used."""
        n, total = self.items.get(name, (0, 0.0))
        self.items[name] = n + 1, total + reward
        self.n += 1
        self.total += reward
