"""Predtron: Algorithm 1 (standard) and Algorithm 2 (loss-driven), for every task that has a registered loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import forms
from ..checks import choice, integer, number, number_or
from ..errors import InstanceError, SpecError, TruthError, pointer
from ..instances import FeatureVector, Floats, ItemList
from ..model import FirstOrder, Model, Round, Surrogate
from ..parameters import (
    BANDWIDTH,
    DEGREE,
    DISCOUNT,
    FIRST_PLACES,
    GAIN,
    KERNEL,
    MATRIX,
    REJECT_COSTS,
    WEIGHTS,
)
from ..registry import (
    Algorithm,
    Cost,
    Parameter,
    Size,
    Spec,
    first_order_cost,
    learnable_tasks,
    loss,
    losses,
    needs,
    register,
)
from ..tasks.one_class import Binary
from ..tasks.permutations import AP, NDCG
from ..tasks.task import Task
from ..theory.predtron_bounds import constants, rate_14, rate_15, strong_convexity
from ..weights.base import Weights
from ..weights.expansion import KernelExpansion
from ..weights.linear import BRIEF, Linear
from ..weights.links import PNorm
from ..weights.trace import FEATURES, LABELS, ROOM, TraceNorm

__all__ = ["LossDriven", "Predtron", "Theory", "weights_of"]


class Predtron(Surrogate):
    """g = rep(sigma~) - rep(sigma_y), sigma~ = argmax_sigma L(sigma, y) + <rep(sigma), t>.

    None on a round without loss. The gradient of Eq. (2):
    phi(t, y) = max_sigma L(sigma, y) - <rep(sigma_y) - rep(sigma), t>.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def fused(self) -> dict[str, Any] | None:
        return {"update": 0 if self.task.measure is None else 4}

    def direction(self, round: Round) -> Floats | None:
        task, t, y = self.task, round.t, round.y
        if task.excess(t, y) <= 0.0:
            return None
        return task.rep(task.augmented(y, t), t.size) - task.rep(task.correct(y, t), t.size)


class LossDriven(Predtron):
    """g = L(t, y) (rep(sigma~) - rep(sigma_y)), sigma~ = argmax_{sigma not in Sigma_y} <rep(sigma), t>.

    L is what is lost beyond a correct decision. None on a round without loss.
    """

    by_loss = True

    def fused(self) -> dict[str, Any] | None:
        return {"update": 0} if self.task.measure is None else None

    def direction(self, round: Round) -> Floats | None:
        task, t, y = self.task, round.t, round.y
        cost = task.excess(t, y)
        if cost <= 0.0:
            return None
        return cost * (task.rep(task.rival(y, t), t.size) - task.rep(task.correct(y, t), t.size))


class Theory(Surrogate):
    """g times the learning rate of the theorems, where R bounds the instances; the learner's own step is 1.

        standard     alpha c_L / (4 R^2), Theorems 1 and 15
        loss-driven  alpha / (4 C_L R^2), Theorem 14

    alpha = r - 1 and p^(1/q) R in place of R under a p-norm link: the corollaries' 3 R, but that q follows p in steps.
    For NDCG and AP, c_L depends on lists and grades still to come: the round's own loss takes its place, under the same
    bound (see `rate_1`).
    """

    def __init__(self, surrogate: Predtron, R: float) -> None:
        self.surrogate = surrogate
        self.R = R

    def direction(self, round: Round) -> Floats | None:
        g = self.surrogate.direction(round)
        if g is None:
            return None
        alpha, R = 1.0, self.R
        if isinstance(round.weights, PNorm | TraceNorm):
            alpha, R = strong_convexity(round.weights.q), round.weights.reach * R
        task, t = self.surrogate.task, round.t
        c_L, C_L = constants(task, 2 if isinstance(task, Binary) else t.size)
        if isinstance(self.surrogate, LossDriven):
            return alpha * rate_14(R, C_L) * g
        return rate_15(R, task.judge(t, round.y) if isinstance(task, NDCG | AP) else c_L, alpha) * g


FEW = 8  # different grades up to which an assignment was measured to take a time in m^2


def weights_of(spec: Spec) -> Weights:
    """The weights that `norm` and `kernel` ask for."""
    if spec.get("kernel", "linear") != "linear":
        return KernelExpansion(
            spec["kernel"], spec.get("bandwidth", 1.0), spec.get("degree", 2), spec.get("budget")
        )
    if spec.get("norm") == "trace":
        return TraceNorm()
    if spec.get("norm", "l2") != "l2":
        return PNorm(spec["norm"])
    return Linear(spec.get("precision") == "float32", brief=BRIEF)


def build(spec: Spec) -> Model:
    """Algorithm 1, or 2 (`variant`), with the link of Algorithm 3 (`norm`) or in kernel form."""
    task = loss(spec["task"], spec["loss"]).make(spec)
    surrogate = LossDriven(task) if spec["variant"] == "loss-driven" else Predtron(task)
    if spec["learning_rate"] == "theory":
        return FirstOrder(task, Theory(surrogate, spec["R"]), weights_of(spec))
    return FirstOrder(task, surrogate, weights_of(spec), spec["learning_rate"])


def _agree(spec: Spec) -> None:
    if spec.get("norm") == "trace" and len(spec["labels"]) > LABELS:
        raise SpecError(ROOM, pointer("labels"))


def _accepts(spec: Mapping[str, Any], instance: FeatureVector | ItemList) -> None:
    if spec.get("norm") == "trace" and isinstance(instance, FeatureVector) and len(instance) > FEATURES:
        raise InstanceError(f"norm: trace has room for {FEATURES} features", pointer("features"))


def cost(spec: Spec, size: Size) -> Cost:
    """Beside the weights: a search for the rival order, or every stored example against every item."""
    cost = first_order_cost(spec, size)
    m = max(size.labels, size.items)
    seconds, memory = cost.seconds, cost.bytes
    if spec.get("kernel", "linear") != "linear":
        cells = (size.examples + max(1, size.items)) * max(1, size.items)
        seconds, memory = seconds + 2e-7 * cells, memory + 40 * cells
    if spec.get("norm") == "trace":  # a decomposition of labels x labels
        if m > LABELS:
            raise TruthError(ROOM)
        seconds, memory = seconds + 1e-3 + 1e-5 * m * m + 1.5e-8 * m**3, memory + 100 * m * m
    if forms.of(spec["task"]).ranks and spec["variant"] == "standard":
        # NDCG of several grades is an assignment of m items to m places; two classes are a merge of two lists.
        if spec["loss"] == "ndcg" and not 0 < size.grades <= 2:
            search = 9.5e-8 * m * m if 0 < size.grades <= FEW else max(9.5e-8 * m * m, 5e-11 * m**3)
            seconds, memory = seconds + search, memory + 9 * m * m
        elif spec["loss"] == "ap" and spec["position"] == "linear":
            seconds, memory = seconds + 1e-5 * m, memory + 10 * min(m * m, 2**20) + 2000 * m
        else:
            seconds, memory = seconds + 2e-8 * m * m, memory + m * m + 40 * min(m * m, 2**18)
    return Cost(seconds, memory)


register(
    Algorithm(
        "predtron",
        "a perceptron for any task with a loss, optionally with margins in other norms or a kernel",
        learnable_tasks,
        {
            "loss": Parameter(
                lambda form: choice(*losses(form.name)),
                "what a decision costs; the first is the default",
                example="weighted",
            ),
            "weights": WEIGHTS,
            "reject_costs": REJECT_COSTS,
            "matrix": MATRIX,
            "gain": GAIN,
            "discount": DISCOUNT,
            "cutoff": Parameter(
                integer(least=1),
                FIRST_PLACES,
                None,
                needs("loss", "ndcg", "precision"),
                required=needs("loss", "precision"),
                example=10,
            ),
            "variant": Parameter(
                choice("standard", "loss-driven"),
                "`standard` is Algorithm 1; `loss-driven` is Algorithm 2, with a step proportional to the loss",
                example="loss-driven",
            ),
            "learning_rate": Parameter(
                number_or("theory", above=0), "the step: a number, or `theory` (with `R`)", 1.0, example=0.3
            ),
            "R": Parameter(
                number(above=0),
                "a bound on the length of every feature vector",
                None,
                needs("learning_rate", "theory"),
                required=True,
                example=1.0,
            ),
            "position": Parameter(
                choice("linear", "reciprocal", "power"),
                "the weight of position i in the representation of an order: -i, 1/i or -i^exponent",
                forms=lambda form: form.ranks,
                why="goes with rankings",
                example="power",
            ),
            "exponent": Parameter(
                number(above=0),
                "the exponent of `position: power`",
                1.1,
                needs("position", "power"),
                example=2,
            ),
            "kernel": KERNEL,
            "bandwidth": BANDWIDTH,
            "degree": DEGREE,
            "budget": Parameter(
                integer(least=1),
                "the number of stored examples; above it, the oldest is dropped",
                None,
                needs("kernel", "gaussian", "polynomial"),
                example=500,
            ),
            "norm": Parameter(
                lambda form: choice("l2", "l1", "group", *(() if form.items or form.closed else ("trace",))),
                "the norm of the margin: `l1` and `group` suit many features of which few matter, `trace` labels whose"
                " weights have few directions in common (at most 512 labels; features behind the 4096th have no weight)",
                when=needs("kernel", "linear"),
                example="l1",
            ),
        },
        build,
        agree=_agree,
        accepts=_accepts,
        cost=cost,
        linear=lambda spec: spec["kernel"] == "linear" and spec.get("norm", "l2") == "l2",
    )
)
