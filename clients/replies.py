"""Typed replies of the service. Decoding checks the types: a reply that differs raises InvalidResponse.

Written by scripts/client_types.py from the contract of the service: change it there. Fields that this version does not know
are ignored, so newer services may add some.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .payloads import JSON, Named

__all__ = [
    "Alias",
    "Aliases",
    "Assigned",
    "CatalogEntry",
    "ClicksSoFar",
    "Entry",
    "Erased",
    "ErasedEverywhere",
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
    "Queue",
    "QueueEntry",
    "Reliability",
    "Renamed",
    "Retracted",
    "RetractedMany",
    "RewardSoFar",
    "Unit",
    "UnitPage",
    "Weights",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Named):
    """One place of a ranking, best first."""

    label: str | None = None
    id: str | None = None
    score: float
    probability: float | None = None
    contributions: dict[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The decision of one learner."""

    prediction_id: str | None = None
    version: int
    ranking: list[Entry]
    label: str | None = None
    labels: list[str] | None = None
    # the id of the chosen item
    choice: str | None = None
    # with which the choice was drawn
    probability: float | None = None
    # of a choice with slots, instead of `choice`
    slots: list[JSON] | None = None
    abstained: bool | None = None
    # the gap another decision would have to close
    margin: float | None = None
    # features of the instance that were learned from
    known: int | None = None
    # features of the instance that were never learned from
    unknown: int | None = None
    # with `min_precision`: the precision proved so far, or null
    proved: float | None = None
    # true if it abstains only because it was drawn as an audit
    audit: bool | None = None
    # quadratic surrogate: the estimated expected loss of the decision
    objective: float | None = None
    learner: str | None = None
    # where it was asked for
    coverage: JSON | None = None
    experiment: str | None = None
    versions: dict[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one event did."""

    version: int
    # of the weights just before this update
    loss: float
    mistake: bool
    updated: bool
    # of the prediction the user saw
    served_loss: float | None = None
    duplicate: bool


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
    """The learning so far."""

    rounds: int
    mistakes: int
    updates: int
    cumulative_loss: float
    # null before the first round
    mean_loss: float | None = None
    # null before the first round
    recent_loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expert:
    """One of the learners that `auto` blends or follows."""

    name: str
    weight: float
    mean_loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A learner and how it is doing."""

    name: str
    spec: JSON
    version: int
    # in order of joining
    labels: list[str]
    features: int
    bytes: int
    progress: Progress
    # the version of the list of experts, where it has one
    preset: str | None = None
    # the version of the rule that reads text
    tokenizer: str | None = None
    # what the theory proves at this moment
    certificate: JSON
    # of `auto`
    experts: list[Expert] | None = None
    # what the drift alarm says, where there is one
    drift: JSON | None = None
    # versions of events whose retraction is not done yet
    retracting: list[int]
    # labels that were renamed, and what they are called now; `spec` shows what was asked for
    renames: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A learner in a list."""

    name: str
    task: str
    algorithm: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Learners:
    """A page of learners by name; with a key bound to prefixes, only those it reaches."""

    learners: list[CatalogEntry]
    # the cursor of the next page, or null
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of the learning curve."""

    rounds: int
    cumulative_loss: float
    mean_loss: float
    window_loss: float
    # seconds since 1970; null where it is not known
    at: float | None = None
    # the mean loss of each of the history's `experts`
    experts: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The learning curve in a bounded number of points; the last one is now."""

    version: int
    progress: Progress
    # names, in the order of each point's losses
    experts: list[str]
    points: list[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCount:
    """How often a label was true, and how often the learner was wrong then."""

    label: str
    events: int
    mistakes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCounts:
    """The labels that were true most often, out of `total`; a learner brought in from a file starts to count anew."""

    version: int
    total: int
    labels: list[LabelCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureWeight:
    """What a feature of value 1, after weighting and scaling, adds to a score."""

    feature: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The features that speak loudest for a label, or against it, by falling size of their weight."""

    version: int
    # null in subset ranking, where all items share the weights
    label: str | None = None
    features: list[FeatureWeight]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A page of the log."""

    events: list[JSON]
    # `after` of the next page, or null
    next: int | None = None
    # the first version that is still kept
    floor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """The labels as they are called now."""

    # of the rename
    version: int
    # of each old label, what it is called now
    renames: dict[str, str]
    labels: list[str]
    duplicate: bool
    # pending while the learner is being folded again
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracted:
    """The retraction."""

    # of the retraction
    version: int
    # of the event
    retracted: int
    duplicate: bool
    # pending while the learner is being folded again
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractedMany:
    """The retractions of a batch, in its order, and the state of the whole."""

    results: list[Retracted]
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """The receipt of what was erased."""

    # events, and remembered predictions without one
    erased: int
    # BLAKE2b-128 of what each of them held
    checksums: list[str]
    # of the learner
    version: int
    # pending while it goes on in the background
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedEverywhere:
    """The receipts of all learners and experiments that had something of the subject; `version` is the highest."""

    # events, and remembered predictions without one
    erased: int
    # BLAKE2b-128 of what each of them held
    checksums: list[str]
    # of the learner
    version: int
    # pending while it goes on in the background
    state: str
    learners: dict[str, Erased]
    experiments: dict[str, Erased]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClicksSoFar:
    """The clicks that a prediction has got, and when they are counted."""

    prediction_id: str
    clicks: list[str]
    # seconds since 1970
    closes_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSoFar:
    """The sum of the parts of a reward, and when it is counted."""

    prediction_id: str
    reward: float | dict[str, float]
    # seconds since 1970
    closes_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A remembered prediction that waits for an answer."""

    prediction_id: str
    instance: JSON
    # what was decided, or would have been
    label: str | None = None
    labels: list[str] | None = None
    ranking: list[str] | None = None
    # of the decision, where it was stated
    probability: float | None = None
    margin: float | None = None
    # seconds since 1970
    remembered_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Predictions without an answer, those first whose answer would teach most."""

    queue: list[QueueEntry]
    # the cursor of the next page, or null
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """What decisions were worth, by the decision before each event."""

    version: int
    events: int
    # the version behind which it counts: 0 unless the learner came as a snapshot
    since: int
    abstained: int
    # whether the learner states probabilities: else there are no bins
    stated: bool
    bins: list[JSON]
    coverage: list[JSON]
    labels: dict[str, JSON]
    baselines: JSON
    # the learner's mean loss over the same events
    loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """An alias as it now stands."""

    name: str
    learner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """A page of aliases by name; with a key bound to prefixes, only those it reaches."""

    aliases: list[Alias]
    # the cursor of the next page, or null
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A definition, and what may be said now; intervals and verdict hold at every look."""

    name: str
    definition: JSON
    method: str
    confidence: float
    status: str
    promoted: str | None = None
    # of the arm that was promoted
    promotion: JSON | None = None
    version: int
    rounds_per_unit: int
    # rounds and mean of each
    shadow: dict[str, JSON]
    # `lower` or `higher` values
    better: str
    # whether units are shared out as the weights say
    sample_ratio: JSON | None = None
    # of the verdict, or why there is none
    reason: str
    # null until the first feedback decides
    measure: str | None = None
    measure_in_words: str
    # what the intervals are about
    target: str
    # units, rounds and mean of each; in a split also rounds served, answered, and delays in
    # seconds; with `per` also units `exposed`, and `open` ones whose windows are not over
    arms: dict[str, JSON]
    differences: list[JSON]
    # a unit's 1st, 2nd, ... outcome, up to 64; empty if interleaved
    returns: list[JSON] = field(default_factory=list)
    guardrails: list[JSON]
    # where the definition asks for it
    handover: JSON | None = None
    # the result in plain words
    sentence: str = ""
    # of the units that takes part now
    share: float = 1.0
    # with `per`: the means by day of the first exposure
    days: list[JSON] = field(default_factory=list)
    # with `per`: what came by day since a unit's exposure
    ages: list[JSON] = field(default_factory=list)
    # in the segments that the definition names
    segments: list[JSON] = field(default_factory=list)
    # rounds answered whose time to answer is not over yet; with `per` units whose windows are open
    waiting: int
    # an arm, or `undecided`
    verdict: str
    # that a verdict would take at the present effect; null if there is none
    more_units: int | None = None
    # the same in rounds, at the present number of rounds a unit
    more_rounds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The arm of a unit: always the same one while it is counted."""

    experiment: str
    unit: str
    arm: str
    # false outside the share, and while the experiment is paused or stopped
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of a split, and what its part in the verdict is computed from: with `per` its window, else one outcome."""

    # its name; without `per`, the hash that the log has of it
    unit: str
    arm: str
    # seconds since 1970, by the log; without `per`, of its first outcome: when that round was
    # served, or else answered
    first_exposure: float
    # within its window; without `per`, outcomes so far
    exposures: int
    # its window is over
    counted: bool
    before: float | None = None
    segments: dict[str, str]
    # of each measure, by its name: by what the unit counts
    values: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPage:
    """Units in the order of their first exposures."""

    units: list[Unit]
    # the cursor of the next page, or null
    next: str | None = None
