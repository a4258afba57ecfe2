"""Online label ranking by dual ascent (Shalev-Shwartz and Singer): updates I, II, III, for two complexities."""

from collections.abc import Mapping
from typing import Any

from ... import instances
from ...checks import boolean, choice, integer, number
from ...errors import SpecError
from ...instances import FeatureVector, ItemList
from ...model import FirstOrder, Model
from ...registry import Algorithm, Cost, Parameter, Size, Spec, first_order_cost, needs, register
from ...weights.base import Weights
from ...weights.entropic import Entropic
from ...weights.linear import BRIEF, Linear, Named
from .certified import DualAscent
from .mistakes import OneRelevant, Relevant, TwoLabels

_TASKS = {"label-ranking": Relevant, "multiclass": OneRelevant, "binary": TwoLabels}


def build(spec: Spec) -> Model:
    """Its step is 1."""
    weights: Weights = (
        Entropic(spec["dimension"])
        if spec["complexity"] == "entropy"
        else (Named if "label_words" in spec else Linear)(spec["precision"] == "float32", brief=BRIEF)
    )
    return FirstOrder(_TASKS[spec["task"]](), DualAscent(spec["update"], spec["C"], spec["gamma"]), weights)


def _scale(spec: Spec) -> tuple[float, float]:
    """C and gamma. Entropic scores are averages of x: with x scaled down, gamma shrinks and C grows."""
    if spec["complexity"] == "squared-norm":
        return 1.0, 1.0
    return (5.0, 0.0002) if spec["normalize"] == "unit" else (0.3, 0.001)


def _agree(spec: Spec) -> None:
    if spec["complexity"] == "entropy" and spec["gamma"] >= 1:
        raise SpecError(
            "must be below 1 with complexity: entropy, because scores are probabilities", "/gamma"
        )
    if spec["complexity"] == "entropy" and "label_words" in spec:
        raise SpecError("goes with complexity: squared-norm", "/label_words")


def _accepts(spec: Mapping[str, Any], instance: FeatureVector | ItemList) -> None:
    if spec["complexity"] == "entropy" and isinstance(instance, FeatureVector):
        instances.not_negative(instance)


def cost(spec: Spec, size: Size) -> Cost:
    """Linear; entropic weights solve for a root, label by label."""
    cost = first_order_cost(spec, size)
    if spec["complexity"] == "entropy":
        return Cost(cost.seconds + 1e-3 + 1e-5 * size.labels, cost.bytes)
    return cost


register(
    Algorithm(
        "dual-ascent",
        "label ranking by ascent on the dual of a large-margin problem, with a proved bound on the mistakes",
        tuple(_TASKS),
        {
            "update": Parameter(
                choice("I", "II", "III"),
                "I moves the worst pair by C, II by the best amount, III solves the round's problem for all labels",
                example="III",
            ),
            "complexity": Parameter(
                choice("squared-norm", "entropy"),
                "`entropy` keeps each label's weights on the simplex; features must not be negative then",
                example="entropy",
            ),
            "C": Parameter(
                number(above=0),
                "the largest step of one event",
                lambda spec: _scale(spec)[0],
                shown="1; entropy 0.3, with normalize: unit 5",
                example=10,
            ),
            "gamma": Parameter(
                number(above=0),
                "the margin that relevant labels should have over the others; below 1 with entropy",
                lambda spec: _scale(spec)[1],
                shown="1; entropy 0.001, with normalize: unit 0.0002",
                example=0.5,
            ),
            "dimension": Parameter(
                integer(least=1),
                "entropic weights start at 1/dimension; it grows if there are more features",
                50_000,
                needs("complexity", "entropy"),
                example=10_000,
            ),
            "label_words": Parameter(
                boolean,
                "features that are words of a label's name (behind the prefix of their block, and in lower case; or the"
                " name as it is) add to the score of that label, with one weight per block that all labels share",
                False,
                needs("normalize", "blocks"),
                forms=lambda form: not form.closed,
                why="goes with normalize: blocks, where labels may join",
                example=True,
                omitted=True,
            ),
        },
        build,
        linear=lambda spec: spec["complexity"] == "squared-norm",
        agree=_agree,
        cost=cost,
        accepts=_accepts,
        weight="may move w C instead of C; the certificate's `condition_held` is false from then on",
    )
)
