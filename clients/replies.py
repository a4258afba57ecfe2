"""Typed replies of the service. Decoding checks the types: a reply that differs raises InvalidResponse.

Fields that this version does not know are ignored, so newer services may add some. What the service may leave out, or
sends as null, has a default here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .payloads import JSON

__all__ = [
    "Alias",
    "Aliases",
    "CatalogEntry",
    "ClicksSoFar",
    "Entry",
    "Events",
    "Experiment",
    "Expert",
    "FeatureWeight",
    "History",
    "LabelCount",
    "LabelCounts",
    "Learner",
    "Learners",
    "Outcome",
    "Outcomes",
    "Point",
    "Prediction",
    "Predictions",
    "Progress",
    "Retracted",
    "Weights",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One place of a ranking: a `label`, or in lists the `id` of an item."""

    score: float
    label: str | None = None
    id: str | None = None
    probability: float | None = None
    contributions: dict[str, float] | None = None

    @property
    def key(self) -> str:
        """The label or the id, whichever this ranking is of."""
        return self.label if self.label is not None else self.id or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A decision (`label`, `labels` or `choice`) and the ranking behind it, best first.

    A list drafted from the arms of an experiment has no one `learner`; `versions` holds that of every arm.
    """

    ranking: list[Entry]
    learner: str | None = None
    version: int = 0
    versions: dict[str, int] | None = None
    prediction_id: str | None = None
    label: str | None = None
    labels: list[str] | None = None
    choice: str | None = None
    probability: float | None = None
    margin: float | None = None
    abstained: bool | None = None
    arm: str | None = None
    coverage: dict[str, int] | None = None
    known: int | None = None
    unknown: int | None = None


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
class Predictions:
    """The replies to a batch, in its order."""

    predictions: list[Prediction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The outcomes of a batch, in its order."""

    results: list[Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The learning so far; the means are None before the first round."""

    rounds: int
    mistakes: int
    updates: int
    cumulative_loss: float
    mean_loss: float | None = None
    recent_loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expert:
    """One of the learners that `auto` blends or follows."""

    name: str
    weight: float
    mean_loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A learner and how it is doing. `certificate` holds what the theory proves at this moment."""

    name: str
    spec: JSON
    version: int
    labels: list[str]
    features: int
    bytes: int
    progress: Progress
    preset: str | None = None
    tokenizer: str | None = None
    certificate: JSON | None = None
    experts: list[Expert] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A learner in a list."""

    name: str
    task: str = ""
    algorithm: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learners:
    """A page of learners; `next` is the cursor of the following page."""

    learners: list[CatalogEntry]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a learning curve."""

    rounds: int
    cumulative_loss: float
    mean_loss: float | None = None
    window_loss: float | None = None
    at: float | None = None
    experts: list[float | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The learning curve in a bounded number of points; the last one is now."""

    points: list[Point]
    version: int = 0
    progress: Progress | None = None
    experts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCount:
    """How often a label was true, and how often the learner was wrong then."""

    label: str
    events: int
    mistakes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCounts:
    """The labels that were true most often, out of `total`."""

    labels: list[LabelCount]
    total: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureWeight:
    """What a feature of value 1, after weighting and scaling, adds to a score."""

    feature: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The features that count most for a label or against it; `label` is None where all items share the weights."""

    features: list[FeatureWeight]
    label: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A page of a learner's log; `next` is the `after` of the following page."""

    events: list[JSON]
    next: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracted:
    """A retraction: its own version, that of the event, and whether the learner is rebuilt: `done`, or still `pending`."""

    version: int
    retracted: int
    duplicate: bool = False
    state: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClicksSoFar:
    """The clicks that a prediction has got; at `closes_at`, in seconds since 1970, they become one event."""

    prediction_id: str
    clicks: list[str]
    closes_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A second name and the learner it stands for."""

    name: str
    learner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """A page of aliases; `next` is the cursor of the following page."""

    aliases: list[Alias]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment as it stands; intervals and verdict hold at every look. `verdict` is an arm, or `undecided`."""

    name: str
    arms: dict[str, JSON]
    verdict: str
    differences: list[JSON]
    status: str = ""
    definition: JSON | None = None
    more_rounds: float | None = None
    handover: JSON | None = None
