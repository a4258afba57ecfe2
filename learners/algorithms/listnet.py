"""Online ListNet (Cao et al. 2007), the baseline of Chaudhuri and Tewari."""

from typing import Any

from ..checks import number_or
from ..instances import Floats, Ints
from ..kernel import softmax
from ..losses.rankings import ndcg_loss
from ..model import FirstOrder, Model, Round, Surrogate
from ..registry import Algorithm, Parameter, Spec, register
from ..tasks.permutations import NDCG
from ..weights.linear import Linear
from . import rates


class ListNet(Surrogate):
    """g = softmax(t) - softmax(y), the gradient of -<softmax(y), log softmax(t)>; None where all grades are equal.

    It learns on every other round, also on those without loss.
    """

    def fused(self) -> dict[str, Any]:
        return {"update": 6}

    def judge(self, order: Ints, y: Floats) -> tuple[float]:
        """1 - NDCG of the whole list."""
        return (ndcg_loss(order, y),)

    def direction(self, round: Round) -> Floats | None:
        y = round.y
        if y[y.argmax()] == y[y.argmin()]:
            return None
        return softmax(round.t) - softmax(y)


def build(spec: Spec) -> Model:
    """Online ListNet."""
    return FirstOrder(
        NDCG(), rates.paced(ListNet(), spec["learning_rate"]), Linear(spec["precision"] == "float32")
    )


register(
    Algorithm(
        "listnet",
        "gradient steps on the cross entropy between the softmax of the scores and the softmax of the grades",
        ("subset-ranking", "label-ranking"),
        {
            "learning_rate": Parameter(
                number_or("scale-free", above=0),
                "the step: a number, or `scale-free` (0.3 / mean squared length of the items)",
                "scale-free",
                example=0.1,
            )
        },
        build,
        linear=lambda spec: True,
    )
)
