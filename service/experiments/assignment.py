"""Which arm serves a unit: a keyed hash, so that no table of units is needed and every replica agrees.

BLAKE2b keyed by the experiment is a random function of the unit: stable for one unit, uniform over units, and
independent between experiments, since two keys give two unrelated functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, count

_WORD = 8
_SCALE = 2.0**-64


@lru_cache(maxsize=1024)
def _secret(key: str) -> bytes:
    return blake2b(key.encode(), digest_size=32).digest()


def hashed(key: str, purpose: str, text: str) -> int:
    """64 uniform bits for `text`; another key or purpose gives independent ones."""
    digest = blake2b(text.encode(), digest_size=_WORD, key=_secret(key), person=purpose.encode()).digest()
    return int.from_bytes(digest, "big")


def words(key: str, purpose: str, text: str) -> Iterator[int]:
    """An endless stream of 64-bit words for `text`, eight to a digest: the coins of one draft."""
    secret, person = _secret(key), purpose.encode()
    for block in count():
        digest = blake2b(f"{block}:{text}".encode(), key=secret, person=person).digest()
        for start in range(0, len(digest), _WORD):
            yield int.from_bytes(digest[start : start + _WORD], "big")


@dataclass(frozen=True, slots=True)
class Assignment:
    """u(unit) in [0, 1) falls into the arm's stretch of the cumulative weights.

    A second, independent hash decides whether the unit takes part at all: a larger `share` moves nobody between arms, and
    who takes part goes on doing so.
    """

    key: str
    weights: tuple[float, ...]

    def takes_part(self, unit: str, share: float) -> bool:
        """Whether the unit is among the share of traffic that the experiment gets."""
        return share >= 1.0 or hashed(self.key, "share", unit) * _SCALE < share

    def arm(self, unit: str) -> int:
        """The index of the unit's arm, always the same one."""
        place = hashed(self.key, "arm", unit) * _SCALE * sum(self.weights)
        for arm, edge in enumerate(accumulate(self.weights)):
            if place < edge:
                return arm
        return len(self.weights) - 1

    def propensity(self, a: int, b: int) -> float:
        """P(arm a | arm a or b)."""
        return self.weights[a] / (self.weights[a] + self.weights[b])


def shares(weights: Sequence[float]) -> list[float]:
    """The weights as probabilities."""
    total = sum(weights)
    return [weight / total for weight in weights]
