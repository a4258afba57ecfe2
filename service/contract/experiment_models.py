"""Request and reply bodies of experiments as models, for OpenAPI."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from .json_types import JSON
from .reply_models import NextPage, Served
from .request_models import FeedbackOne, Options, PredictOne, examples


class GuardrailDefinition(BaseModel):
    """A measure that stops the promotion of an arm which may be worse than the first one by more than `limit`."""

    model_config = ConfigDict(extra="forbid")
    measure: str = Field(description="a measure, or `metric:NAME` or `cost:NAME` of values sent by unit")
    limit: float = Field(0.0, ge=0, description="below 1, or with `total` below its cap")
    value: Literal["mean", "total", "any", "returns"] | None = Field(
        None, description="with `per`: how a unit's values become one; `mean` if left out"
    )
    cap: float | None = Field(None, gt=0, description="of `total`")


class PerDefinition(BaseModel):
    """A unit counts once, `window` seconds after its first exposure; what never came is 0."""

    model_config = ConfigDict(extra="forbid")
    window: float = Field(gt=0, le=31_622_400, description="seconds")
    value: Literal["mean", "total", "any", "returns"] = Field(
        "mean",
        description="the mean of its values, their total up to `cap`, whether any was above 0, or whether a later "
        "prediction fell into the window",
    )
    cap: float | None = Field(None, gt=0, description="the largest total that counts; `total` needs it")


class Definition(BaseModel):
    """Two or more learners against each other."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"arms": ["old", "new"], "method": "split", "measure": "loss"}]},
    )
    arms: list[str] = Field(
        min_length=2, description="learners of one task; the first serves who does not take part"
    )
    method: str = Field("split", pattern="^(split|interleave)$")
    measure: str | None = Field(
        None,
        description="`loss`, a loss of the task, `reward`, `clicks@k`, `reciprocal-rank`; it must fit the feedback. With "
        "`per` also `metric:NAME` or `cost:NAME` (lower is better), values sent by unit to `events`. "
        "Left out for lists, the first feedback decides: clicks or grades",
    )
    guardrails: list[GuardrailDefinition] = Field(
        [], max_length=8, description="measures on which an arm must not be worse than the first one"
    )
    confidence: float = Field(0.95, gt=0.5, lt=1)
    weights: dict[str, float] | None = Field(
        None, description="share of units of each arm; equal if left out"
    )
    share: float = Field(1, gt=0, le=1, description="of the units take part")
    learn: Literal["all", "served"] | list[str] = Field(
        "all", description="which arms learn from feedback: `all`, the one that `served`, or those named"
    )
    shadow: list[str] = Field([], description="learners that predict and learn, but never serve")
    alias: str | None = Field(None, description="the name that `promote` switches")
    seed: str | None = Field(None, description="key of the assignment; the experiment's name if left out")
    count: str = Field(
        "units",
        pattern="^(units|rounds)$",
        description="every unit once (about the population of units), or every round (about this traffic; in a split "
        "that names nobody)",
    )
    wait: float | None = Field(
        None, gt=0, le=2_592_000, description="seconds after which a round counts, answered or not"
    )
    default: float | None = Field(
        None, ge=0, le=1, description="what a round without an answer counts; 0 where higher is better"
    )
    handover: bool = Field(
        False, description="interleaved, two arms: the second one takes over as drafted pages prove it better"
    )
    behaviour: bool = Field(
        False, description="adds to items how often they were clicked, for the query and by the unit"
    )
    per: PerDefinition | None = Field(
        None,
        description="of a split: a unit counts once, when its window is over; excludes `wait` and `default`",
    )
    segments: dict[str, list[str]] = Field(
        {}, max_length=8, description="with `per`: the values of each segment that get intervals of their own"
    )


class ServeOne(PredictOne):
    """One instance, and the unit it is for."""

    model_config = examples({"unit": "visitor-17", "features": {"flight": 1, "boarding": 2}})
    unit: str | None = Field(None, description="who is served: always by the same arm")
    before: float | None = Field(
        None,
        ge=0,
        le=1,
        description="of the unit, known before the experiment: its past mean, say; it saves traffic",
    )
    segments: dict[str, str] | None = Field(None, description="of the unit; those that the definition names")


class ServeMany(Options):
    """Many instances, each with its unit."""

    model_config = ConfigDict(extra="forbid")
    instances: list[ServeOne] = Field(min_length=1)


class ServeBody(RootModel[ServeOne | ServeMany]):
    """One instance, or a batch."""


class ExperimentFeedbackOne(FeedbackOne):
    """One event; a reward if that is what is measured."""

    unit: str | None = None
    before: float | None = Field(None, ge=0, le=1)
    segments: dict[str, str] | None = None
    reward: float | None = Field(None, description="from 0 to 1, unless it counts as a `total` or `any`")


class ExperimentFeedbackMany(BaseModel):
    """Many events, all applied in order or none."""

    model_config = ConfigDict(extra="forbid")
    events: list[ExperimentFeedbackOne] = Field(min_length=1)


class ExperimentFeedbackBody(RootModel[ExperimentFeedbackOne | ExperimentFeedbackMany]):
    """One event, or a batch."""


class Clicks(BaseModel):
    """Names that were clicked on the page of a prediction."""

    model_config = ConfigDict(extra="forbid")
    prediction_id: str
    clicks: list[str]


class AssignBody(BaseModel):
    """A unit that an app shows its arm by itself."""

    model_config = examples({"unit": "user-42"})
    unit: str
    before: float | None = Field(None, ge=0, le=1)
    segments: dict[str, str] | None = None
    prediction_id: str | None = Field(None, max_length=200, description="sent again it is the same exposure")


class Assigned(BaseModel):
    """The arm of a unit: always the same one while it is counted."""

    experiment: str
    unit: str
    arm: str
    counted: bool = Field(
        description="false outside the share, and while the experiment is paused or stopped"
    )


class UnitEventOne(BaseModel):
    """A value of a unit; what comes outside its window counts for nothing."""

    model_config = examples({"unit": "user-42", "metric": "reward", "value": 1})
    unit: str
    metric: str = Field(
        description="a measure of the definition, or the NAME of `metric:NAME` and `cost:NAME`"
    )
    value: float
    feedback_id: str | None = Field(None, description="counts once, however often it is sent")


class UnitEvents(BaseModel):
    """Many values, all of them or none."""

    model_config = ConfigDict(extra="forbid")
    events: list[UnitEventOne] = Field(min_length=1)


class UnitEventBody(RootModel[UnitEventOne | UnitEvents]):
    """One value, or a batch."""


class UnitValue(BaseModel):
    """A value that is in the log; `arm` is null for a unit that takes no part."""

    version: int
    arm: str | None
    metric: str
    value: float
    duplicate: bool


class UnitValues(BaseModel):
    """The replies to a batch, in its order."""

    results: list[UnitValue]


class Unit(BaseModel):
    """A unit of a split with `per`, and what its part in the verdict is computed from."""

    unit: str
    arm: str
    first_exposure: float = Field(description="seconds since 1970, by the log")
    exposures: int = Field(description="within its window")
    counted: bool = Field(description="its window is over")
    before: float | None
    segments: dict[str, str]
    values: dict[str, float] = Field(description="of each measure, by its name: by what the unit counts")


class UnitPage(BaseModel):
    """Units in the order of their first exposures."""

    units: list[Unit]
    next: NextPage


class RampBody(BaseModel):
    """The share of the units that takes part from now on."""

    model_config = examples({"share": 0.5})
    share: float = Field(gt=0, le=1, description="never smaller than before")


class EvaluateBody(BaseModel):
    """Exactly one of `spec`, `learner` and `policy`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"spec": {"task": "multiclass"}}]}
    )
    spec: JSON | None = None
    learner: str | None = Field(None, description="its spec is replayed from nothing")
    policy: str | None = Field(
        None, pattern="^(uniform|first|logged)$", description="where choices were logged"
    )
    measure: str | None = Field(None, description="`loss` of the log's own learner if left out")
    confidence: float = Field(0.95, gt=0.5, lt=1)
    until: int | None = Field(None, ge=0, description="the last version to go by; the newest if left out")
    segments: list[str] | None = Field(
        None,
        max_length=20,
        description="features of the context of choices: the figures again for rounds that have each",
    )


class Evaluated(BaseModel):
    """Means of the log's own learner and of the other one; intervals hold at every look."""

    model_config = ConfigDict(extra="allow")
    method: str = Field(description="`replay`: exact; `off-policy`: from logged probabilities")
    measure: str
    better: str
    rounds: int
    own: dict[str, float | None]
    other: dict[str, float | None] = Field(
        description="of choices: the doubly robust `mean` with its interval, and `snips` beside it"
    )
    difference: float | None = Field(None, description="other minus own; [`lower`, `upper`] is its interval")
    lower: float | None = None
    upper: float | None = None
    effective_rounds: float | None = Field(
        None, description="of choices: as many draws of the policy's own would tell as much"
    )
    warnings: list[str] | None = Field(
        None, description="of choices: where the log says little of the policy"
    )
    segments: dict[str, JSON] | None = Field(None, description="the same figures for each segment")


class Promotion(BaseModel):
    """Which arm, and under which name."""

    model_config = ConfigDict(extra="forbid")
    arm: str | None = Field(None, description="the verdict's, if left out")
    alias: str | None = Field(None, description="the definition's, if left out")
    override: bool = Field(False, description="promote although a guardrail has not passed")


class Difference(BaseModel):
    """One pair of arms: the running difference of their measures, first minus second, with its interval.

    `units` units count, each by the mean of its first `rounds_per_unit` rounds; in a split by its first outcome.
    """

    arms: list[str]
    means: list[float | None]
    difference: float | None
    lower: float
    upper: float
    units: int
    rounds: int
    rounds_per_unit: int
    better: str | None


class ReturnedUnits(BaseModel):
    """Of a split: who had so many outcomes. It names nobody, since an arm may decide who stays."""

    round: int
    units: dict[str, int] = Field(description="of each arm that came that far")
    means: dict[str, float | None] = Field(description="of their values in this round")


class ExposureDay(BaseModel):
    """Of the units first exposed on one day, those that have counted. It names nobody."""

    day: int = Field(description="days after the first exposure of all")
    units: dict[str, int] = Field(description="of each arm")
    means: dict[str, float | None]


class SegmentDifference(BaseModel):
    """A pair of arms in a segment that the definition names; all such intervals hold together."""

    segment: str
    value: str
    arms: list[str]
    units: int
    means: list[float | None]
    difference: float | None
    lower: float
    upper: float
    better: str | None


class GuardrailReport(BaseModel):
    """By how much an arm is better than the first one on a guardrail, at least (`lower`) and at most."""

    measure: str
    measure_in_words: str
    arm: str
    limit: float
    lower: float
    upper: float
    passed: bool = Field(description="`lower` is not below -`limit`: the arm may be promoted")
    violated: bool = Field(description="`upper` is below -`limit`: it is worse for certain")


class ExaminationReport(BaseModel):
    """How far down visitors look, as drafted pages tell: place k with chance k^-exponent."""

    curve: list[float] = Field(
        description="for places 1 to 10, by the lower quartile of the exponent; clicks count 1 / this"
    )
    exponent: float
    deviation: float = Field(description="the exponent's standard deviation")
    clicks: int = Field(description="clicks on items that coins could have put elsewhere")


class HandoverReport(BaseModel):
    """How far the second arm has taken over, and what proves it."""

    drafted: float = Field(description="share of the pages drafted from both arms")
    share: float = Field(description="share of the pages of the second arm alone")
    evidence: float = Field(description="the wealth of a bet that it is better")
    safety: float = Field(description="the wealth of a bet that it does not lose 0.01 of the DCG of a click")
    needed: float = Field(description="the safety that hands over, with a balance of 0 or more")
    balance: float = Field(
        description="what drafted pages have won, less what they lost, a page counting at most 1"
    )
    pages: int
    proved: bool = Field(description="it is safe to show: handed over")
    better: bool = Field(description="`evidence` has reached `needed`: it is better, not only safe")
    restarts: int = Field(description="times that it was taken back because it got worse")
    alarm: str | None = Field(description="why the second arm is held back")
    examination: ExaminationReport


class Experiment(BaseModel):
    """A definition, and what may be said now; intervals and verdict hold at every look."""

    name: str
    definition: Definition
    method: str
    confidence: float
    status: str
    promoted: str | None
    version: int
    rounds_per_unit: int
    shadow: dict[str, JSON] = Field(description="rounds and mean of each")
    better: str = Field(description="`lower` or `higher` values")
    sample_ratio: JSON | None = Field(description="whether units are shared out as the weights say")
    reason: str = Field(description="of the verdict, or why there is none")
    measure: str | None = Field(description="null until the first feedback decides")
    measure_in_words: str
    target: str = Field(description="what the intervals are about")
    arms: dict[str, JSON] = Field(
        description="units, rounds and mean of each; in a split also rounds served, answered, and delays in seconds; "
        "with `per` also units `exposed`, and `open` ones whose windows are not over"
    )
    differences: list[Difference]
    returns: list[ReturnedUnits] = Field(
        [], description="a unit's 1st, 2nd, ... outcome, up to 64; empty if interleaved"
    )
    guardrails: list[GuardrailReport]
    handover: HandoverReport | None = Field(None, description="where the definition asks for it")
    sentence: str = Field("", description="the result in plain words")
    share: float = Field(1.0, description="of the units that takes part now")
    days: list[ExposureDay] = Field([], description="with `per`: the means by day of the first exposure")
    segments: list[SegmentDifference] = Field([], description="in the segments that the definition names")
    waiting: int = Field(
        description="rounds answered whose time to answer is not over yet; with `per` units whose windows are open"
    )
    verdict: str = Field(description="an arm, or `undecided`")
    more_units: int | None = Field(
        description="that a verdict would take at the present effect; null if there is none"
    )
    more_rounds: int | None = Field(description="the same in rounds, at the present number of rounds a unit")


class Moment(BaseModel):
    """The intervals as they were after so many events, in the order of `arms`."""

    events: int
    differences: list[JSON] = Field(description="units, difference, lower and upper of each pair")


class Past(BaseModel):
    """How the confidence sequences narrowed; the last point is now."""

    version: int
    arms: list[list[str]] = Field(description="the pairs")
    points: list[Moment]


class ExperimentPrediction(Served):
    """A learner's reply; of a drafted list `learner` is null and every arm has its version."""

    learner: str | None
    experiment: str
    versions: dict[str, int] | None = None


class ExperimentPredictions(BaseModel):
    """The replies to a batch, in its order."""

    predictions: list[ExperimentPrediction]


class ExperimentOutcome(BaseModel):
    """A learner's reply, of the arm that served, with what was measured and every arm's own reply."""

    version: int
    loss: float | None
    mistake: bool | None
    updated: bool
    served_loss: float | None
    value: float | None
    credits: dict[str, float] | None
    arms: dict[str, JSON]
    duplicate: bool


class ExperimentOutcomes(BaseModel):
    """The outcomes of a batch, in its order."""

    results: list[ExperimentOutcome]


class ListedExperiment(BaseModel):
    """An experiment in a list."""

    name: str
    arms: list[str]
    method: str
    measure: str | None


class ExperimentPage(BaseModel):
    """A page of experiments by name; with a key bound to prefixes, only those it reaches."""

    experiments: list[ListedExperiment]
    next: NextPage
