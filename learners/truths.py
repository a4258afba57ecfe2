"""Truths: from the JSON of the contract to what a task compares with.

    label      one name: the label, or the one relevant label of an order
    labels     the relevant names
    relevance  {name: grade >= 0}
    clicks     ids of items; they become grades once the served order is known
    reward     a number: what the item that was served earned; of slots {slot: number}

Reading is pure and depends on the spec and the instance alone. Which of them a task takes is in its form (forms.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import kernel
from .errors import TruthError, pointer
from .instances import LARGEST, Floats, ItemList


@dataclass(slots=True)
class Truth:
    """A truth by name: graded names (a label or a relevant label has grade 1), or the ids that were clicked.

    `listed` are the grades of a list in the order of its items: the fast way in from Python. `rewards` are by slot.
    """

    grades: dict[str, float]
    clicks: tuple[str, ...] | None = None
    listed: Floats | None = None
    reward: float | None = None
    rewards: dict[str, float] | None = None


def read(
    truth: object,
    accepted: Sequence[str],
    task: str,
    members: Sequence[str] | None = None,
    items: bool = False,
    places: dict[str, int] | None = None,
) -> Truth:
    """The truth, checked. `members` are the only names allowed: the ids of the list (`items`), or all the labels.

    `places` are where the ids of a list stand.
    """
    if not isinstance(truth, dict | Mapping):
        raise TruthError("a truth must be an object")
    for field in truth:
        if field not in accepted:
            raise TruthError(f"is not a truth of {task}, which takes {' or '.join(accepted)}", pointer(field))
    if not truth:
        raise TruthError(f"missing field: {' or '.join(accepted)}", pointer(accepted[0]))
    if len(truth) > 1:
        raise TruthError(f"only one of {', '.join(truth)} can be the truth", pointer(accepted[0]))
    ((field, value),) = truth.items()
    if isinstance(value, np.ndarray) and field == "relevance" and items:
        return _listed(value, members)
    if places is not None and field == "relevance":
        grades = kernel.listed_grades(value, places, LARGEST)
        if grades is not None:
            return Truth({}, listed=grades)
    parsed = _READERS[field](value)
    if members is not None:
        allowed = set(members)
        named: Iterable[str] = parsed.grades if parsed.clicks is None else parsed.clicks
        if not allowed.issuperset(named):
            name = next(name for name in named if name not in allowed)
            steps = (
                () if field == "label" else (name,) if field == "relevance" else (list(value).index(name),)
            )
            what = "is not an item of the list" if items else "is not one of the labels"
            raise TruthError(f"{name!r} {what}", pointer(field, *steps))
    return parsed


def _name(value: object, *place: str | int) -> str:
    if not isinstance(value, str) or not value:
        raise TruthError("must be text that is not empty", pointer(*place))
    return value


def _names(value: object, field: str) -> list[str]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise TruthError("must be a list of names", pointer(field))
    ordered = sorted(value) if isinstance(value, set | frozenset) else value
    return [_name(entry, field, i) for i, entry in enumerate(ordered)]


def _label(value: object) -> Truth:
    return Truth({_name(value, "label"): 1.0})


def _labels(value: object) -> Truth:
    return Truth(dict.fromkeys(_names(value, "labels"), 1.0))


def _clicks(value: object) -> Truth:
    return Truth({}, tuple(dict.fromkeys(_names(value, "clicks"))))


def _relevance(value: object) -> Truth:
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


def _reward(value: object) -> Truth:
    if not isinstance(value, Mapping):
        return Truth({}, reward=_number(value, "reward"))
    if not value:
        raise TruthError("must name at least one slot", pointer("reward"))
    return Truth({}, rewards={_name(slot, "reward"): _number(r, "reward", slot) for slot, r in value.items()})


def _number(value: object, *place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise TruthError("must be a finite number", pointer(*place))
    return float(value)


def check_rewards(truth: Truth, bounds: Sequence[float], clip: bool, instance: object) -> None:
    """Refuse a reward beyond the range of the learner, or clip it to its nearer end.

    Of an instance that is at hand, refuse one for a slot that it does not have.
    """
    low, high = bounds
    if clip:
        truth.reward = None if truth.reward is None else min(max(truth.reward, low), high)
        truth.rewards = truth.rewards and {
            slot: min(max(reward, low), high) for slot, reward in truth.rewards.items()
        }
    rewards = {"": truth.reward} if truth.rewards is None else truth.rewards
    for slot, reward in rewards.items():
        if reward is not None and not low <= reward <= high:
            place = pointer("reward", slot) if slot else pointer("reward")
            raise TruthError(f"must be from {low:g} to {high:g}, the range of this learner", place)
    if not isinstance(instance, ItemList):
        return
    if bool(instance.slots) != (truth.rewards is not None):
        what = "{slot: number}, for it has slots" if instance.slots else "a number, for it has no slots"
        raise TruthError(f"the reward of this choice must be {what}", pointer("reward"))
    slots = {slot.id for slot in instance.slots}
    for slot in truth.rewards or ():
        if slot not in slots:
            raise TruthError(f"{slot!r} is not a slot of this choice", pointer("reward", slot))


def _listed(value: npt.NDArray[Any], members: Sequence[str] | None) -> Truth:
    if value.ndim != 1 or value.dtype.kind not in "fiu" or len(value) != len(members or ()):
        raise TruthError("an array of grades must have one number per item", pointer("relevance"))
    listed: Floats = np.asarray(value, dtype=np.float64)
    # argmin is several times as fast as min; both stop at a NaN, for which this is false.
    if not (listed[listed.argmin()] >= 0 and listed[listed.argmax()] <= LARGEST):
        raise TruthError("a grade must be a finite number of at least 0", pointer("relevance"))
    return Truth({}, listed=listed)


_READERS = {"label": _label, "labels": _labels, "clicks": _clicks, "relevance": _relevance, "reward": _reward}


def grades(truth: Truth, index: Mapping[str, int]) -> Floats:
    """y of a ranking: what is missing is 0."""
    y = np.zeros(len(index))
    if truth.grades:
        count = len(truth.grades)
        rows = np.fromiter(map(index.__getitem__, truth.grades), np.intp, count)
        y[rows] = np.fromiter(truth.grades.values(), np.float64, count)
    return y


# What others need to know of a truth's JSON, without an instance: they ask here and interpret nothing themselves.

FIELDS = tuple(_READERS)


def named(truth: Mapping[str, Any]) -> list[str]:
    """Every name in a truth, each once."""
    if len(truth) == 1 and "label" in truth:  # what most truths are
        return [truth["label"]]
    return list(dict.fromkeys(name for field in truth for name in _listed_names(field, truth[field])))


def clicks(truth: Mapping[str, Any]) -> int:
    """How many clicks a truth holds."""
    return len(truth.get("clicks", ()))


def grade_count(truth: Mapping[str, Any]) -> int:
    """How many different grades a truth gives, with the 0 of what it does not name."""
    graded = truth.get("relevance")
    return 2 if graded is None else len({0.0, *graded.values()})


def relevant(truth: Mapping[str, Any]) -> list[str]:
    """The names that a truth calls right, each once: the label, the labels, what is graded above 0, what was clicked."""
    graded = truth.get("relevance")
    if graded is not None:
        return [name for name, grade in graded.items() if grade > 0]
    return named(truth)


def canonical(truth: Mapping[str, Any]) -> dict[str, Any]:
    """Equal for truths that say the same: sets in any order, grades as numbers, a grade of 0 like none."""
    plain = dict(truth)
    for field in ("labels", "clicks"):
        if field in plain:
            plain[field] = sorted(set(plain[field]))
    if "relevance" in plain:
        plain["relevance"] = {name: float(grade) for name, grade in plain["relevance"].items() if grade}
    return plain


def _listed_names(field: str, value: Any) -> Sequence[str]:
    if field == "reward":
        return ()  # a number, which names nothing
    return (value,) if field == "label" else tuple(value)
