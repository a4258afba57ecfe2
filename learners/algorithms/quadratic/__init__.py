"""The quadratic surrogate: ridge regression on psi(y), online, and a decoder for each loss."""

from collections.abc import Callable

import numpy as np

from ... import forms
from ...checks import choice, integer, number_or
from ...forms import Form
from ...model import Model
from ...parameters import (
    BANDWIDTH,
    BLOCKS,
    DEGREE,
    DISCOUNT,
    GAIN,
    KERNEL,
    MATRIX,
    REJECT_COSTS,
    WEIGHTS,
)
from ...registry import Algorithm, Cost, Parameter, Size, Spec, needs, register
from .any_loss import Answer, AnyLoss
from .estimator import Quadratic
from .families import Family, Items
from .labels import Labels
from .one_of_several import Classes
from .regression import BUDGET, Regression
from .sets import Sets

__all__ = ["Answer", "AnyLoss", "Regression"]

_FAMILIES: dict[str, Callable[..., Family]] = {
    "binary": Classes,
    "multiclass": Classes,
    "ordinal": Classes,
    "multilabel": Sets,
    "label-ranking": Labels,
    "subset-ranking": Items,
}
CANDIDATES = (1.0, 0.1, 10.0, 0.01, 100.0)  # of `regularization: auto`; of equals the first decides
TWO = np.array([[0.5, -0.5], [-0.5, 0.5]])  # binary: t = (g_1 - g_0) / 2 and -t
_ORDERS = ("ndcg", "precision", "ap", "pairwise-disagreement")
_LOSSES: dict[str, tuple[str, ...]] = {
    "binary": ("zero-one", "weighted", "reject", "matrix"),
    "multiclass": ("zero-one", "weighted", "block-zero-one", "reject", "matrix"),
    "ordinal": ("absolute", "zero-one", "matrix"),
    "multilabel": ("subset-zero-one", "hamming", "f-score", "precision", "block-zero-one"),
    "label-ranking": _ORDERS,
    "subset-ranking": _ORDERS,
}


def build(spec: Spec) -> Model:
    """The regression, and the family of decoders of the task."""
    worth = (spec.get("gain", "exponential"), spec.get("discount", "log"))
    orders = [worth] if forms.of(spec["task"]).ranks else []
    family = _FAMILIES[spec["task"]](spec["loss"], spec.get("cutoff"), *orders)
    asked = spec["regularization"]
    regressions = [
        Regression(r, spec.get("bandwidth"), spec["budget"], spec.get("degree"))
        for r in (CANDIDATES if asked == "auto" else [asked])
    ]
    view = TWO if spec["task"] == "binary" and spec["loss"] != "reject" else None
    return Quadratic(family, spec["loss"], regressions, view)


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
    if spec["regularization"] == "auto":
        seconds, memory = len(CANDIDATES) * seconds, len(CANDIDATES) * memory
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
            "reject_costs": REJECT_COSTS,
            "matrix": MATRIX,
            "blocks": BLOCKS,
            "gain": GAIN,
            "discount": DISCOUNT,
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
                number_or("auto", above=0),
                "r of the ridge r sqrt(n) after n events; `auto` is the one of 0.01, 0.1, 1, 10, 100 that would have lost"
                " least so far, at the cost of all five",
                1.0,
                example="auto",
            ),
            "kernel": KERNEL,
            "bandwidth": BANDWIDTH,
            "degree": DEGREE,
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
