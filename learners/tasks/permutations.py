"""Orders of labels or items, best first: rep(sigma)_i = F(place of i), F = f / Z with f falling and Z = ||f||."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..instances import Floats, Ints, Mask
from ..kernel.powers import power
from ..losses import rankings as losses
from ..registry import Loss, Spec, register
from .searches import Bonus, Falls, assignment, by_score, even_merge, merge
from .task import Task

__all__ = ["AP", "NDCG", "Precision", "Ranking", "places"]


# From so many pairs of a relevant and an irrelevant item on, a merge by halves is faster than one by rows.
EVEN = 1 << 14


@lru_cache(maxsize=32)
def places(m: int, position: str = "linear", exponent: float = 1.1) -> Floats:
    """F(1) .. F(m) of length 1, for f(i) = -i (`linear`), 1/i (`reciprocal`), -i^exponent (`power`); read-only."""
    i = np.arange(1.0, m + 1.0)
    # i / m in place of i: Z takes the factor away, and no exponent overflows.
    f = 1.0 / i if position == "reciprocal" else -(power(i / m, exponent) if position == "power" else i / m)
    F: Floats = f / np.sqrt((f * f).sum())
    F.setflags(write=False)
    return F


class Ranking(Task):
    """What the ranking losses share. A subclass gives L, the grades as L reads them, and the augmented order."""

    def __init__(self, cutoff: int | None = None, position: str = "linear", exponent: float = 1.1) -> None:
        self.cutoff = cutoff
        self.position = position
        self.exponent = exponent

    def F(self, m: int) -> Floats:
        return places(m, self.position, self.exponent)

    def discounts(self, m: int) -> Floats:
        """D(1) .. D(m), where L has discounts."""
        return losses.discounts(m)

    def of_places(self, m: int) -> tuple[Floats, Floats]:
        return self.F(m), self.discounts(m)

    def decide(self, t: Floats) -> Ints:
        return by_score(t)

    def judge(self, t: Floats, y: Floats) -> float:
        return self.loss(by_score(t), y)

    def rep(self, sigma: Ints, d: int) -> Floats:
        rep = np.empty(d)
        rep[sigma] = self.F(d)
        return rep

    def grades(self, y: Floats) -> Floats:
        """Numbers in the order of the gains of L: items with the same number are the same to L."""
        return y

    def correct(self, y: Floats, t: Floats) -> Ints:
        """By grade, equal grades by score, down to the cutoff; by score below it."""
        order = np.lexsort((-t, -self.grades(y)))
        if self.cutoff is not None and self.cutoff < t.size:
            rest = order[self.cutoff :]
            rest.sort()
            order[self.cutoff :] = rest[by_score(t[rest])]
        return order

    def rival(self, y: Floats, t: Floats) -> Ints | None:
        """The order of the scores if it is wrong; else the lower of two unequal neighbours rises above the other.

        With top_b the sum of the b best scores, an order loses sum_b (F(b) - F(b+1)) (top_b - its own first b). One with
        another set above place b, where the grade falls, loses at least (F(b) - F(b+1)) (t_b - t_{b+1}), and the
        swap just that. Where the cutoff splits equal grades, the best item of a lower grade rises to the cutoff.
        """
        order = by_score(t)
        if self.loss(order, y) > 0.0:
            return order
        k = t.size if self.cutoff is None else min(self.cutoff, t.size)
        g, s, F = self.grades(y)[order], t[order], self.F(t.size)
        drops = np.flatnonzero(g[: k - 1] > g[1:k])
        costs = (F[drops] - F[drops + 1]) * (s[drops] - s[drops + 1])
        best, rise = (int(drops[costs.argmin()]), 1) if drops.size else (-1, 0)
        lower = np.flatnonzero(g[k:] < g[k - 1])
        if lower.size:
            to, q = k - 1, k + int(lower[0])
            cost = float(
                (s[to : q + 1] * F[to : q + 1]).sum() - s[q] * F[to] - (s[to:q] * F[to + 1 : q + 1]).sum()
            )
            if not drops.size or cost < costs.min():
                best, rise = to, q - to
        if best < 0:
            return None
        order[best : best + rise + 1] = np.roll(order[best : best + rise + 1], 1)
        return order

    def margin(self, t: Floats) -> float | None:
        """The smallest gap of neighbours in the order, down to the one just below the cutoff."""
        if t.size < 2:
            return None
        ascending = np.sort(t)
        gaps = (ascending[1:] - ascending[:-1])[::-1]
        return float(gaps[: self.cutoff].min())

    def _merged(self, relevant: Mask, t: Floats, bonus: Bonus, falls: Falls | None = None) -> Ints:
        """argmax of sum_i F(p_i) t_i + sum over relevant i of bonus; `falls`, where `even_merge` can take it."""
        order = by_score(t)
        upper, lower = order[relevant[order]], order[~relevant[order]]
        if falls is not None and self.position == "linear" and len(upper) * len(lower) > EVEN:
            F = self.F(t.size)
            return even_merge(upper, lower, t, float(F[0] - F[1]), falls)
        return merge(upper, lower, t, self.F(t.size), bonus)

    def _two_classes(self, relevant: Mask, t: Floats, bonus: Floats, convex: bool = False) -> Ints:
        """argmax of sum_i F(p_i) t_i + sum over relevant i of bonus(p_i); `convex`: it grows less and less with p."""
        R = int(np.count_nonzero(relevant))
        if R in (0, t.size):
            return by_score(t)

        def falls(j: Ints, x: Ints) -> Floats:
            down: Floats = bonus[R + j - 1] - bonus[x + j - 1]
            return down

        return self._merged(
            relevant, t, lambda a, b: bonus[(a + b - 1.0).astype(np.intp)], falls if convex else None
        )


class NDCG(Ranking):
    """L = 1 - NDCG at `cutoff` (none: the whole list), gain 2^y - 1 or y, discount 1 / log2(1 + place) or 1 / place."""

    gain: str
    discount: str

    measure: int = 0

    def __init__(
        self,
        cutoff: int | None = None,
        position: str = "linear",
        exponent: float = 1.1,
        gain: str = "exponential",
        discount: str = "log",
    ) -> None:
        super().__init__(cutoff, position, exponent)
        self.gain, self.discount = gain, discount

    def discounts(self, m: int) -> Floats:
        return losses.discounts(m, self.discount)

    def loss(self, sigma: Ints, y: Floats) -> float:
        return losses.ndcg_loss(sigma, y, self.cutoff, self.gain, self.discount)

    def augmented(self, y: Floats, t: Floats) -> Ints:
        """argmax of sum_i F(p_i) t_i - G_i D(p_i) / ideal: a merge for two grades, else Lemma 3's assignment."""
        m = t.size
        gain = losses.gains(y, self.gain)
        D = self.discounts(m)
        if self.cutoff is not None and self.cutoff < m:
            D = np.where(np.arange(m) < self.cutoff, D, 0.0)
        ideal = float((np.sort(gain)[::-1] * D).sum()) if m else 0.0
        if ideal <= 0.0:
            return by_score(t)
        low, high = gain.min(), gain.max()
        relevant = gain > low
        if not (gain[relevant] < high).any():
            whole = self.cutoff is None or self.cutoff >= m
            return self._two_classes(relevant, t, D * ((low - high) / ideal), convex=whole)
        if t.min() == t.max():  # as in the first round: the worst order, whatever the places
            return np.argsort(gain, kind="stable")
        return assignment(t, self.F(m), gain / ideal, D)


class Precision(Ranking):
    """L = (min(k, relevant) - relevant among the first k) / k, k = `cutoff`; every grade above 0 is relevant."""

    measure: int = 1

    def __init__(self, cutoff: int, position: str = "linear", exponent: float = 1.1) -> None:
        super().__init__(cutoff, position, exponent)
        self.k = cutoff

    def loss(self, sigma: Ints, y: Floats) -> float:
        return losses.precision_loss(sigma, y, self.k)

    def grades(self, y: Floats) -> Floats:
        return (y > 0.0).astype(np.float64)

    def _with_hits(self, hits: int, y: Floats, t: Floats) -> Ints:
        """The order closest to the scores with `hits` relevant items among the first k."""
        order = by_score(t)
        relevant = y[order] > 0.0
        first = np.zeros(t.size, dtype=bool)
        first[np.flatnonzero(relevant)[:hits]] = True
        first[np.flatnonzero(~relevant)[: min(self.k, t.size) - hits]] = True
        return np.concatenate((order[first], order[~first]))

    def correct(self, y: Floats, t: Floats) -> Ints:
        return self._with_hits(min(self.k, int(np.count_nonzero(y > 0.0))), y, t)

    def rival(self, y: Floats, t: Floats) -> Ints | None:
        order = by_score(t)
        if self.loss(order, y) > 0.0:
            return order
        R = int(np.count_nonzero(y > 0.0))
        fewer = min(self.k, R) - 1
        if fewer < 0 or min(self.k, t.size) - fewer > t.size - R:
            return None
        return self._with_hits(fewer, y, t)

    def augmented(self, y: Floats, t: Floats) -> Ints:
        return self._two_classes(y > 0.0, t, np.where(np.arange(t.size) < self.k, -1.0 / self.k, 0.0))


class AP(Ranking):
    """L = 1 - average precision; every grade above 0 is relevant.

    AP = (1/R) sum_a a / (a + b_a) splits over the relevant items, so the merge is exact for it too; there is no
    assignment form.
    """

    measure: int = 2

    def loss(self, sigma: Ints, y: Floats) -> float:
        return losses.ap_loss(sigma, y)

    def grades(self, y: Floats) -> Floats:
        return (y > 0.0).astype(np.float64)

    def augmented(self, y: Floats, t: Floats) -> Ints:
        relevant = y > 0.0
        R = int(np.count_nonzero(relevant))
        if R in (0, t.size):
            return by_score(t)
        # H(n) = 1 + 1/2 + ... + 1/n: k / (k + j - 1) - k / (k + j), summed over k > x, in closed form.
        H = np.append(0.0, np.cumsum(1.0 / np.arange(1.0, t.size + 1.0)))

        def falls(j: Ints, x: Ints) -> Floats:
            down: Floats = (H[R + j] - H[x + j] + (j - 1) * (1.0 / (R + j) - 1.0 / (x + j))) / R
            return down

        return self._merged(relevant, t, lambda a, b: -a / (a + b) / R, falls)


def _position(spec: Spec) -> dict[str, Any]:
    return {"position": spec["position"], "exponent": spec.get("exponent", 1.1)}


def _ndcg(spec: Spec) -> NDCG:
    gain, discount = spec.get("gain", "exponential"), spec.get("discount", "log")
    return NDCG(spec["cutoff"], gain=gain, discount=discount, **_position(spec))


_BOTH = ("label-ranking", "subset-ranking")
for _loss in (
    Loss("ndcg", "1 - NDCG, down to `cutoff`", _BOTH, _ndcg),
    Loss(
        "precision",
        "(min(k, relevant) - hits among the first k) / k, k = `cutoff`",
        _BOTH,
        lambda spec: Precision(spec["cutoff"], **_position(spec)),
    ),
    Loss("ap", "1 - average precision", _BOTH, lambda spec: AP(**_position(spec))),
):
    register(_loss)
