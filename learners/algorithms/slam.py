"""SLAM: the perceptron for ranking lists (Chaudhuri and Tewari, Algorithm 2).

    phi(t, y) = sum_i v_i max(0, max_{j: y_j < y_i} (Delta + t_j - t_i)),   a bound on 1 - NDCG_k or 1 - AP

Items are placed by grade, equal grades by score, equal scores by index; v_i goes with the place of item i. Only
the top scorer among strictly lower grades can attain the inner maximum, so all of it takes O(m log m).
"""

from typing import Any

import numpy as np

from ..checks import choice, integer, number, number_or
from ..instances import Floats, Ints
from ..losses.rankings import ap_loss, discounts, gains
from ..model import FirstOrder, Model, Round, Surrogate
from ..registry import Algorithm, Parameter, Spec, needs, register
from ..tasks.permutations import AP, NDCG
from ..tasks.task import Task
from ..weights.linear import Linear
from . import rates

# RML; the gains along the order, negated; the positions by place; v by place before its division by Z; Z.
Judged = tuple[float, Floats, Ints, Floats, float]


def ranked(t: Floats) -> Ints:
    """The decision on scores: best first, ties to the item listed first."""
    return (-t).argsort(kind="stable")


def rivals(falling: Floats, by: Ints) -> Ints:
    """For each place above the lowest grade, the position of the top scorer among strictly lower grades.

    `falling` are the grades along the order, negated, and `by` sorts them. The first item of a grade below y stands where
    the running minimum of the grades falls below y.
    """
    lowest = np.maximum.accumulate(falling)
    levels = falling[by]
    return lowest.searchsorted(levels[: levels.searchsorted(lowest[-1])], "right")


class Slam(Surrogate):
    """g = sum_i v_i (e_k(i) - e_i), i the items whose hinge is on, k(i) their rivals; None on a round without loss.

    NDCG_k   v_i = G(y_i) D(place i) / Z_k on the first k places, Eq. (11) and (24)
    AP       v_i = 1/r on the r relevant items, Eq. (10)
    """

    cutoff: int | None
    margin: float

    def __init__(self, measure: str = "ndcg", cutoff: int | None = None, margin: float = 1.0) -> None:
        self.cutoff, self.margin = cutoff, margin
        self.binary: bool = measure == "ap"

    def fused(self) -> dict[str, Any]:
        return {"update": 5, "margin": self.margin}

    def judge(self, order: Ints, y: Floats) -> Judged:
        """RML(order, y) = 1 - NDCG_k or 1 - AP, as in `losses.rankings`, and what the direction needs again."""
        gain: Floats = (y[order] > 0.0).astype(np.float64) if self.binary else gains(y)[order]
        falling = -gain
        by = falling.argsort(kind="stable")
        best = gain[by[: self.cutoff]]
        if self.binary:
            return ap_loss(order, y), falling, by, best, float(np.count_nonzero(best))
        D = discounts(len(best))
        Z = float((best * D).sum())
        loss = max(0.0, float(((best - gain[: self.cutoff]) * D).sum()) / Z) if Z > 0.0 else 0.0
        best *= D
        return loss, falling, by, best, Z

    def _judged(self, round: Round) -> tuple[Ints, Judged]:
        """The order of the scores and what is judged of it, taken from the round where it has them."""
        order = ranked(round.t) if round.order is None else round.order
        return order, round.judged or self.judge(order, round.y)

    def v(self, round: Round) -> Floats:
        """The weights of the hinges, by place."""
        _, (_, _, _, v, Z) = self._judged(round)
        return v / Z

    def direction(self, round: Round) -> Floats | None:
        t = round.t
        order, (loss, falling, by, v, Z) = self._judged(round)
        if loss <= 0.0:
            return None
        v = v / Z
        rival = order[rivals(falling, by)[: self.cutoff]]
        better = order[by[: len(rival)]]
        active = v[: len(rival)] * (t[rival] - t[better] > -self.margin)
        g = np.bincount(rival, active, len(t)).astype(np.float64, copy=False)
        g[better] -= active
        return g


MEASURE = Parameter(choice("ndcg", "ap"), "the loss: 1 - NDCG or 1 - AP", example="ap")
CUTOFF = Parameter(
    integer(least=1),
    "NDCG counts only the first so many positions",
    None,
    needs("measure", "ndcg"),
    example=10,
)


def measured(spec: Spec) -> Task:
    """The task that `measure` and `cutoff` describe."""
    return AP() if spec["measure"] == "ap" else NDCG(spec["cutoff"])


def build(spec: Spec) -> Model:
    """SLAM at its learning rate."""
    surrogate = Slam(spec["measure"], spec.get("cutoff"), spec["margin"])
    if spec["learning_rate"] == "theory":
        pace: Surrogate = rates.Paced(surrogate, rates.theory(surrogate.v, spec["R"]))
    else:
        pace = rates.paced(surrogate, spec["learning_rate"])
    return FirstOrder(measured(spec), pace, Linear(spec["precision"] == "float32"))


register(
    Algorithm(
        "slam",
        "a large-margin perceptron for lists, which bounds 1 - NDCG or 1 - AP",
        ("subset-ranking", "label-ranking"),
        {
            "measure": MEASURE,
            "cutoff": CUTOFF,
            "margin": Parameter(
                number(above=0), "the margin between scores that the hinge loss requires", 1.0, example=0.5
            ),
            "learning_rate": Parameter(
                number_or("scale-free", "theory", above=0),
                "the step: a number, `scale-free` (0.3 / mean squared length of the items) or `theory` (with `R`)",
                "scale-free",
                example=0.1,
            ),
            "R": Parameter(
                number(above=0),
                "a bound on the length of every item's feature vector",
                None,
                needs("learning_rate", "theory"),
                required=True,
                example=1.0,
            ),
        },
        build,
        linear=lambda spec: True,
    )
)
