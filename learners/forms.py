"""The form of a task, as one value: which instance it takes, which truth, what a decision is, how names become arrays.

    form.truth_of(spec, truth, instance) JSON -> names, checked; depends on nothing else, so that all replicas agree
    form.decision.encode(truth, names)   names -> y
    form.decision.sigma(served, names)   the decision that a user saw -> sigma, to be judged
    form.decision.name(sigma, names)     sigma -> the named decision of a reply

Nobody outside this file and the registrations compares the name of a task: they ask its form. A new task is a `Form` that
is added by `add`, from any file in `learners/tasks/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from . import truths
from .errors import SpecError, TruthError
from .instances import FeatureVector, Floats, Ints, ItemList, Mask
from .json_types import Json
from .losses.classes import REJECT
from .names import Names
from .truths import Truth

# A served label that the learner no longer has (its event was retracted): equal to no truth.
GONE = -2

Sigma = TypeVar("Sigma")
Y = TypeVar("Y")


class DecisionKind(ABC, Generic[Sigma, Y]):
    """What a decision sigma and its truth y are; `field` is its name in replies and in `served`."""

    field: str

    @abstractmethod
    def encode(self, truth: Truth, index: Mapping[str, int]) -> Y:
        """y, as the task compares with it."""

    def quick(self, truth: Mapping[str, object], index: Mapping[str, int]) -> Y | None:
        """y of a plain truth whose labels have all joined; None where it must be read first."""
        return None

    @abstractmethod
    def sigma(self, served: Mapping[str, Any], index: Mapping[str, int], rejects: bool) -> Sigma | None:
        """The served decision; None if it abstained and the loss has no REJECT (`rejects`)."""

    @abstractmethod
    def name(self, sigma: Sigma, names: Names) -> Json:
        """The named decision; None for REJECT, or where the ranking says it all."""

    def empty(self) -> Json:
        """The named decision before any label has joined."""
        return None

    def reply(self, named: Json) -> dict[str, Json]:
        """Its part of a reply."""
        return {self.field: named}

    def shown(self, named: Json, ranking: Sequence[tuple[str, float]]) -> dict[str, Json]:
        """What the user saw, as `sigma` takes it back."""
        return {self.field: named}

    def check(self, served: object) -> None:
        """Refuse a `served` that is not such a decision."""
        if not isinstance(served, Mapping) or set(served) != {self.field}:
            raise TruthError(f"must be an object with {self.field!r} only", "/served")
        shown = served[self.field]
        if shown is None and self.abstains:
            return
        names = [shown] if self.single else shown
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            what = "must be text" if self.single else "must be a list of text"
            raise TruthError(what, f"/served/{self.field}")
        if len(set(names)) < len(names):
            raise TruthError("a name is duplicated", f"/served/{self.field}")

    abstains = True
    single = False
    draws = False
    looked = 1  # labels of a ranking whose probabilities are counted


class OneLabel(DecisionKind[int, int]):
    """sigma and y are indices of labels; REJECT abstains."""

    field = "label"
    single = True

    def encode(self, truth: Truth, index: Mapping[str, int]) -> int:
        (name,) = truth.grades
        return index[name]

    def quick(self, truth: Mapping[str, object], index: Mapping[str, int]) -> int | None:
        label = truth.get("label")
        return index.get(label) if isinstance(label, str) else None

    def sigma(self, served: Mapping[str, Any], index: Mapping[str, int], rejects: bool) -> int | None:
        if served["label"] is None:
            return REJECT if rejects else None
        return index.get(served["label"], GONE)

    def name(self, sigma: int, names: Names) -> str | None:
        return None if int(sigma) == REJECT else names[int(sigma)]


class LabelSet(DecisionKind[Mask, Mask]):
    """sigma and y are masks over the labels."""

    field = "labels"
    looked = 64

    def encode(self, truth: Truth, index: Mapping[str, int]) -> Mask:
        return self._mask(truth.grades, index)

    def quick(self, truth: Mapping[str, object], index: Mapping[str, int]) -> Mask | None:
        labels = truth.get("labels")
        if not isinstance(labels, list) or not all(type(name) is str and name in index for name in labels):
            return None
        return self._mask(labels, index) if len(set(labels)) == len(labels) else None

    def sigma(self, served: Mapping[str, Any], index: Mapping[str, int], rejects: bool) -> Mask | None:
        return None if served["labels"] is None else self._mask(served["labels"], index)

    def name(self, sigma: Mask, names: Names) -> list[str]:
        return [names[i] for i in np.flatnonzero(sigma).tolist()]

    def empty(self) -> list[str]:
        return []

    @staticmethod
    def _mask(chosen: Iterable[str], index: Mapping[str, int]) -> Mask:
        mask = np.zeros(len(index), dtype=bool)
        mask[[index[name] for name in chosen if name in index]] = True
        return mask


class Order(DecisionKind[Ints, Floats]):
    """sigma is an order of labels or items, best first; y holds their grades. The ranking is the decision."""

    field = "ranking"
    abstains = False

    def encode(self, truth: Truth, index: Mapping[str, int]) -> Floats:
        return truths.grades(truth, index)

    def quick(self, truth: Mapping[str, Any], index: Mapping[str, int]) -> Floats | None:
        """Of names alone."""
        labels = [truth["label"]] if "label" in truth else truth.get("labels")
        if type(labels) is not list or not all(type(name) is str and name in index for name in labels):
            return None
        y = np.zeros(len(index))
        y[[index[name] for name in labels]] = 1.0
        return y

    def sigma(self, served: Mapping[str, Any], index: Mapping[str, int], rejects: bool) -> Ints | None:
        """What was not shown stands behind it, in order of joining. Nothing shown is no decision."""
        if not served["ranking"]:
            return None
        shown = [index[name] for name in served["ranking"] if name in index]
        rest = np.ones(len(index), dtype=bool)
        rest[shown] = False
        return np.concatenate((np.array(shown, dtype=np.intp), np.flatnonzero(rest)))

    def name(self, sigma: Ints, names: Names) -> None:
        return None

    def reply(self, named: Json) -> dict[str, Json]:
        return {}

    def shown(self, named: Json, ranking: Sequence[tuple[str, float]]) -> dict[str, Json]:
        return {self.field: [name for name, _ in ranking]}


@dataclass(frozen=True, slots=True)
class Form:
    """One task. `truths` are the accepted fields, the most usual first; `loss` is the first of its losses.

    `closed`: the labels of the spec are all there will ever be, and there must be `least` to `most` of them, `wanted`
    says which.
    """

    name: str
    text: str
    decision: DecisionKind[Any, Any]
    truths: tuple[str, ...]
    loss: str
    instance: str = "features"
    closed: bool = False
    least: int = 0
    most: int | None = None
    wanted: str = ""

    # What follows from these, asked several times a round: whether an instance is a list to rank, which brings its own
    # names; whether the decision is an order; whether one item is drawn and earns a reward; what a ranking's entry names.
    items: bool = field(init=False)
    ranks: bool = field(init=False)
    chooses: bool = field(init=False)
    entry: str = field(init=False)

    def __post_init__(self) -> None:
        items = self.instance == "items"
        ranks, chooses = isinstance(self.decision, Order), self.decision.draws
        for name, value in (("items", items), ("ranks", ranks), ("chooses", chooses)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "entry", "id" if items else "label")

    def columns(self, labels: int) -> int:
        """The columns of the weights: one a label; lists share one."""
        return 1 if self.items else labels

    def check_labels(self, labels: Sequence[str]) -> None:
        """Refuse too few or too many starting labels."""
        if len(labels) < self.least or (self.most is not None and len(labels) > self.most):
            raise SpecError(f"{self.name} needs {self.wanted}", "/labels")

    def truth_of(
        self, spec: Mapping[str, Any], truth: object, instance: FeatureVector | ItemList | None
    ) -> Truth:
        """The truth by name, checked. Without the instance, its names are not compared with the items."""
        places = None
        if isinstance(instance, ItemList):
            members: Sequence[str] | None = instance.ids
            places = instance.places
        else:
            members = spec["labels"] if self.closed else None
        parsed = truths.read(truth, self.truths, self.name, members, self.items, places)
        if parsed.reward is not None or parsed.rewards:
            truths.check_rewards(parsed, spec["range"], spec.get("outside") == "clip", instance)
        return parsed


_FORMS: dict[str, Form] = {}


def add(form: Form) -> Form:
    """A new task."""
    if form.name in _FORMS:
        raise ValueError(f"there is a task {form.name} already")
    _FORMS[form.name] = form
    return form


def of(task: str) -> Form:
    """The form of a task."""
    return _FORMS[task]


def names() -> tuple[str, ...]:
    """All tasks."""
    return tuple(_FORMS)


LABEL, LABELS, ORDER = OneLabel(), LabelSet(), Order()

BINARY = add(
    Form(
        "binary",
        "one of two labels, the negative label first",
        LABEL,
        ("label",),
        "zero-one",
        closed=True,
        least=2,
        most=2,
        wanted="exactly two labels, the negative one first",
    )
)
MULTICLASS = add(
    Form(
        "multiclass", "one label; a new label is added with its first feedback", LABEL, ("label",), "zero-one"
    )
)
ORDINAL = add(
    Form(
        "ordinal",
        "one of several ordered labels, the lowest first",
        LABEL,
        ("label",),
        "absolute",
        closed=True,
        least=1,
        wanted="its labels, the lowest first",
    )
)
MULTILABEL = add(Form("multilabel", "a set of labels", LABELS, ("labels",), "subset-zero-one"))
LABEL_RANKING = add(
    Form("label-ranking", "an order of all labels", ORDER, ("labels", "relevance", "label"), "ndcg")
)
SUBSET_RANKING = add(
    Form(
        "subset-ranking",
        "an order of the items of a list that comes with the call",
        ORDER,
        ("relevance", "clicks"),
        "ndcg",
        instance="items",
    )
)
