"""What a policy would have earned, from what another one logged with its probabilities; valid at every look.

A round has items a with logged probabilities p(a), a choice A drawn by them, its reward r in [0, 1], and a guess q(a) of
every item's reward, made before the draw. For a policy pi, with k(a) = pi(a), u(a) = k(a) / p(a) and a bound c,

    q'(a) = min(q(a), c / u(a)),        X = sum_a k(a) q'(a) + u(A) (r - q'(A)).

E[X | past] = sum_a pi(a) E[r(a)] whatever q is, as far as p reaches; where p(a) = 0 < pi(a) the item counts 0, so that
E[X | past] is never above the value. X minus its guess, the first sum, is at least -u(A) q'(A) >= -c for *any* weights:
the sequences of `confidence` hold although the weights are unbounded. That is the lower bound; the upper one is the
same on 1 - r and 1 - q. A small c is good where the policies are alike, a large one where they are not: both are kept,
each at half the error. What is covered is the mean of the policy's value over the rounds so far, whatever its drift.

With k(a) = pi(a) - p(a) the same is the policy's value *minus that of what was served*, as one sequence: where u(A) < 0, X
minus its guess is at least -(1 - q') >= -c as well, since u >= -1. It is far narrower than two intervals side by side:
rounds on which both policies agree say nothing and cost nothing.

A round of several draws (slots) counts as the mean of their X, each given the draws before it in the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .confidence import Capital, lower_bounds

BOUNDS = (2.0, 16.0)
_ROWS = (*BOUNDS, *BOUNDS)  # on r, then on 1 - r


@dataclass(frozen=True, slots=True)
class WeighedDraw:
    """One draw as it was logged, and what `policy` (pi) and `guesses` (q) say of it, neither by its choice or reward.

    `reward` in [0, 1] of the item at index `chosen`, drawn by `probabilities`. Where only the chosen item's probability was
    logged, it is the only item, and there are no guesses: q = 0 on both sides.
    """

    probabilities: Sequence[float]
    chosen: int
    reward: float
    policy: Sequence[float]
    guesses: Sequence[float] | None = None

    @property
    def weight(self) -> float:
        """w = pi(A) / p(A)."""
        return self.policy[self.chosen] / self.probabilities[self.chosen]

    @property
    def unsupported(self) -> float:
        """The share of pi on items that could not be drawn."""
        return sum(pi for pi, p in zip(self.policy, self.probabilities, strict=True) if p == 0.0)


@dataclass(slots=True)
class Estimate:
    """The running value of one policy, or with `lead` 1 its lead over what was served.

    `total` is of the doubly robust estimate with q itself; the capital is of X on r and on 1 - r, for each bound c.
    """

    lead: float = 0.0
    n: int = 0
    total: float = 0.0
    guesses: list[float] = field(default_factory=lambda: [0.0] * len(_ROWS))
    capital: Capital = field(default_factory=lambda: Capital.new(len(_ROWS)))

    def add(self, draws: Sequence[WeighedDraw]) -> None:
        """Take in a round."""
        self.n += 1
        share = 1.0 / len(draws)
        self.total += share * sum(self._robust(draw) for draw in draws)
        deviations = []
        for row, c in enumerate(_ROWS):
            deviation = 0.0
            for draw in draws:
                guess, away = self._capped(draw, c, earned=row < len(BOUNDS))
                self.guesses[row] += share * guess
                deviation += share * away
            # Rounding may pass the bound by the last bit, which a bet below 1 / c forgives.
            deviations.append(deviation / c)
        self.capital.add(range(len(_ROWS)), deviations)

    def _robust(self, draw: WeighedDraw) -> float:
        """X with q itself."""
        u = draw.weight - self.lead
        if draw.guesses is None:
            return u * draw.reward
        rows = zip(draw.policy, draw.probabilities, draw.guesses, strict=True)
        return sum((pi - self.lead * p) * q for pi, p, q in rows) + u * (
            draw.reward - draw.guesses[draw.chosen]
        )

    def _capped(self, draw: WeighedDraw, c: float, earned: bool) -> tuple[float, float]:
        """(sum k q', u(A) (r - q'(A))), on r or on 1 - r."""
        guess = cut = 0.0
        if draw.guesses is not None:
            rows = zip(draw.policy, draw.probabilities, draw.guesses, strict=True)
            for a, (pi, p, q) in enumerate(rows):
                own, k = q if earned else 1 - q, pi - self.lead * p
                # min(q, c / u) without dividing by k or p, either of which may be 0.
                capped = own if own * k <= c * p else c * p / k
                guess += k * capped
                if a == draw.chosen:
                    cut = capped
        reward = draw.reward if earned else 1 - draw.reward
        return guess, (draw.weight - self.lead) * (reward - cut)

    def mean(self) -> float | None:
        """The doubly robust estimate, within what is possible; None before the first round."""
        return None if self.n == 0 else min(1.0, max(-self.lead, self.total / self.n))

    def interval(self, alpha: float) -> tuple[float, float]:
        """(lower, upper) for the mean so far; each side and each c has its share of alpha."""
        least = -self.lead
        if self.n == 0:
            return least, 1.0
        # On 1 - r the value becomes 1 - value, and the lead, whose k sum to 0, its negative.
        bounds = lower_bounds(self.capital.logs(), self.guesses, self.n, _ROWS, alpha / len(_ROWS))
        lower = min(1.0, max(least, *bounds[: len(BOUNDS)]))
        upper = 1.0 - self.lead - max(bounds[len(BOUNDS) :])
        return lower, max(lower, min(1.0, upper))


@dataclass(slots=True)
class LogSupport:
    """How much a log says of a policy: the weights w = pi(A) / p(A), which should be near 1, and SNIPS.

    SNIPS = sum w r / sum w needs no guesses, and is biased by little where there are many rounds. It stands beside the
    doubly robust estimate: where the two differ by much, the log says little.
    """

    draws: int = 0
    weights: float = 0.0
    squares: float = 0.0
    earned: float = 0.0
    largest: float = 0.0
    unsupported: float = 0.0

    def add(self, draw: WeighedDraw) -> None:
        """One draw."""
        w = draw.weight
        self.draws += 1
        self.weights += w
        self.squares += w * w
        self.earned += w * draw.reward
        self.largest = max(self.largest, w)
        self.unsupported += draw.unsupported

    def snips(self) -> float | None:
        """The self-normalized estimate; None where the policy would have made none of the choices."""
        return self.earned / self.weights if self.weights > 0 else None

    def effective(self) -> float:
        """(sum w)^2 / sum w^2: as many draws of the policy's own would say about as much."""
        return self.weights**2 / self.squares if self.squares > 0 else 0.0


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
