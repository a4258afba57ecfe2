"""What the service replies, typed. Fields that this version does not know are ignored, so newer services may add some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import Garbled

__all__ = [
    "Alias",
    "Entry",
    "Events",
    "Experiment",
    "History",
    "Learner",
    "Learners",
    "Listed",
    "Outcome",
    "Point",
    "Prediction",
    "Progress",
    "Retracted",
]

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One place of a ranking; `name` is its label or item id."""

    name: str
    score: float
    contributions: dict[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A decision (`label` or `labels`) and the ranking behind it, best first.

    A list drafted from the arms of an experiment has no one `learner`; `versions` holds that of every arm.
    """

    ranking: list[Entry]
    learner: str | None = None
    version: int = 0
    versions: dict[str, int] | None = None
    prediction_id: str | None = None
    label: str | None = None
    labels: list[str] | None = None
    margin: float | None = None
    abstained: bool = False
    arm: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one event did; `duplicate` says that it had been learned before."""

    version: int
    loss: float
    mistake: bool
    updated: bool
    served_loss: float | None = None
    duplicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The learning so far."""

    rounds: int
    mistakes: int
    updates: int
    cumulative_loss: float
    mean_loss: float
    recent_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A learner and how it is doing."""

    name: str
    spec: dict[str, Any]
    version: int
    labels: list[str]
    features: int
    bytes: int
    progress: Progress
    certificate: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A learner in a list."""

    name: str
    task: str = ""
    algorithm: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learners:
    """A page of learners; `next` is the cursor of the following page."""

    learners: list[Listed]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a learning curve."""

    rounds: int
    cumulative_loss: float
    mean_loss: float
    window_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The learning curve in a bounded number of points."""

    points: list[Point]
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A page of a learner's log; `next` is the `after` of the following page."""

    events: list[dict[str, Any]]
    next: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracted:
    """A withdrawal: its own version and that of the event it took back."""

    version: int
    withdrawn: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A second name and the learner it stands for."""

    name: str
    learner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment as it stands; intervals and verdict hold at every look. `verdict` is an arm, or `undecided`."""

    name: str
    arms: dict[str, dict[str, Any]]
    verdict: str
    differences: list[dict[str, Any]]
    status: str = ""
    definition: dict[str, Any] | None = None
    more_rounds: int | None = None


def read(kind: type[T], data: Any) -> T:
    """A reply of `kind` out of its JSON."""
    if not isinstance(data, Mapping):
        raise Garbled(f"a {kind.__name__} must be an object, not {type(data).__name__}")
    known = fields(kind)
    values = {field.name: data[field.name] for field in known if field.name in data}
    missing = [field.name for field in known if field.default is MISSING and field.name not in values]
    if missing:
        raise Garbled(f"a {kind.__name__} without {', '.join(missing)}")
    return kind(**values)


def prediction(data: Any) -> Prediction:
    """A prediction, its places named by `label` or `id`."""
    found = read(Prediction, data)
    return read(Prediction, {**data, "ranking": [_entry(place) for place in _list(found.ranking)]})


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Garbled(f"a list was expected, not {type(value).__name__}")
    return value


def _entry(place: Any) -> Entry:
    if not isinstance(place, Mapping):
        raise Garbled("a place of a ranking must be an object")
    name = place.get("label")
    return read(Entry, {**place, "name": place.get("id") if name is None else name})


def learner(data: Any) -> Learner:
    """A learner with its progress."""
    found = read(Learner, data)
    return read(Learner, {**data, "progress": read(Progress, found.progress)})


def learners(data: Any) -> Learners:
    """A page of learners."""
    found = read(Learners, data)
    return Learners(learners=[read(Listed, one) for one in _list(found.learners)], next=found.next)


def history(data: Any) -> History:
    """A learning curve."""
    found = read(History, data)
    return History(points=[read(Point, one) for one in _list(found.points)], version=found.version)
