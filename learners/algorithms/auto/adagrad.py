"""AdaGrad on logistic loss, softmax where one label is right: every weight has a rate of its own (Duchi et al. 2011).

    s = W' u,  e = u (link(s) - Y)',  G <- G + e^2,  W <- W - 0.3 e / sqrt(G)

Its log-odds are probabilities already, and no single event moves it far: the one to trust while events are few and noisy.
Above 32 columns, where it is slow and dual ascent is ahead of it, it leaves a pool that has dual ascent, for good; and
above 2 columns and 1,000 features a pool that has entropy, which is ahead of it on words.
"""

from typing import Any

import numpy as np

from ... import kernel
from ...growth import columns_for
from ...instances import Floats
from ...kernel import sigmoid, softmax
from ...weights.base import Arrays, Counters
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target

RATE = 0.3
MOST_COLUMNS, FEW_COLUMNS, MOST_FEATURES = 32, 2, 1000


class AdaGrad(Expert):
    """See above."""

    present: bool

    name = "adagrad"
    kind = 2
    scale: float = 1.0

    def __init__(self, setting: Setting) -> None:
        self.bits: bool = setting.bits
        self.most = MOST_COLUMNS if "dual-ascent" in setting.beside else None
        self.wide = MOST_FEATURES if "entropy" in setting.beside else None
        self.features: int = 0
        self.labels: int = 0
        self._weights = kernel.Weights()
        self._squares = kernel.Weights()
        self._before: list[Any] = []

    def grow(self, features: int, columns: int) -> None:
        self.features, self.labels = features, columns
        if self.present and not self.stays(features, columns):
            self._leave()
        if self.present:
            self._weights.grow(features, columns)
            self._squares.grow(features, columns)

    def stays(self, features: int, columns: int) -> bool:
        if self.wide is not None and columns > FEW_COLUMNS and features > self.wide:
            return False
        return self.most is None or columns <= self.most

    def _leave(self) -> None:
        self.present = False
        self._weights, self._squares = kernel.Weights(), kernel.Weights()

    def mark(self) -> Any:
        """References; `learn` keeps the entries that it changes."""
        self._before = []
        return self._weights, self._squares, self.features, self.labels, self.present

    def rewind(self, mark: Any) -> None:
        for weights, squares, rows, old in self._before:
            if old is not None:
                weights[rows], squares[rows] = old[: len(rows)], old[len(rows) :]
        self._weights, self._squares, self.features, self.labels, self.present = mark
        if self.present:
            self._weights.shrink(self.features, self.labels)
            self._squares.shrink(self.features, self.labels)

    def fused(self) -> tuple[Any, ...]:
        room = self.wide if self.wide is not None and self.labels > FEW_COLUMNS else 0
        return self.present, self.scale, RATE, self._weights, self._squares, room

    def scores(self, inputs: Inputs) -> Floats:
        return self._weights.scores(inputs.vector) if self.present else np.zeros(self.labels)

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        if not self.present or not len(s) or not (self.bits or target.relevant.any()):
            return
        miss = (sigmoid(s) if self.bits else softmax(s)) - target.Y
        if target.weight != 1.0:
            miss = miss * target.weight
        x, weights, squares = inputs.vector, self._weights.theta, self._squares.theta
        # Its place first, then the step, which gives the way back: nothing can fail between the two.
        entry: list[Any] = [weights, squares, x.rows, None]
        self._before.append(entry)
        entry[3] = kernel.adapt(weights, squares, x.rows, x.values, miss, RATE)

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        x, nothing = inputs.vector, np.zeros(self.labels)
        if not self.present:
            return np.zeros((len(x.rows), self.labels)), nothing, nothing
        return self._weights.theta[x.rows] * x.values[:, None], nothing, nothing

    def reset(self) -> None:
        if not self.present:
            return
        self._weights, self._squares = kernel.Weights(), kernel.Weights()
        self.grow(self.features, self.labels)

    def arrays(self) -> Arrays:
        return {"W": self._weights.theta, "G": self._squares.theta}

    def counters(self) -> Counters:
        return {"present": self.present}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if not counters["present"]:
            self._leave()
            return
        if arrays["W"].shape != (self.features, self.labels) or arrays["G"].shape != arrays["W"].shape:
            raise ValueError("AdaGrad has another shape than its features and labels")
        self._weights.theta[:] = arrays["W"]
        self._squares.theta[:] = arrays["G"]

    def nbytes_for(self, features: int, columns: int) -> int:
        here = self.present and self.stays(features, columns)
        return 16 * features * columns_for(columns) if here else 0


register_expert(
    ExpertEntry(
        "adagrad",
        AdaGrad,
        0.1,
        "gradient steps on logistic loss (softmax if one label is right), with a separate rate for every weight",
    )
)
