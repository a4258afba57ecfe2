"""The quadratic surrogate: ridge regression on psi(y), online, and a decoder for each loss."""

from collections.abc import Callable

from ...checks import choice, integer, number
from ...forms import Form
from ...model import Model
from ...parameters import BANDWIDTH, BLOCKS, WEIGHTS
from ...registry import Algorithm, Cost, Parameter, Size, Spec, needs, register
from .any_loss import Answer, AnyLoss
from .estimator import Quadratic
from .families import Classes, Family, Items
from .labels import Labels
from .regression import BUDGET, Regression
from .sets import Sets

__all__ = ["Answer", "AnyLoss", "Regression"]

_FAMILIES: dict[str, Callable[[str, int | None], Family]] = {
    "multiclass": Classes,
    "multilabel": Sets,
    "label-ranking": Labels,
    "subset-ranking": Items,
}
_ORDERS = ("ndcg", "precision", "ap", "pairwise-disagreement")
_LOSSES: dict[str, tuple[str, ...]] = {
    "multiclass": ("zero-one", "weighted", "block-zero-one"),
    "multilabel": ("subset-zero-one", "hamming", "f-score", "precision", "block-zero-one"),
    "label-ranking": _ORDERS,
    "subset-ranking": _ORDERS,
}


def build(spec: Spec) -> Model:
    """The regression, and the family of decoders of the task."""
    family = _FAMILIES[spec["task"]](spec["loss"], spec.get("cutoff"))
    regression = Regression(spec["regularization"], spec.get("bandwidth"), spec["budget"])
    return Quadratic(family, spec["loss"], regression)


def _has_cutoff(form: Form) -> bool:
    # Not only of the spec's own loss: another decoder, asked for at predict time, may need it.
    return "precision" in _LOSSES.get(form.name, ())


def cost(spec: Spec, size: Size) -> Cost:
    """A row of a regression for each item, and where a loss looks at pairs of labels, a target for each pair."""
    rows, m = max(1, size.items), size.labels
    width = min(size.known_features + size.features, spec.get("budget") or BUDGET)
    square = width**2
    cells = max(1, size.features) * max(1, m, size.items)
    seconds = 1e-3 + 2e-5 * size.items + 2e-8 * cells + 4e-9 * rows * square
    memory = 64 * cells + 16 * square
    if not size.items and spec["loss"] in ("ap", "pairwise-disagreement"):
        return Cost(seconds + (1e-6 + 2e-8 * width) * m * m, memory + (250 + 50 * width) * m * m)
    if spec["loss"] == "f-score":
        return Cost(seconds + 1e-7 * m * m, memory + 64 * m * m)
    return Cost(seconds + 3e-6 * m, memory)


register(
    Algorithm(
        "quadratic-surrogate",
        "ridge regression on a representation of the truth, then the best decision for a loss; consistent, second order",
        tuple(_FAMILIES),
        {
            "loss": Parameter(
                lambda form: choice(*_LOSSES[form.name]),
                "what a decision costs; a prediction may name another loss",
                example="ap",
            ),
            "weights": WEIGHTS,
            "blocks": BLOCKS,
            "cutoff": Parameter(
                integer(least=1),
                "only the first so many positions, or labels, count",
                None,
                forms=_has_cutoff,
                required=needs("loss", "precision"),
                why="goes with sets and rankings",
                example=10,
            ),
            "regularization": Parameter(
                number(above=0), "r of the ridge r sqrt(n) after n events", 1.0, example=0.1
            ),
            "kernel": Parameter(
                choice("linear", "gaussian"), "exp(-||x - x'||^2 / (2 bandwidth^2))", example="gaussian"
            ),
            "bandwidth": BANDWIDTH,
            "budget": Parameter(
                integer(least=1),
                "the number of rows or features stored exactly; beyond it, an approximation of bounded size is used",
                None,
                shown="2048",
                example=512,
            ),
        },
        build,
        cost=cost,
        weight="is w equal events, exactly: w times in both sums of the regression, and n grows by w",
    )
)
