"""Cold start: how far the learned order may take over from the engine's, by what clicks have said of the two so far.

The engine's order is the benchmark, the learned one a challenger. Each page with feedback gives one number d in [-1, 1]:
what the learned order would have gained over the engine's, estimated by inverse propensities from the page that was shown,
whichever that was. Two weights, one of which never moves (Sani, Neu, Lazaric 2014, "Exploiting easy data"):

    engine   1 - v        learned  V_1 = v,  V <- V (1 + eta d)        share = V / (V + 1 - v)

A page takes the learned order with chance `share`. Then, for every sequence of d whatsoever,

    sum of share_t d_t  >=  -ln(1 / (1 - v)) / eta

because each share_t d_t is at least the growth of ln(V + 1 - v) / eta, and V is never below 0: all that can ever be lost
against the engine is that constant, while a challenger that is better takes over exponentially fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from math import exp, log, log1p

from .clicks import EXAMINATION, inverse_propensities, value

__all__ = ["Evidence", "advantage", "coin"]

_LARGEST = 50.0  # of ln V: beyond, a share is 1 in every digit, and coming back would take for ever


@dataclass(slots=True)
class Evidence:
    """The state of the rule: two numbers. Keep `to_json()` between runs, or start again with the engine's order."""

    start: float = 0.01
    rate: float = 0.9
    pages: int = 0
    growth: float = 0.0
    """ln(V / v)."""

    def __post_init__(self) -> None:
        if not 0 < self.start < 1 or not 0 < self.rate < 1:
            raise ValueError("start and rate must lie between 0 and 1")

    @property
    def share(self) -> float:
        """The chance that a page takes the learned order."""
        odds = self.growth + log(self.start / (1 - self.start))
        return 1 / (1 + exp(-odds)) if odds > -700 else 0.0

    @property
    def most_lost(self) -> float:
        """The bound above: all that the engine's order can ever be ahead, in units of d."""
        return -log1p(-self.start) / self.rate

    def add(self, gain: float) -> None:
        """One page on which the learned order was `gain` ahead of the engine's."""
        if not -1 <= gain <= 1:
            raise ValueError("a gain lies in [-1, 1]")
        self.pages += 1
        self.growth = min(self.growth + log1p(self.rate * gain), _LARGEST)

    def to_json(self) -> dict[str, float]:
        """As `Evidence(**json)` takes it back."""
        return asdict(self)


def advantage(
    shown: Sequence[str],
    clicked: Iterable[str],
    engine: Sequence[str],
    learned: Sequence[str],
    curve: Sequence[float] = EXAMINATION,
) -> float:
    """d: what the learned order gains over the engine's, as a share of the most that one click can weigh.

    The weights are not cut, but scaled: cutting would favour whichever order was shown.
    """
    weights = inverse_propensities(shown, clicked, curve)
    return max(-1.0, min(1.0, min(curve) * (value(learned, weights) - value(engine, weights))))


def coin(text: str) -> float:
    """A number in [0, 1) that belongs to the text: one query does not flicker between two orders."""
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big") / 2**56
