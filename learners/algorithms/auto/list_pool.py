"""The automatic learner on lists: four scorers of items, three of them on one matrix, and a pool.

An item's inputs c are its features scaled to [0, 1] within the list and its ranks there, each minus its mean: C has a row
an item. With the gains G = 2^y - 1, p = softmax(s), m items and H = C'C / m of this list

    ridge  d = (G - mean G - s) / m                         the square loss
    list   d = G / sum G - p                                ListNet's cross entropy, on the gains (Bruch 2021)
    pair   d_i = sum_j l_ij - sum_j l_ji, l_ij = W_ij / (1 + e^(s_i - s_j)), W_ij = max(G_i - G_j, 0) / their sum
    coin   regression on the grades by betting on every weight (Orabona and Tommasi 2017): no step to choose

and s = C w, each of the first three goes by second order. Its curvature is at most kappa H (kappa 1, 1, 1/2):

    A <- A + H;  r <- r + C' d;  (kappa A + lambda) delta = r by two steps of conjugate gradients from 0;  w <- w + delta

and r keeps what is left of it (lambda 3, .1, .3). A is read once for all three. Above `WIDEST` features, for good, it is a
diagonal that bounds it: |C|' (|C| 1) / m (Gershgorin).

    z_k = (s_k - mean s_k) / sd s_k;   members: the z, their mean, and the stack a' z, each brought to one spread
    stack  S <- S + Z'Z / m, S_0 = 10;  a <- a + S^-1 Z' (G / sum G - softmax(Z a)), a_0 = 1/4; below 0 counts as 0
    score = sum of the members by AdaHedge's shares (de Rooij et al. 2014) on 1 - NDCG at 10

The certificate is AdaHedge's: who draws a member by its share loses at most 2 D more than the best member. It does not
bound the loss of the order of the mixed scores, which is what is served; `served_loss` says what that was.
"""

from typing import Any, NamedTuple

import numpy as np

from ...growth import grown
from ...instances import Floats, Ints, Matrix
from ...json_types import Json
from ...kernel import list_inputs, list_round, list_scores, row_total, total
from ...kernel.lists import MEMBERS, TOP, ListState, places_of
from ...kernel.powers import exp2
from ...losses.rankings import discounts, gains, ndcg_loss
from ...model import Decision, Model
from ...results import ExpertRow
from ...sparse import Csr
from ...tasks.task import Sigma, Task, Y
from ...weights.base import MISFIT, Arrays, Counters, X
from .drift import Drift

WIDEST = 300
# Gains up to 2^HIGHEST are as they are; beyond, the list's highest grade counts as this one, so that no list outweighs all.
HIGHEST = 5.0
NAMES = ("ridge", "list", "pair", "coin", "mean", "stack")


class Looked(NamedTuple):
    """The inputs of what was scored, and the scores of the scorers and of the members."""

    C: Floats
    t: Floats
    E: Floats


def dense(values: Floats | Csr) -> Floats:
    """As one array."""
    return values if isinstance(values, np.ndarray) else values.toarray()


def inputs_of(x: Matrix) -> Floats:
    """C; where only some items of a served list count, their ranks are those of the list, and the mean is theirs."""
    if x.served is None:
        return list_inputs(dense(x.values))
    whole, kept = x.served
    C = list_inputs(dense(whole))[kept]
    return np.asarray(C - row_total(C) / len(C))


def gains_of(y: Floats) -> Floats:
    """G = 2^y - 1; where the highest grade is above `HIGHEST`, all of them 2^(HIGHEST - that) times as large."""
    top = float(y.max())
    gain = gains(y)
    return gain * exp2(np.array([min(top, HIGHEST)])) if top >= 0.01 else gain


class ListPool(Model):
    """See above. `state` has room for more than the features that are known."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.features: int = 0
        self.state: ListState = ListState(
            np.zeros((0, 4)),
            np.zeros((0, 3)),
            np.zeros((0, 0)),
            np.zeros((0, 4)),
            np.full(4, 0.25),
            10.0 * np.eye(4),
            np.zeros(MEMBERS),
            np.full(MEMBERS, 1.0 / MEMBERS),
        )
        self.gaps: float = 0.0
        self.drawn: float = 0.0  # the loss of members drawn by their shares
        self.served: float = 0.0  # that of the mixed scores
        self.rounds: int = 0
        self.drift_alarm: Drift = Drift()

    @property
    def wide(self) -> bool:
        """Whether a diagonal stands for the matrix."""
        return self.state.A.ndim == 1

    def grow(self, features: int, columns: int) -> None:
        size, state = 2 * features, self.state
        w, coin, r, A = grown(state.w, size), grown(state.coin, features), state.r, state.A
        if features > WIDEST and not self.wide:
            A, r = np.add.accumulate(np.abs(A), axis=1)[:, -1] if len(A) else np.zeros(0), np.zeros((0, 3))
        if A.ndim == 1:
            A = grown(A, size)
        elif len(A) < size:
            A, r = np.zeros((size, size)), np.zeros((size, 3))
            A[: len(state.A), : len(state.A)] = state.A
            r[: len(state.r)] = state.r
        self.state = state._replace(w=w, coin=coin, r=r, A=A)
        self.features = features

    def mark(self) -> tuple[Any, ...]:
        # A round changes the arrays in place as its last act, and growing makes new ones.
        numbers = self.features, self.state, self.gaps, self.drawn, self.served, self.rounds
        return numbers, self.drift_alarm.mark()

    def rewind(self, mark: tuple[Any, ...]) -> None:
        numbers, drift = mark
        self.features, self.state, self.gaps, self.drawn, self.served, self.rounds = numbers
        self.drift_alarm.rewind(drift)

    # ---- deciding

    def decide(self, x: X, loss: str | None = None) -> Decision:
        self.offers(loss)
        assert isinstance(x, Matrix)
        C, state = inputs_of(x), self.state
        t, E, scores = list_scores(C, x.rows, state.w, state.a, state.shares)
        return Decision(self.task.decide(scores), scores, judged=Looked(C, t, E))

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
        self.drift_alarm.learn(min(self.judge(decision, y), 1.0))
        grades = np.asarray(y if clicked is None else clicked, dtype=np.float64)
        if not len(grades) or grades.max() == grades.min():
            return False
        looked: Looked = decision.judged
        C = looked.C if x is scored else inputs_of(x)
        gain = gains_of(grades) if clicked is None else grades
        truth = gain, grades, discounts(min(TOP, len(gain)))
        served = ndcg_loss(decision.sigma, y, TOP)
        state = self.state
        size = 2 * self.features
        own = state._replace(
            w=state.w[:size],
            r=state.r[:size],
            A=state.A[:size],
            coin=state.coin[: self.features],
        )
        inputs = C, np.ascontiguousarray(dense(x.values)), x.rows
        drawn, self.gaps = list_round(inputs, truth, (looked.t, looked.E), weight, own, self.gaps)
        self.drawn += drawn
        self.served += served
        return True

    # ---- telling

    def _trust(self) -> Floats:
        """What each scorer's z counts in the pool, were all spreads alike."""
        *alone, mean, stack = self.state.shares.tolist()
        a = np.where(self.state.a > 0.0, self.state.a, 0.0)
        whole = total(a)
        trust: Floats = np.array(alone) + mean * 0.25 + (stack * a / whole if whole > 0.0 else 0.0)
        return trust

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        assert isinstance(x, Matrix)
        C, state = inputs_of(x), self.state
        if not len(x.rows):
            return np.zeros((len(C), 0))
        t, E, _ = list_scores(C, x.rows, state.w, state.a, state.shares)
        spreads = np.array([_spread(row) for row in t])
        a = np.where(state.a > 0.0, state.a, 0.0)
        each = np.where(spreads > 0.0, 1.0 / np.where(spreads > 0.0, spreads, 1.0), 0.0)
        *alone, mean, stack = state.shares.tolist()
        mixed = np.array(alone)
        for share, parts in ((mean, np.full(4, 0.25)), (stack, a)):
            spread = _spread((E[:4] * parts[:, None]).sum(axis=0))
            mixed = mixed + (share * parts / spread if spread > 0.0 else 0.0)
        parts = C * (state.w[places_of(x.rows)] * (mixed * each)).sum(axis=1)
        return np.asarray(parts[:, 0::2] + parts[:, 1::2])

    def item_weights(self, rows: Ints) -> Floats:
        """What the highest value of a list adds to an item's score, the scorers brought to one spread over the features."""
        size = 2 * self.features
        gain = self.state.w[0:size:2] + self.state.w[1:size:2]
        spreads = np.sqrt((gain * gain).sum(axis=0) / max(1, self.features))
        weights: Floats = (gain[rows] / np.where(spreads > 1e-12, spreads, np.inf) * self._trust()).sum(
            axis=1
        )
        return weights

    def expert_rows(self) -> list[ExpertRow]:
        """The members of the pool."""
        counted = self.rounds > 0
        return [
            {"name": name, "weight": share, "mean_loss": loss / self.rounds if counted else None}
            for name, share, loss in zip(
                NAMES, self.state.shares.tolist(), self.state.losses.tolist(), strict=True
            )
        ]

    def certificate(self) -> dict[str, Json]:
        """loss <= best_loss + bound, whatever the lists were; of `served_loss` it says nothing."""
        losses = self.state.losses
        best = int(losses.argmin())
        return {
            "theorem": "AdaHedge, de Rooij et al. 2014: loss <= best_loss + bound, loss that of a member drawn by its "
            "weight; served_loss, that of the mixed scores, is not bounded",
            "measure": f"1 - NDCG at {TOP}",
            "loss": self.drawn,
            "best": NAMES[best],
            "best_loss": float(losses[best]),
            "regret": self.drawn - float(losses[best]),
            "bound": 2.0 * self.gaps,
            "served_loss": self.served,
        }

    def drift(self) -> dict[str, Json]:
        return self.drift_alarm.describe()

    def arrays(self) -> Arrays:
        size, state = 2 * self.features, self.state
        own: Arrays = dict(state._asdict())
        own |= {"w": state.w[:size], "r": state.r[:size], "A": state.A[:size]}
        return own | {"coin": state.coin[: self.features]}

    def counters(self) -> Counters:
        return {
            "gaps": self.gaps,
            "drawn": self.drawn,
            "served": self.served,
            "rounds": self.rounds,
            "drift": self.drift_alarm.counters(),
        }

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        size = 2 * self.features
        left = (0, 3) if self.wide else (size, 3)
        square = (size,) if self.wide else (size, size)
        shapes = [(size, 4), left, square, (self.features, 4), (4,), (4, 4), (MEMBERS,), (MEMBERS,)]
        state = ListState(*(arrays[name] for name in ListState._fields))
        if [part.shape for part in state] != shapes:
            raise ValueError(MISFIT)
        self.state = state
        self.gaps, self.drawn, self.served = counters["gaps"], counters["drawn"], counters["served"]
        self.rounds = counters["rounds"]
        self.drift_alarm.restore(counters["drift"])

    def nbytes(self) -> int:
        return self.nbytes_for(self.features, 1)

    def nbytes_for(self, features: int, labels: int) -> int:
        matrix = 4 * features * features + 6 * features if features <= WIDEST else 2 * features
        return 8 * (matrix + 12 * features)


def _spread(s: Floats) -> float:
    """sd s, or 0 where it counts as none."""
    off = s - total(s) / len(s)
    spread = float(np.sqrt(total(off * off) / len(s)))
    return spread if spread > 1e-12 else 0.0
