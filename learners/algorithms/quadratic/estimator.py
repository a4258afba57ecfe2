"""The quadratic surrogate as a model: ridge regression on psi(y), then the decoder of a loss.

With several regressions, one for each r of the ridge r sqrt(n), each event is decided by the one that has lost least so
far by the decisions that it would have taken itself (the progressive loss); of equals, by the one listed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import OptionError, pointer
from ...instances import Floats, Ints
from ...json_types import Json
from ...losses.costs import CostMatrix
from ...model import Decision, Model
from ...tasks.task import Sigma, Y
from ...weights.base import Arrays, Counters, X
from .families import Family
from .regression import Regression, RegressionMark

__all__ = ["MARGINS", "Quadratic"]

MARGINS: Floats = np.arange(1, 11) / 10.0  # where the margin's distribution is shown


@dataclass(slots=True)
class Decoded(Decision):
    """A decision with its margin, computed on the way."""

    margin: float | None = None


class Quadratic(Model):
    """f(x) = argmin_z <F_z, g(x)>, Eq. (3), with g the ridge regression on psi(y) after the events so far."""

    learns_unlabelled = True

    def __init__(
        self, family: Family, loss: str, regressions: Sequence[Regression], view: Floats | None = None
    ) -> None:
        self.family = family
        self.own = loss
        self.regressions: list[Regression] = list(regressions)
        self.losses: Floats = np.zeros(len(self.regressions))
        self.below: Ints = np.zeros(len(MARGINS), dtype=np.int64)
        self.judged: int = 0
        self.view = view

    @property
    def regression(self) -> Regression:
        """The one that decides."""
        return self.regressions[int(self.losses.argmin())]

    def grow(self, features: int, labels: int) -> None:
        self.family.grow(labels)

    def price(self, costs: Sequence[float]) -> None:
        self.family.price(costs)

    def charge(self, costs: CostMatrix) -> None:
        self.family.charge(costs)

    def group(self, blocks: Sequence[int]) -> None:
        self.family.group(blocks)

    def offers(self, loss: str | None) -> None:
        self._decoder(loss)

    def _decoder(self, loss: str | None) -> str:
        if loss is None:
            return self.own
        if loss not in self.family.served:
            raise OptionError(
                f"the losses of this learner are {', '.join(self.family.served)}", pointer("loss")
            )
        return loss

    def decide(self, x: X, loss: str | None = None) -> Decoded:
        return self._decide(self.regression, x, self._decoder(loss))

    def _decide(self, regression: Regression, x: X, decoder: str) -> Decoded:
        solution = self.family.decode(decoder, regression.predict(x, self.family.columns(decoder)))
        return Decoded(solution.sigma, solution.scores, objective=solution.objective, margin=solution.margin)

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        """gamma(x) of Eq. (18), of the estimated risk."""
        return decision.margin if isinstance(decision, Decoded) else None

    def judge(self, decision: Decision, y: Y) -> float:
        return self.family.loss(self.own, decision.sigma, y)

    def loss(self, sigma: Sigma, y: Y) -> float:
        return self.family.loss(self.own, sigma, y)

    def learn(
        self, x: X, decision: Decision, y: Y, scored: X, clicked: Floats | None = None, weight: float = 1.0
    ) -> bool:
        self._judge_each(scored, decision, y, weight)
        columns, values = self.family.psi(y)
        if clicked is not None:
            # Each click is a judgement of its own that counts as often as its propensity says.
            values = np.zeros_like(values)
            for c in np.flatnonzero(clicked).tolist():
                values += clicked[c] * self.family.psi((np.arange(len(y)) == c).astype(np.float64))[1]
        for regression in self.regressions:
            regression.learn(x, columns, values, weight)
        return True

    def _judge_each(self, x: X, decision: Decision, y: Y, weight: float) -> None:
        """What each regression alone would have lost; how small the margin was."""
        margin = self.margin(x, decision)
        if margin is not None:
            self.judged += 1
            self.below = self.below + (margin < MARGINS)
        if len(self.regressions) > 1:
            own = self.regression
            losses = [
                self.judge(decision if one is own else self._decide(one, x, self.own), y)
                for one in self.regressions
            ]
            self.losses = self.losses + weight * np.array(losses)

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        """What each active feature adds to each score; None for a kernel, whose scores are no sum over features."""
        if not self.regression.linear:
            return None
        decoder = self._decoder(loss)
        columns = self.family.columns(decoder)
        T = self.family.functionals(decoder, self.regression.predict(x, columns))
        known = columns < self.regression.targets
        full = np.zeros((len(T), self.regression.targets))
        full[:, columns[known]] = T[:, known]
        return self.regression.contributions(x, full)

    def certificate(self) -> dict[str, Json]:
        """Whether the answers are still those of the batch estimator, the form in use, the ridge, how sure rounds were.

        `low_noise`: the share of the judged rounds whose margin was below each number. Where it falls like a power of the
        number, low noise holds and learning is fast (theory/discrete_bounds.py).
        """
        regression, judged = self.regression, max(1, self.judged)
        told: dict[str, Json] = {
            "exact": regression.exact,
            "form": regression.form,
            "ridge": regression.rho(),
            "rounds": self.judged,
            "low_noise": [
                {"below": below, "share": count / judged}
                for below, count in zip(MARGINS.tolist(), self.below.tolist(), strict=True)
            ],
        }
        if len(self.regressions) > 1:
            told["regularization"] = regression.r
            told["losses"] = [
                {"regularization": one.r, "loss": lost}
                for one, lost in zip(self.regressions, self.losses.tolist(), strict=True)
            ]
        return told

    def mark(self) -> tuple[list[RegressionMark], object, tuple[Floats, Ints, int]]:
        marks = [regression.mark() for regression in self.regressions]
        return marks, self.family.mark(), (self.losses, self.below, self.judged)

    def rewind(self, mark: tuple[list[RegressionMark], object, tuple[Floats, Ints, int]]) -> None:
        marks, family, (self.losses, self.below, self.judged) = mark
        for regression, before in zip(self.regressions, marks, strict=True):
            regression.rewind(before)
        self.family.rewind(family)

    def arrays(self) -> Arrays:
        own = self.family.arrays() | {"below": self.below}
        if len(self.regressions) == 1:
            return self.regression.arrays() | own
        for i, regression in enumerate(self.regressions):
            own |= {f"{i}/{name}": array for name, array in regression.arrays().items()}
        return own | {"losses": self.losses}

    def counters(self) -> Counters:
        if len(self.regressions) == 1:
            return self.regression.counters() | {"judged": self.judged}
        return {"regressions": [one.counters() for one in self.regressions], "judged": self.judged}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if arrays["below"].shape != self.below.shape:
            raise ValueError("margins were counted at other places")
        self.below, self.judged = arrays["below"], counters["judged"]
        self.family.restore(arrays)
        if len(self.regressions) == 1:
            self.regression.restore(arrays, counters)
            return
        for i, regression in enumerate(self.regressions):
            start = f"{i}/"
            own = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
            regression.restore(own, counters["regressions"][i])
        if arrays["losses"].shape != self.losses.shape:
            raise ValueError("another number of regressions")
        self.losses = arrays["losses"]

    def nbytes(self) -> int:
        return sum(one.nbytes() for one in self.regressions) + self.family.nbytes()
