"""What the pool was lately wrong by, label by label: for streams whose labels repeat or whose base rates move.

    s <- s + h (Y - p - s),  h = w / (w + 9)

p are the pool's probabilities, w is the weight of the event: a mean of about the last ten errors. Where the order of events
says nothing these errors are noise, and the pool gives them no weight; where it does, they are the part of the next label
that no feature explains. Alone in a pool it follows the labels of late. Above 32 columns, where ten events say little
about any of them, it leaves a pool that has dual ascent, for good.
"""

from typing import Any

import numpy as np

from ...instances import Floats
from ...weights.base import Arrays, Counters
from .adagrad import MOST_COLUMNS
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target

MEMORY = 9.0


class RecentErrors(Expert):
    """See above."""

    present: bool

    name = "recent-errors"
    kind = 4
    scale: float = 2.0

    def __init__(self, setting: Setting) -> None:
        self.most = MOST_COLUMNS if "dual-ascent" in setting.beside else None
        self.errors: Floats = np.zeros(0)  # replaced, but by the kernel's whole round

    def grow(self, features: int, columns: int) -> None:
        if columns > len(self.errors):
            self.errors = np.concatenate((self.errors, np.zeros(columns - len(self.errors))))
        if self.present and self.most is not None and columns > self.most:
            self.present = False
            self.reset()

    def mark(self) -> Any:
        return self.errors, self.present

    def rewind(self, mark: Any) -> None:
        self.errors, self.present = mark

    def fused(self) -> tuple[Any, ...]:
        return self.present, self.scale, MEMORY, self.errors

    def scores(self, inputs: Inputs) -> Floats:
        return self.errors

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        if not self.present:
            return
        step = target.weight / (target.weight + MEMORY)
        self.errors = self.errors + step * (target.errors - self.errors)

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        columns = len(self.errors)
        return np.zeros((len(inputs.scaled.rows), columns)), self.errors, np.zeros(columns)

    def reset(self) -> None:
        self.errors = np.zeros_like(self.errors)

    def arrays(self) -> Arrays:
        return {"errors": self.errors}

    def counters(self) -> Counters:
        return {"present": self.present}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if arrays["errors"].shape != self.errors.shape:
            raise ValueError("another number of labels")
        self.errors, self.present = arrays["errors"], counters["present"]

    def nbytes_for(self, features: int, columns: int) -> int:
        return 8 * columns


register_expert(ExpertEntry("recent-errors", RecentErrors, 0.0))
