"""The quadratic surrogate as a model: ridge regression on psi(y), then the decoder of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import OptionError, pointer
from ...instances import Floats
from ...json_types import Json
from ...model import Decision, Model
from ...tasks.task import Sigma, Y
from ...weights.base import Arrays, Counters, X
from .families import Family
from .regression import Regression, RegressionMark

__all__ = ["Quadratic"]


@dataclass(slots=True)
class Decoded(Decision):
    """A decision with its margin, computed on the way."""

    margin: float | None = None


class Quadratic(Model):
    """f(x) = argmin_z <F_z, g(x)>, Eq. (3), with g the ridge regression on psi(y) after the events so far."""

    learns_unlabelled = True

    def __init__(self, family: Family, loss: str, regression: Regression) -> None:
        self.family = family
        self.own = loss
        self.regression = regression

    def grow(self, features: int, labels: int) -> None:
        self.family.grow(labels)

    def price(self, costs: Sequence[float]) -> None:
        self.family.price(costs)

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
        decoder = self._decoder(loss)
        solution = self.family.decode(decoder, self.regression.predict(x, self.family.columns(decoder)))
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
        columns, values = self.family.psi(y)
        if clicked is not None:
            # Each click is a judgement of its own that counts as often as its propensity says.
            values = np.zeros_like(values)
            for c in np.flatnonzero(clicked).tolist():
                values += clicked[c] * self.family.psi((np.arange(len(y)) == c).astype(np.float64))[1]
        self.regression.learn(x, columns, values, weight)
        return True

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
        """Whether the answers are still those of the batch estimator, the form in use, and the ridge."""
        regression = self.regression
        return {"exact": regression.exact, "form": regression.form, "ridge": regression.rho()}

    def mark(self) -> tuple[RegressionMark, object]:
        return self.regression.mark(), self.family.mark()

    def rewind(self, mark: tuple[RegressionMark, object]) -> None:
        self.regression.rewind(mark[0])
        self.family.rewind(mark[1])

    def arrays(self) -> Arrays:
        return self.regression.arrays() | self.family.arrays()

    def counters(self) -> Counters:
        return self.regression.counters()

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        self.regression.restore(arrays, counters)
        self.family.restore(arrays)

    def nbytes(self) -> int:
        return self.regression.nbytes() + self.family.nbytes()
