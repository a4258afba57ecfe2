"""From a full spec to a model: the one place that knows every algorithm by name."""

from collections.abc import Callable
from typing import Any

from . import spec as specs
from .dual_ascent.surrogate import DualAscent
from .dual_ascent.tasks import OneRelevant, Relevant
from .learner import Learner
from .model import FirstOrder, Lists, Model
from .problems import weights_of
from .quadratic.model import Quadratic
from .surrogates import rates
from .surrogates.listnet import ListNet
from .surrogates.minimax import Minimax
from .surrogates.predtron import LossDriven, Predtron, Theory
from .surrogates.slam import Slam
from .tasks import classes, multilabel, rankings
from .tasks.base import Task
from .weights.base import Weights
from .weights.entropic import Entropic
from .weights.linear import Linear

Spec = dict[str, Any]


def build(spec: Any) -> Learner:
    """A learner of a spec: a mapping of the contract's JSON. SpecError, with a pointer, if it cannot be."""
    full = specs.read(spec)
    return Learner(full, MODELS[full["algorithm"]](full))


def _plain(kind: Callable[[], Task]) -> Callable[[Spec], Task]:
    return lambda spec: kind()


def _position(spec: Spec) -> dict[str, Any]:
    return {"position": spec["position"], "exponent": spec.get("exponent", 1.1)}


TASKS: dict[tuple[str, str], Callable[[Spec], Task]] = {
    ("binary", "zero-one"): _plain(classes.Binary),
    ("binary", "weighted"): _plain(classes.Binary),
    ("binary", "reject"): _plain(classes.Reject),
    ("multiclass", "zero-one"): _plain(classes.Multiclass),
    ("multiclass", "weighted"): _plain(classes.Multiclass),
    ("multiclass", "reject"): _plain(classes.Reject),
    ("ordinal", "absolute"): _plain(classes.Ordinal),
    ("multilabel", "subset-zero-one"): _plain(multilabel.SubsetZeroOne),
    ("multilabel", "hamming"): _plain(multilabel.Hamming),
    ("multilabel", "error-set-size"): _plain(multilabel.ErrorSetSize),
}
for _task in specs.RANKINGS:
    TASKS[_task, "ndcg"] = lambda s: rankings.NDCG(s["cutoff"], **_position(s))
    TASKS[_task, "precision"] = lambda s: rankings.Precision(s["cutoff"], **_position(s))
    TASKS[_task, "ap"] = lambda s: rankings.AP(**_position(s))


def predtron(spec: Spec) -> Model:
    """Algorithm 1, or 2 (`variant`), with the link of Algorithm 3 (`norm`) or in kernel form."""
    task = TASKS[spec["task"], spec["loss"]](spec)
    surrogate = LossDriven(task) if spec["variant"] == "loss-driven" else Predtron(task)
    weights = weights_of(spec)
    if spec["learning_rate"] == "theory":
        return FirstOrder(task, Theory(surrogate, spec["R"]), weights, 1.0)
    return FirstOrder(task, surrogate, weights, spec["learning_rate"])


def _measure(spec: Spec) -> Task:
    return rankings.AP() if spec.get("measure") == "ap" else rankings.NDCG(spec.get("cutoff"))


def slam(spec: Spec) -> Model:
    """Algorithm 2 of the perceptrons for lists."""
    rate = rates.read(spec["learning_rate"], spec.get("R"))
    surrogate = Slam(spec["measure"], spec.get("cutoff"), spec["margin"], rate)
    return Lists(_measure(spec), surrogate, Linear(), 1.0)


def minimax(spec: Spec) -> Model:
    """Algorithm 3 of the perceptrons for lists: its step is 1."""
    return Lists(_measure(spec), Minimax(spec["measure"], spec.get("cutoff")), Linear(), 1.0)


def listnet(spec: Spec) -> Model:
    """Online ListNet."""
    return Lists(rankings.NDCG(), ListNet(rates.read(spec["learning_rate"])), Linear(), 1.0)


def dual_ascent(spec: Spec) -> Model:
    """Updates I, II, III of label ranking by dual ascent; its step is 1."""
    task: Task = OneRelevant() if spec["task"] == "multiclass" else Relevant()
    weights: Weights = Entropic(spec["dimension"]) if spec["complexity"] == "entropy" else Linear()
    return FirstOrder(task, DualAscent(spec["update"], spec["C"], spec["gamma"]), weights, 1.0)


MODELS: dict[str, Callable[[Spec], Model]] = {
    "predtron": predtron,
    "dual-ascent": dual_ascent,
    "slam": slam,
    "minimax-perceptron": minimax,
    "listnet": listnet,
    "quadratic-surrogate": Quadratic,
}
