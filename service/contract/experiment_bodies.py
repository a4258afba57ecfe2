"""Bodies and replies of the calls of an experiment as models, for OpenAPI."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, RootModel

from .json_types import JSON
from .reply_models import NextPage, Served
from .request_models import FeedbackOne, Options, PredictOne, examples


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
    """A unit of a split, and what its part in the verdict is computed from: with `per` its window, else one outcome."""

    unit: str = Field(description="its name; without `per`, the hash that the log has of it")
    arm: str
    first_exposure: float = Field(
        description="seconds since 1970, by the log; without `per`, of its first outcome: when that round was served, or "
        "else answered"
    )
    exposures: int = Field(description="within its window; without `per`, outcomes so far")
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
