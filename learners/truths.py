"""Truths: from the JSON of the contract to what a task compares with.

    label      one name                     binary, multiclass, ordinal, label ranking (the one relevant label)
    labels     the relevant names           multilabel, label ranking
    relevance  {name: grade >= 0}           label ranking, subset ranking
    clicks     ids                          subset ranking; become grades once the served order is known

Reading is pure and depends on the spec and the instance alone. Encoding gives the arrays: an index, a mask, or grades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import TruthError, pointer
from .instances import LARGEST, Floats
from .names import Names

ACCEPTED: dict[str, tuple[str, ...]] = {
    "binary": ("label",),
    "multiclass": ("label",),
    "ordinal": ("label",),
    "multilabel": ("labels",),
    "label-ranking": ("labels", "relevance", "label"),
    "subset-ranking": ("relevance", "clicks"),
}
# Tasks whose labels are fixed by the spec.
CLOSED = ("binary", "ordinal")


@dataclass(slots=True)
class Truth:
    """A truth by name: graded names (a label or a relevant label has grade 1), or the ids that were clicked.

    `listed` are the grades of a list in the order of its items: the fast way in from Python.
    """

    grades: dict[str, float]
    clicks: tuple[str, ...] | None = None
    listed: Floats | None = None


def read(truth: Any, task: str, members: Sequence[str] | None = None) -> Truth:
    """The truth, checked. `members` are the only names allowed: the ids of the list, or the labels of a closed task."""
    if not isinstance(truth, dict | Mapping):
        raise TruthError("a truth must be an object")
    accepted = ACCEPTED[task]
    for field in truth:
        if field not in accepted:
            raise TruthError(f"is not a truth of {task}; give {' or '.join(accepted)}", pointer(field))
    if len(truth) != 1:
        raise TruthError(f"give one truth: {' or '.join(accepted)}", pointer(accepted[0]))
    ((field, value),) = truth.items()
    if isinstance(value, np.ndarray) and field == "relevance" and task == "subset-ranking":
        return _listed(value, members)
    found = _READERS[field](value)
    if members is not None:
        allowed = set(members)
        named: Any = found.grades if found.clicks is None else found.clicks
        if not allowed.issuperset(named):
            name = next(name for name in named if name not in allowed)
            steps = (
                () if field == "label" else (name,) if field == "relevance" else (list(value).index(name),)
            )
            what = "is not an item of the list" if task == "subset-ranking" else "is not one of the labels"
            raise TruthError(f"{name!r} {what}", pointer(field, *steps))
    return found


def _name(value: Any, *place: str | int) -> str:
    if not isinstance(value, str) or not value:
        raise TruthError("must be text that is not empty", pointer(*place))
    return value


def _names(value: Any, field: str) -> list[str]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise TruthError("must be a list of names", pointer(field))
    ordered = sorted(value) if isinstance(value, set | frozenset) else value
    return [_name(entry, field, i) for i, entry in enumerate(ordered)]


def _label(value: Any) -> Truth:
    return Truth({_name(value, "label"): 1.0})


def _labels(value: Any) -> Truth:
    return Truth(dict.fromkeys(_names(value, "labels"), 1.0))


def _clicks(value: Any) -> Truth:
    return Truth({}, tuple(dict.fromkeys(_names(value, "clicks"))))


def _relevance(value: Any) -> Truth:
    if not isinstance(value, Mapping):
        raise TruthError("must be an object of name: grade", pointer("relevance"))
    numbers = list(value.values())
    # What is right is seen at once; item by item only to point at what is wrong. A NaN hides from min and max.
    if (
        {str}.issuperset(map(type, value))
        and "" not in value
        and {int, float}.issuperset(map(type, numbers))
        and 0 <= min(numbers, default=0) <= max(numbers, default=0) <= LARGEST
        and sum(numbers) >= 0
    ):
        return Truth(dict(zip(value, map(float, numbers), strict=True)))
    grades: dict[str, float] = {}
    for name, grade in value.items():
        _name(name, "relevance")
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= LARGEST:
            raise TruthError("a grade must be a finite number of at least 0", pointer("relevance", name))
        grades[name] = float(grade)
    return Truth(grades)


def _listed(value: Any, members: Sequence[str] | None) -> Truth:
    if value.ndim != 1 or value.dtype.kind not in "fiu" or len(value) != len(members or ()):
        raise TruthError("an array of grades must hold one number an item", pointer("relevance"))
    listed: Floats = np.asarray(value, dtype=np.float64)
    # argmin is several times as fast as min; both stop at a NaN, for which this is false.
    if not (listed[listed.argmin()] >= 0 and listed[listed.argmax()] <= LARGEST):
        raise TruthError("a grade must be a finite number of at least 0", pointer("relevance"))
    return Truth({}, listed=listed)


_READERS = {"label": _label, "labels": _labels, "clicks": _clicks, "relevance": _relevance}


def index(truth: Truth, labels: Names) -> int:
    """y of a class task."""
    (name,) = truth.grades
    return labels.index[name]


def mask(truth: Truth, labels: Names) -> Any:
    """y of a multilabel task."""
    y = np.zeros(len(labels), dtype=bool)
    y[[labels.index[name] for name in truth.grades]] = True
    return y


def grades(truth: Truth, names: Mapping[str, int], count: int) -> Floats:
    """y of a ranking task: what is missing is 0."""
    y = np.zeros(count)
    if truth.grades:
        count = len(truth.grades)
        rows = np.fromiter(map(names.__getitem__, truth.grades), np.intp, count)
        y[rows] = np.fromiter(truth.grades.values(), np.float64, count)
    return y
