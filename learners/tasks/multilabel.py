"""A set of labels: rep(sigma) = v / sqrt(m), v in {+1, -1}^m, for any loss of (a, b, c, d)."""

from __future__ import annotations

import math

import numpy as np

from ..instances import Floats, Mask
from ..losses import subsets
from ..losses.subsets import SubsetLoss
from ..registry import Loss, register
from .task import Task

__all__ = ["ErrorSetSize", "Hamming", "Multilabel", "OnlyTruth", "SubsetZeroOne"]

# The search over (a, b, c, d) looks at this many cells at a time, so that memory stays flat as m grows.
_CELLS = 1 << 18


class Multilabel(Task):
    """L(sigma, y) = f(a, b, c, d), with f >= 0 and f = 0 for sigma = y; searches are O(m^2), Appendix C.2.

    f is called with integer arrays that broadcast. The search rests on this: among the sets with the same counts,
    the one that takes the best-scored relevant and the best-scored irrelevant labels is the most similar to t.
    """

    def __init__(self, f: SubsetLoss) -> None:
        self.f = f

    def decide(self, t: Floats) -> Mask:
        return t > 0.0

    def loss(self, sigma: Mask, y: Mask) -> float:
        return float(self.f(*subsets.counts(sigma, y)))

    def judge(self, t: Floats, y: Mask) -> float:
        return self.loss(t > 0.0, y)

    def rep(self, sigma: Mask, d: int) -> Floats:
        unit = 1.0 / math.sqrt(d) if d else 0.0
        return np.where(sigma, unit, -unit)

    def correct(self, y: Mask, t: Floats) -> Mask | None:
        return self._search(y, t, "correct")

    def augmented(self, y: Mask, t: Floats) -> Mask | None:
        return self._search(y, t, "augmented")

    def rival(self, y: Mask, t: Floats) -> Mask | None:
        return self._search(y, t, "rival")

    def margin(self, t: Floats) -> float | None:
        """min_j |t_j|, the smallest change of one score that would change the set."""
        return float(np.abs(t).min()) if t.size else None

    def _search(self, y: Mask, t: Floats, kind: str) -> Mask | None:
        """The best set over all counts: b irrelevant in, c relevant out.

        Ties go to few errors for a correct set and to many for a wrong one, so that a score of 0 teaches.
        """
        relevant, irrelevant = np.flatnonzero(y), np.flatnonzero(~y)
        relevant = relevant[np.argsort(t[relevant], kind="stable")]  # the worst leave first
        irrelevant = irrelevant[np.argsort(-t[irrelevant], kind="stable")]  # the best enter first
        scale = 2.0 / math.sqrt(t.size) if t.size else 0.0
        out = -scale * np.concatenate(([0.0], np.cumsum(t[relevant])))[:, None]
        into = scale * np.concatenate(([0.0], np.cumsum(t[irrelevant])))
        bs = np.arange(into.size)
        if kind != "correct":
            bs, into = bs[::-1], into[::-1]
        best, counts = -math.inf, None
        step = max(1, _CELLS // into.size)
        starts = range(0, out.size, step)
        for start in starts if kind == "correct" else reversed(starts):
            cs = np.arange(start, min(start + step, out.size))[:, None]
            if kind != "correct":
                cs = cs[::-1]
            loss = np.asarray(self.f(relevant.size - cs, bs, cs, irrelevant.size - bs), dtype=np.float64)
            value = out[cs[:, 0]] + into
            if kind == "augmented":
                value += loss
            else:
                value[np.broadcast_to((loss > 0.0) == (kind == "correct"), value.shape)] = -math.inf
            row, column = divmod(int(value.argmax()), value.shape[1])
            if value[row, column] > best:
                best, counts = float(value[row, column]), (int(bs[column]), int(cs[row, 0]))
        if counts is None:
            return None
        sigma = y.copy()
        sigma[irrelevant[: counts[0]]] = True
        sigma[relevant[: counts[1]]] = False
        return sigma


class OnlyTruth(Multilabel):
    """Losses for which y alone is correct, so that the nearest wrong set is one label away."""

    def correct(self, y: Mask, t: Floats) -> Mask:
        return y

    def rival(self, y: Mask, t: Floats) -> Mask | None:
        sigma = t > 0.0
        if not t.size:
            return None
        if np.array_equal(sigma, y):
            nearest = int(np.abs(t).argmin())
            sigma[nearest] = not sigma[nearest]
        return sigma


class SubsetZeroOne(OnlyTruth):
    """L = 1 if sigma != y; all searches in O(m)."""

    def __init__(self) -> None:
        super().__init__(subsets.subset_zero_one)

    def augmented(self, y: Mask, t: Floats) -> Mask:
        sigma = self.rival(y, t)
        if sigma is None:
            return y
        gap = 2.0 * float(np.where(sigma, t, -t)[sigma != y].sum()) / math.sqrt(t.size)
        return sigma if 1.0 + gap > 0.0 else y


class Hamming(OnlyTruth):
    """L = b + c; all searches in O(m): j is wrong in the augmented set iff 1 > 2 v_j t_j / sqrt(m), v = +1 on y."""

    def __init__(self) -> None:
        super().__init__(subsets.hamming)

    def augmented(self, y: Mask, t: Floats) -> Mask:
        wrong: Mask = np.where(y, t, -t) < 0.5 * math.sqrt(t.size)
        return y ^ wrong


class ErrorSetSize(Multilabel):
    """L = b c. A score of exactly 0 is judged as on the wrong side, else the first round could never teach."""

    def __init__(self) -> None:
        super().__init__(subsets.error_set_size)

    def judge(self, t: Floats, y: Mask) -> float:
        c = int(np.count_nonzero(t[y] <= 0.0))
        b = int(np.count_nonzero(t[~y] >= 0.0))
        return float(b * c)


for _loss in (
    Loss(
        "subset-zero-one", "1 unless the set is exactly right", ("multilabel",), lambda spec: SubsetZeroOne()
    ),
    Loss("hamming", "the number of labels wrongly in or out", ("multilabel",), lambda spec: Hamming()),
    Loss(
        "error-set-size",
        "the pairs of a relevant label left out and an irrelevant one let in",
        ("multilabel",),
        lambda spec: ErrorSetSize(),
    ),
    Loss(
        "f-score",
        "1 - twice the shared labels / the labels of both, each counted by itself",
        ("multilabel",),
        lambda spec: OnlyTruth(subsets.f_score),
    ),
    Loss(
        "jaccard",
        "1 - shared labels / all labels of both",
        ("multilabel",),
        lambda spec: OnlyTruth(subsets.jaccard),
    ),
):
    register(_loss)
