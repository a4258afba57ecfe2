"""The minimax perceptron for ranking lists (Chaudhuri and Tewari, Algorithm 3)."""

from typing import Any

import numpy as np

from ..instances import Floats, Ints
from ..losses.rankings import ap_loss, ndcg_loss
from ..model import FirstOrder, Model, Round, Surrogate
from ..registry import Algorithm, Spec, register
from ..weights.linear import Linear
from .slam import CUTOFF, MEASURE, measured, ranked, rivals


class Minimax(Surrogate):
    """g = e_j - e_i of the pair with y_i > y_j that maximises t_j - t_i; None on a round without loss.

    Ties go to the lowest i, then the lowest j. Scores times a constant choose the same pair, so that
    decisions do not depend on a learning rate: the step is 1.
    """

    binary: bool
    cutoff: int | None

    def __init__(self, measure: str = "ndcg", cutoff: int | None = None) -> None:
        self.binary, self.cutoff = measure == "ap", cutoff

    def fused(self) -> dict[str, Any]:
        return {"update": 7}

    def judge(self, order: Ints, y: Floats) -> tuple[float]:
        """RML(order, y) = 1 - NDCG_k or 1 - AP."""
        return (ap_loss(order, y) if self.binary else ndcg_loss(order, y, self.cutoff),)

    def direction(self, round: Round) -> Floats | None:
        t, y = round.t, round.y
        order = ranked(t) if round.order is None else round.order
        (loss,) = round.judged or self.judge(order, y)
        if loss <= 0.0:
            return None
        grades = y[order]
        falling = -(grades > 0.0).astype(np.float64) if self.binary else -grades
        by = falling.argsort(kind="stable")
        rival = order[rivals(falling, by)]
        better = order[by[: len(rival)]]
        gap = t[rival] - t[better]
        worst = (gap == gap[gap.argmax()]).nonzero()[0]
        pair = worst[better[worst].argmin()]
        g = np.zeros(len(t))
        g[better[pair]] = -1.0
        g[rival[pair]] = 1.0
        return g


def build(spec: Spec) -> Model:
    """The minimax perceptron; its step is 1."""
    return FirstOrder(
        measured(spec), Minimax(spec["measure"], spec.get("cutoff")), Linear(spec["precision"] == "float32")
    )


register(
    Algorithm(
        "minimax-perceptron",
        "a perceptron for lists that corrects the worst pair; no learning rate to choose",
        ("subset-ranking", "label-ranking"),
        {"measure": MEASURE, "cutoff": CUTOFF},
        build,
        linear=lambda spec: True,
    )
)
