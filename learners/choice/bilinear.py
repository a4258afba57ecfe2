"""Bilinear scores s(a) = a' W x, and logistic regression of the reward by implicit steps with diagonal curvature.

W has a row for each context feature (row 0: the constant) and a column for each item feature and each id. With
f = x a' the outer product of the chosen item, precision A (the diagonal of the curvature, A_0 everywhere at first),
reward r in [0, 1] and weight w of the event, the step is the minimum of

    1/2 |W' - W|_A^2 + w l(<W', f>, r),    l the logistic loss.

It moves along f / A only: with v = <f, f / A>, the new score is the root of s' = s - w v (sigmoid(s') - r), and

    W <- W - w (sigmoid(s') - r) f / A,
    A <- A_0 + (1 - phi) (A - A_0) + w max(p (1 - p), 1e-4) f^2,    p = sigmoid(s').

Implicit steps need no learning rate and never overshoot, however large f is. The precision of a pair of features fades by
phi = 0.01 each time the pair is met again, W does not: so steps do not go to 0, and a reward that changes is followed.
"""

import numpy as np

from ..growth import grown
from ..instances import Floats, Ints
from ..kernel import exp_of
from ..kernel.elementary import row_total, total

PRIOR = 0.03
FORGET = 0.01
FLATTEST = 1e-4
STEPS = 100


class Bilinear:
    """W and A, which grow in both directions: what is new weighs 0, at the prior's precision."""

    def __init__(self, prior: float = PRIOR, forget: float = FORGET) -> None:
        self.prior, self.forget = prior, forget
        self.rows = self.columns = 0
        self.weights: Floats = np.zeros((0, 0))
        self.precision: Floats = np.zeros((0, 0))
        self._before: tuple[tuple[tuple[Ints, Ints], Floats, Floats], ...] = ()

    def grow(self, rows: int, columns: int) -> None:
        """Room for what has joined."""
        if columns > self.weights.shape[1]:
            width = max(columns, self.weights.shape[1] * 5 // 4, 8)
            weights = np.zeros((len(self.weights), width))
            precision = np.full((len(self.weights), width), self.prior)
            weights[:, : self.columns] = self.weights[:, : self.columns]
            precision[:, : self.columns] = self.precision[:, : self.columns]
            self.weights, self.precision = weights, precision
        if rows > len(self.weights):
            weights = grown(self.weights, rows)
            precision = np.full(weights.shape, self.prior)
            precision[: self.rows] = self.precision[: self.rows]
            self.weights, self.precision = weights, precision
        self.rows, self.columns = max(self.rows, rows), max(self.columns, columns)

    def mark(self) -> tuple[int, int]:
        """What `rewind` needs to take back all that follows."""
        self._before = ()
        return self.rows, self.columns

    def rewind(self, mark: tuple[int, int]) -> None:
        """As at the mark. Room that was made stays, with the values of what is new."""
        for place, weights, precision in reversed(self._before):
            self.weights[place], self.precision[place] = weights, precision
        self._before = ()
        self.rows, self.columns = mark

    def along(self, rows: Ints, x: Floats, columns: Ints) -> Floats:
        """x' W on the named columns, summed over the rows from the first to the last."""
        if not len(rows) or not len(columns):
            return np.zeros(len(columns))
        return row_total(self.weights[rows[:, None], columns] * x[:, None])

    def step(
        self, rows: Ints, x: Floats, columns: Ints, a: Floats, reward: float, weight: float = 1.0
    ) -> None:
        """Learn that the pair earned `reward`, in [0, 1]."""
        place = (rows[:, None], columns)
        f = np.multiply.outer(x, a)
        W, A = self.weights[place], self.precision[place]
        direction = f / A
        s = total((W * f).ravel())
        v = weight * total((direction * f).ravel())
        p = sigmoid_of(implicit(s, v, reward))
        kept = self.prior + (1.0 - self.forget) * (A - self.prior)
        curved = kept + (weight * max(p * (1.0 - p), FLATTEST)) * (f * f)
        stepped = W - (weight * (p - reward)) * direction
        self._before = (*self._before, (place, W, A))
        self.weights[place] = stepped
        self.precision[place] = curved


def sigmoid_of(y: float) -> float:
    """1 / (1 + e^-y) of one number."""
    return 1.0 / (1.0 + exp_of(-y))


def implicit(s: float, v: float, reward: float) -> float:
    """The root of y - s + v (sigmoid(y) - r): between s - v (1 - r) and s + v r, by Newton kept inside by halving."""
    low, high = s - v * (1.0 - reward), s + v * reward
    y = min(max(s, low), high)
    step = high - low
    for _ in range(STEPS):
        p = sigmoid_of(y)
        gap = y - s + v * (p - reward)
        if gap > 0.0:
            high = y
        else:
            low = y
        newton = gap / (1.0 + v * p * (1.0 - p))
        # Far out the curve is flat and Newton goes back and forth: a step that is not half of the last one is no good.
        inside = low < y - newton < high and 2.0 * abs(newton) <= step
        following = y - newton if inside else 0.5 * (low + high)
        step = abs(following - y)
        y = following
        if step <= 1e-13 * max(1.0, abs(y)):
            break
    return y
