"""How far down visitors look, estimated from clicks on interleaved lists, whose order is partly random.

The coins of a draft put an item on place j with a chance Q_j that the two orders give, whatever the item is. If place j is
looked at with chance p_j, a click on the item while it stands at j has chance Q_j p_j r, r its own. So with

    N_jk += min(Q_j, Q_k) / Q_j / (m - 1)     for a click at j, and each other of the m places that the item might have had

E N_jk / E N_kj = p_j / p_k for the clicks of every item: no relevance is needed (intervention harvesting, Agarwal, Zaitsev,
Wang, Li, Najork and Joachims 2019). The curve is p_k = k^-eta, since few clicks fall on low places; with s the logistic
function, eta has the posterior

    sum_{j < k} N_jk log s(eta ln(k / j)) + N_kj log s(-eta ln(k / j)) - (eta - PRIOR)^2 PRECISION / 2

`curve` takes eta's lower quartile: too strong a correction costs more than too weak a one. A click at place k then counts
1 / p_k as a lesson, at most MOST: the clicks of an item count alike wherever it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from feedrank.learners.kernel import elementary
from feedrank.service.contract.json_types import JSON, View

from .interleave import PLACES, Chances

PRIOR, PRECISION, QUARTILE = 0.7, 4.0, 0.6745
HIGHEST, MOST = 3.0, 5.0  # of eta, and of what a click counts
_LOGS = elementary.log(np.arange(1.0, PLACES + 1))
_UPPER, _LOWER = np.triu_indices(PLACES, 1)
_GAPS = _LOGS[_LOWER] - _LOGS[_UPPER]
_STEPS = 12  # of Newton; some five are taken

Moves = list[tuple[int, int, float]]


@dataclass(slots=True)
class Examination:
    """`weights[j][k]` is N_jk, `clicks` how many clicks they are of."""

    clicks: int = 0
    weights: list[list[float]] = field(default_factory=lambda: [[0.0] * PLACES for _ in range(PLACES)])
    _fitted: tuple[int, float, float] = field(default=(-1, PRIOR, PRECISION), compare=False, repr=False)

    def take(self, moves: Sequence[tuple[int, int, float]]) -> None:
        """(j, k, weight) of the clicks of one page."""
        for j, k, weight in moves:
            self.weights[j][k] += weight
        self.clicks += len({j for j, _, _ in moves})

    @property
    def posterior(self) -> tuple[float, float]:
        """The mode of eta, and the precision there."""
        if self._fitted[0] != self.clicks:
            self._fitted = (self.clicks, *self._fit())
        return self._fitted[1:]

    def _fit(self) -> tuple[float, float]:
        N = np.array(self.weights)
        upper, lower = N[_UPPER, _LOWER], N[_LOWER, _UPPER]
        eta, precision = PRIOR, PRECISION
        for _ in range(_STEPS):
            s = elementary.sigmoid(eta * _GAPS)
            slope = elementary.total((upper * (1 - s) - lower * s) * _GAPS) - PRECISION * (eta - PRIOR)
            precision = elementary.total((upper + lower) * s * (1 - s) * _GAPS * _GAPS) + PRECISION
            step = slope / precision
            eta = min(max(eta + step, 0.0), HIGHEST)
            if abs(step) < 1e-9:
                break
        return eta, precision

    @property
    def exponent(self) -> float:
        """The lower quartile of eta."""
        eta, precision = self.posterior
        return max(0.0, eta - QUARTILE / float(np.sqrt(precision)))

    def curve(self, places: int = PLACES) -> list[float]:
        """p_1, p_2, ...; p_1 is 1."""
        logs = elementary.log(np.arange(1.0, places + 1))
        chances: list[float] = elementary.exp(-self.exponent * logs).tolist()
        return chances

    def grades(self, shown: Sequence[str], clicked: Sequence[str]) -> dict[str, float]:
        """What each click on a page counts as a lesson."""
        curve = self.curve(len(shown))
        wanted = set(clicked)
        return {id: min(1 / p, MOST) for id, p in zip(shown, curve, strict=True) if id in wanted}

    def report(self) -> JSON:
        """What GET says."""
        eta, precision = self.posterior
        return {
            "curve": [round(p, 4) for p in self.curve()],
            "exponent": eta,
            "deviation": float(1 / np.sqrt(precision)),
            "clicks": self.clicks,
        }

    def to_json(self) -> JSON:
        """All of it, as JSON values."""
        return {"clicks": self.clicks, "weights": self.weights}

    @classmethod
    def from_json(cls, data: View) -> Examination:
        """The inverse of `to_json`."""
        return cls(data["clicks"], data["weights"])


def moves(Q: Chances, shown: Sequence[str], clicked: Sequence[str]) -> Moves:
    """(j, k, weight) of each click on a drafted page, within its first places."""
    wanted = set(clicked)
    harvest: Moves = []
    for j, name in enumerate(shown[:PLACES]):
        if name in wanted:
            own = Q[name]
            others = [k for k, chance in enumerate(own) if chance > 0 and k != j]
            harvest += [(j, k, min(own[j], own[k]) / own[j] / len(others)) for k in others]
    return harvest
