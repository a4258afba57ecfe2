"""The automatic learner on lists: three scorers of items, each brought to one scale within the list, and added.

An item's inputs F are its features scaled to [0, 1] within the list, and beside each its rank there (0 the lowest, 1 the
highest, equals in the middle). With the gains G = 2^y - 1 and a bar for "minus its mean over the list":

    ridge    w = argmin sum over lists |F- w - G-|^2 / sqrt(items) + 3 |w|^2, by recursive least squares, item by item
    coin     regression on the grades y by betting on every weight (Orabona and Tommasi 2017): no step to choose
    listnet  w <- w - 0.3 / mean |F|^2  F' (softmax(F w) - G / sum G) (Cao et al. 2007), on the gains that NDCG counts: its
             cross entropy is a bound on NDCG then (Bruch 2021); from clicks, softmax(y) in the place of the gains

    score = sum of the three z = (s - mean s) / sd s

The certificate is Jensen's: the cross entropy l(z) of softmax(z) and the target of ListNet is convex, so that on every
sequence of lists l(mean z) adds up to at most the mean of what the scorers' own l(z) add up to. What that mean is above the
best of them is the bound on the regret. AdaHedge between them, which has a smaller bound, ranks worse: it follows l, which
prefers ridge where its order is the worst of the three.

With more than 100 features ridge leaves for good: it costs the square of them.
"""

import numpy as np

from ...growth import grown
from ...instances import Floats, Ints, Matrix
from ...json_types import Json
from ...kernel import add_outer, row_total, softmax, times, total
from ...kernel.trust import log_losses
from ...losses.rankings import gains
from ...model import Decision, Model
from ...results import ExpertRow
from ...sparse import Csr
from ...tasks.task import Sigma, Task, Y
from ...weights.base import MISFIT, Arrays, Counters, X
from .drift import Drift

MOST = 100
RIDGE = 3.0
PACE = 0.3
CAUTION = 4.0
NAMES = ("ridge", "coin", "listnet")


def inputs(values: Floats | Csr) -> Floats:
    """F, two columns a feature: the value within the list, and the rank."""
    scaled: Floats = values if isinstance(values, np.ndarray) else values.toarray()
    count, features = scaled.shape
    F = np.empty((count, 2 * features))
    F[:, 0::2] = scaled
    order = scaled.argsort(axis=0, kind="stable")
    ordered = np.take_along_axis(scaled, order, axis=0)
    # Equal values share the mean of the first and the last place that they take.
    places = np.arange(count)[:, None]
    begins = np.ones((count, features), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=0)
    ends = np.ones((count, features), dtype=bool)
    ends[:-1] = begins[1:]
    last = np.minimum.accumulate(np.where(ends, places, count)[::-1], axis=0)[::-1]
    ranks = np.empty((count, features))
    np.put_along_axis(ranks, order, (first + last) * 0.5, axis=0)
    F[:, 1::2] = ranks / max(count - 1, 1)
    F[:, 1::2][:, ordered[0] == ordered[-1]] = 0.0
    return F


def _places(rows: Ints) -> Ints:
    """The inputs of features: 2 j and 2 j + 1."""
    return np.stack([2 * rows, 2 * rows + 1], axis=1).reshape(-1)


class ListBlend(Model):
    """A row for each input: `w` has the weights of the three scorers, `coin` theta, sum |g|, largest |g| and the reward."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.features: int = 0
        self.ridge: bool = True
        self.P: Floats = np.zeros((0, 0))
        self.w: Floats = np.zeros((0, 3))
        self.coin: Floats = np.zeros((0, 4))
        self.squares: float = 0.0
        self.rounds: int = 0
        self.losses: Floats = np.zeros(3)
        self.entropies: Floats = np.zeros(5)  # of the mean score, the mean of the scorers', and each scorer's
        self.drift_alarm: Drift = Drift()

    def grow(self, features: int, columns: int) -> None:
        if features > MOST and self.ridge:
            self.ridge, self.P = False, np.zeros((0, 0))
            self.w[:, 0] = 0.0
        size = 2 * features
        if self.ridge and len(self.P) < size:
            P = np.eye(size) / RIDGE
            P[: len(self.P), : len(self.P)] = self.P
            self.P = P
        self.w, self.coin = grown(self.w, size), grown(self.coin, size)
        self.features = features

    # ---- deciding

    def decide(self, x: X, loss: str | None = None) -> Decision:
        self.offers(loss)
        assert isinstance(x, Matrix)
        F = inputs(x.values)
        w = self.w.take(_places(x.rows), axis=0)
        each = np.stack([self._scaled(times(F, np.ascontiguousarray(w[:, i]))) for i in range(3)])
        t = row_total(each) if each.shape[1] else np.zeros(0)
        return Decision(self.task.decide(t), t, judged=(F, each))

    @staticmethod
    def _scaled(s: Floats) -> Floats:
        off = s - total(s) / len(s)
        spread = np.sqrt(total(off * off) / len(s))
        return off / spread if spread > 1e-12 else np.zeros(len(s))

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        return self.task.margin(decision.scores)

    def judge(self, decision: Decision, y: Y) -> float:
        return self.task.loss(decision.sigma, y)

    def loss(self, sigma: Sigma, y: Y) -> float:
        return self.task.loss(sigma, y)

    # ---- learning

    def learn(
        self, x: X, decision: Decision, y: Y, scored: X, clicked: Floats | None = None, weight: float = 1.0
    ) -> bool:
        assert isinstance(x, Matrix)
        self.rounds += 1
        _, each = decision.judged
        self.losses += [self.task.loss(self.task.decide(s), y) for s in each]
        self.drift_alarm.learn(min(self.judge(decision, y), 1.0))
        grades = np.asarray(y if clicked is None else clicked, dtype=np.float64)
        if not len(x.rows) or grades.max() == grades.min():
            return False
        F = inputs(x.values)
        places = _places(x.rows)
        gain = gains(grades) if clicked is None else grades
        share = gain / total(gain) if clicked is None else softmax(grades)
        self._measure(decision.scores, each, share)
        self._learn_ridge(F, places, gain, weight)
        self._learn_coin(F, places, grades, weight)
        self._learn_listnet(F, places, share, weight)
        return True

    def _measure(self, t: Floats, each: Floats, share: Floats) -> None:
        here = 2 + self.ridge
        own, *others = log_losses(np.vstack([t / here, each]), share, bits=False)[0].tolist()
        ridge = others[0] if self.ridge else 0.0
        now = np.array([own, (ridge + others[1] + others[2]) / here, ridge, *others[1:]])
        self.entropies = self.entropies + now

    def _learn_ridge(self, F: Floats, places: Ints, gain: Floats, weight: float) -> None:
        if not self.ridge:
            return
        count = len(F)
        once = np.sqrt(float(count)) / weight
        centred = F - row_total(F) / count
        target = gain - total(gain) / count
        whole = len(places) == len(self.P) and bool((places == np.arange(len(places))).all())
        w = self.w[: len(self.P), 0].copy()
        f = np.zeros(len(self.P))
        for i in range(count):
            if whole:
                f = centred[i]
            else:
                f[places] = centred[i]
            q = times(f, self.P)
            c = once + max(times(f, q), 0.0)
            w += q * ((float(target[i]) - times(f, w)) / c)
            add_outer(self.P, -1.0 / c, q[:, None])
        self.w[: len(self.P), 0] = w

    def _learn_coin(self, F: Floats, places: Ints, grades: Floats, weight: float) -> None:
        w = self.w[places, 1]
        theta, sums, largest, reward = self.coin[places].T.copy()
        for f, grade in zip(F, grades.tolist(), strict=True):
            g = f * (weight * (times(f, w) - grade))
            size = np.abs(g)
            largest = np.maximum(largest, size)
            sums = sums + size
            reward = np.maximum(reward - g * w, 0.0)
            theta = theta - g
            floor = np.maximum(sums + largest, CAUTION * largest) * largest
            w = np.where(floor > 0.0, theta / np.where(floor > 0.0, floor, 1.0) * (largest + reward), 0.0)
        self.w[places, 1] = w
        self.coin[places] = np.stack([theta, sums, largest, reward], axis=1)

    def _learn_listnet(self, F: Floats, places: Ints, share: Floats, weight: float) -> None:
        squares = np.add.accumulate(F * F, axis=1)[:, -1]
        self.squares += float(squares.max())
        w = self.w[places, 2]
        g = softmax(times(F, w)) - share
        if self.squares > 0.0:
            self.w[places, 2] = w - times(g, F) * (weight * PACE * self.rounds / self.squares)

    # ---- telling

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        assert isinstance(x, Matrix)
        F = inputs(x.values)
        w = self.w.take(_places(x.rows), axis=0)
        off = F - row_total(F) / len(F)
        parts = np.zeros((len(F), len(x.rows)))
        for i in range(3):
            s = times(F, np.ascontiguousarray(w[:, i]))
            s = s - total(s) / len(s)
            spread = np.sqrt(total(s * s) / len(s))
            if spread > 1e-12:
                both = off * w[:, i] / spread
                parts += both[:, 0::2] + both[:, 1::2]
        return parts

    def item_weights(self, rows: Ints) -> Floats:
        """What the highest value of a list adds to an item's score, the scorers brought to one spread over the features."""
        gains = self.w[0 : 2 * self.features : 2] + self.w[1 : 2 * self.features : 2]
        spreads = np.sqrt((gains * gains).sum(axis=0) / max(1, self.features))
        weights: Floats = (gains[rows] / np.where(spreads > 1e-12, spreads, np.inf)).sum(axis=1)
        return weights

    def expert_rows(self) -> list[ExpertRow]:
        """Ridge, coin and listnet, each with the same say while it takes part."""
        here = [self.ridge, True, True]
        return [
            {
                "name": name,
                "weight": float(present) / sum(here),
                "mean_loss": float(loss) / self.rounds if self.rounds and present else None,
            }
            for name, present, loss in zip(NAMES, here, self.losses, strict=True)
        ]

    def certificate(self) -> dict[str, Json]:
        """loss <= best_loss + bound, whatever the lists were."""
        loss, average, *each = self.entropies.tolist()
        live = {name: one for name, one in zip(NAMES, each, strict=True) if self.ridge or name != "ridge"}
        best = min(live, key=live.__getitem__)
        return {
            "theorem": "Jensen: the loss of the mean score is at most the mean of the scorers' losses, best_loss + bound",
            "measure": "cross entropy of the scaled scores",
            "loss": loss,
            "best": best,
            "best_loss": live[best],
            "regret": loss - live[best],
            "bound": average - live[best],
        }

    def drift(self) -> dict[str, Json]:
        return self.drift_alarm.describe()

    def arrays(self) -> Arrays:
        size = 2 * self.features
        own = {"losses": self.losses, "entropies": self.entropies}
        return own | {"P": self.P, "w": self.w[:size], "coin": self.coin[:size]}

    def counters(self) -> Counters:
        drift = self.drift_alarm.counters()
        return {"squares": self.squares, "rounds": self.rounds, "ridge": self.ridge, "drift": drift}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        size = 2 * self.features
        self.ridge = counters["ridge"]
        square = size if self.ridge else 0
        shapes = {"P": (square, square), "w": (size, 3), "coin": (size, 4)}
        if any(arrays[name].shape != shape for name, shape in shapes.items()):
            raise ValueError(MISFIT)
        self.P, self.w, self.coin = arrays["P"], arrays["w"], arrays["coin"]
        self.losses, self.entropies = arrays["losses"], arrays["entropies"]
        if self.losses.shape != (3,) or self.entropies.shape != (5,):
            raise ValueError("another number of scorers")
        self.squares, self.rounds = counters["squares"], counters["rounds"]
        self.drift_alarm.restore(counters["drift"])

    def nbytes(self) -> int:
        return self.nbytes_for(self.features, 1)

    def nbytes_for(self, features: int, labels: int) -> int:
        ridge = 4 * features * features if self.ridge and features <= MOST else 0
        return 8 * (ridge + 14 * features)
