"""The JSON of the contract as models, for OpenAPI and its examples. The core and the host do the checking at run time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

Text = Annotated[str, Field(min_length=1)]
Identity = Annotated[str, Field(min_length=1, max_length=512)]
LearnerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Features = Annotated[
    dict[Text, float] | list[Text] | list[float],
    Field(description="`{name: number}`, `[name, ...]` (each 1), or `[number, ...]` (named `0`, `1`, ...)"),
]
Task = Literal["binary", "multiclass", "ordinal", "multilabel", "label-ranking", "subset-ranking"]
Algorithm = Literal["predtron", "dual-ascent", "slam", "minimax-perceptron", "listnet", "quadratic-surrogate"]


def examples(*values: Any) -> ConfigDict:
    """Refuse unknown fields, and show these examples, which tests send."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(values)})


class Problem(BaseModel):
    """RFC 9457; `type` is one of the names in docs/errors.md."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Place] | None = Field(None, description="with 422: each wrong place")


class Place(BaseModel):
    """One wrong place in a request."""

    pointer: str = Field(description="JSON pointer (RFC 6901) into the body, or the name of a parameter")
    detail: str


class Spec(BaseModel):
    """What a learner is; without `algorithm` it is the task's preset. Which field goes with which: docs/api.md."""

    model_config = examples(
        {"task": "multiclass", "algorithm": "predtron", "labels": ["inbox", "travel"]},
        {"task": "subset-ranking", "algorithm": "slam", "measure": "ndcg", "cutoff": 10},
        {"task": "binary", "labels": ["ham", "spam"]},
    )
    task: Task
    algorithm: Algorithm | None = None
    labels: list[Text] | None = None
    weighting: Literal["none", "idf"] | None = None
    normalize: Literal["none", "unit", "list"] | None = None
    bias: bool | None = None
    loss: str | None = None
    weights: dict[Text, Positive] | None = None
    reject_costs: dict[Text, float] | None = None
    blocks: list[list[Text]] | None = None
    cutoff: Annotated[int, Field(ge=1)] | None = None
    variant: Literal["standard", "loss-driven"] | None = None
    learning_rate: Positive | Literal["theory", "scale-free"] | None = None
    R: Positive | None = None
    norm: Literal["l2", "l1", "group"] | None = None
    position: Literal["linear", "reciprocal", "power"] | None = None
    exponent: Positive | None = None
    kernel: Literal["linear", "gaussian", "polynomial"] | None = None
    bandwidth: Positive | None = None
    degree: Annotated[int, Field(ge=1)] | None = None
    budget: Annotated[int, Field(ge=1)] | None = None
    update: Literal["I", "II", "III"] | None = None
    complexity: Literal["squared-norm", "entropy"] | None = None
    C: Positive | None = None
    gamma: Positive | None = None
    dimension: Annotated[int, Field(ge=1)] | None = None
    measure: Literal["ndcg", "ap"] | None = None
    margin: Positive | None = None
    regularization: Positive | None = None
    examination: list[Positive] | None = None


class Item(BaseModel):
    """One item of a list to rank."""

    model_config = ConfigDict(extra="forbid")
    id: Text
    features: Features


class Instance(BaseModel):
    """`features` (one vector) or `items` (a list to rank)."""

    features: Features | None = None
    items: Annotated[list[Item], Field(min_length=1)] | None = None


class PredictOne(Instance):
    """One instance to decide on."""

    model_config = examples(
        {"features": {"flight": 1, "boarding": 2}, "top": 3},
        {"features": ["flight", "boarding"], "explain": True, "remember": False},
    )
    top: Annotated[int, Field(ge=1)] | None = Field(None, description="cut the ranking after so many entries")
    explain: bool = Field(False, description="add what each feature contributes to each score")
    remember: bool = Field(True, description="keep the prediction, so that feedback can name it")
    min_margin: Annotated[float, Field(ge=0)] | None = Field(None, description="abstain below this margin")
    min_version: Count | None = Field(None, description="wait until this version is applied")
    loss: str | None = Field(None, description="quadratic surrogate: decode for this loss")


class PredictMany(BaseModel):
    """Many instances, each as a single call would take it."""

    model_config = examples({"instances": [{"features": {"flight": 1}}, {"features": {"invoice": 1}}]})
    instances: Annotated[list[PredictOne], Field(min_length=1)]


class PredictBody(RootModel[PredictOne | PredictMany]):
    """One instance, or a batch."""


class Entry(BaseModel):
    """One place of a ranking, best first."""

    label: str | None = None
    id: str | None = None
    score: float
    contributions: dict[str, float] | None = None


class Prediction(BaseModel):
    """The decision and the ranking behind it."""

    prediction_id: str | None = None
    learner: str
    version: Count
    ranking: list[Entry]
    label: str | None = None
    labels: list[str] | None = None
    abstained: bool | None = None
    margin: float | None = Field(None, description="the gap another decision would have to close")


class Predictions(BaseModel):
    """The replies to a batch, in its order."""

    predictions: list[Prediction]


class FeedbackOne(Instance):
    """One event: an instance, or the prediction it is about, and the truth."""

    model_config = examples(
        {"features": {"flight": 1, "boarding": 2}, "label": "travel"},
        {"features": {"invoice": 1}, "label": "inbox", "feedback_id": "order-17"},
    )
    prediction_id: Identity | None = None
    feedback_id: Identity | None = None
    label: Text | None = None
    labels: list[Text] | None = None
    relevance: dict[Text, Annotated[float, Field(ge=0)]] | None = None
    clicks: list[Text] | None = None
    served: dict[str, Any] | None = Field(
        None,
        description="what was shown, `label`, `labels` or `ranking`, as clicks are read by it: beside an instance, or "
        "beside a prediction_id if it was not the prediction",
    )


class FeedbackMany(BaseModel):
    """Many events, all applied in order or none."""

    model_config = examples({"events": [{"features": {"flight": 1}, "label": "travel"}]})
    events: Annotated[list[FeedbackOne], Field(min_length=1)]


class FeedbackBody(RootModel[FeedbackOne | FeedbackMany]):
    """One event, or a batch."""


class PredictLine(BaseModel):
    """A line of a stream that asks."""

    model_config = examples({"predict": {"features": {"flight": 1}}})
    predict: PredictBody


class FeedbackLine(BaseModel):
    """A line of a stream that teaches."""

    model_config = examples({"feedback": {"features": {"flight": 1}, "label": "travel"}})
    feedback: FeedbackBody


class StreamLine(RootModel[PredictLine | FeedbackLine]):
    """One line of a stream; a stream of one line is plain JSON."""


class Outcome(BaseModel):
    """What one event did."""

    version: Count
    loss: float = Field(description="of the weights just before this update")
    mistake: bool
    updated: bool
    served_loss: float | None = Field(description="of the prediction the user saw")
    duplicate: bool


class Outcomes(BaseModel):
    """The outcomes of a batch, in its order."""

    results: list[Outcome]


class Progress(BaseModel):
    """The learning so far."""

    rounds: Count
    mistakes: Count
    updates: Count
    cumulative_loss: float
    mean_loss: float | None = Field(description="null before the first round")
    recent_loss: float | None = Field(description="null before the first round")


class Learner(BaseModel):
    """A learner and how it is doing."""

    name: str
    spec: dict[str, Any]
    version: Count
    labels: list[str] = Field(description="in order of joining")
    features: Count
    bytes: Count
    progress: Progress
    certificate: dict[str, Any] = Field(description="what the theory proves at this moment")


class Listed(BaseModel):
    """A learner in a list."""

    name: str
    task: str
    algorithm: str
    version: Count


class Learners(BaseModel):
    """A page of learners by name; with a key bound to prefixes, only those it reaches."""

    learners: list[Listed]
    next: str | None = Field(description="the cursor of the next page, or null")


class Point(BaseModel):
    """One point of the learning curve."""

    rounds: Count
    cumulative_loss: float
    mean_loss: float
    window_loss: float


class History(BaseModel):
    """The learning curve in a bounded number of points; the last one is now."""

    version: Count
    progress: Progress
    points: list[Point]


class LabelCount(BaseModel):
    """How often a label was true, and how often the learner was wrong then."""

    label: str
    events: Count
    mistakes: Count


class LabelCounts(BaseModel):
    """The labels that were true most often, out of `total`; a learner brought in from a file starts to count anew."""

    version: Count
    total: Count
    labels: list[LabelCount]


class Weight(BaseModel):
    """What a feature of value 1, after weighting and scaling, adds to a score."""

    feature: str
    weight: float


class Weights(BaseModel):
    """The features that speak loudest for a label, or against it, by falling size of their weight."""

    version: Count
    label: str | None = Field(description="null in subset ranking, where all items share the weights")
    features: list[Weight]


class Events(BaseModel):
    """A page of the log."""

    events: list[dict[str, Any]]
    next: int | None = Field(description="`after` of the next page, or null")


class RetractBody(BaseModel):
    """Which event to withdraw: exactly one of the two."""

    model_config = examples({"feedback_id": "order-17"})
    feedback_id: Identity | None = None
    prediction_id: Identity | None = None


class Retracted(BaseModel):
    """The withdrawal."""

    version: Count = Field(description="of the withdrawal")
    withdrawn: Count = Field(description="of the event")
    duplicate: bool


class AliasBody(BaseModel):
    """The learner that the name shall stand for."""

    model_config = examples({"learner": "mail"})
    learner: LearnerName


class Alias(BaseModel):
    """An alias as it now stands."""

    name: str
    learner: str


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"]
