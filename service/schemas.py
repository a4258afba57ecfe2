"""Request bodies of the contract as models, for OpenAPI and its examples; the core and the host check at run time."""

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


class Options(BaseModel):
    """How to decide, and whether to remember it."""

    top: Annotated[int, Field(ge=1)] | None = Field(None, description="cut the ranking after so many entries")
    explain: bool = Field(False, description="add what each feature contributes to each score")
    remember: bool = Field(True, description="keep the prediction, so that feedback can name it")
    min_margin: Annotated[float, Field(ge=0)] | None = Field(None, description="abstain below this margin")
    min_version: Count | None = Field(None, description="wait until this version is applied")
    loss: str | None = Field(None, description="quadratic surrogate: decode for this loss")


class PredictOne(Instance, Options):
    """One instance to decide on."""

    model_config = examples(
        {"features": {"flight": 1, "boarding": 2}, "top": 3},
        {"features": ["flight", "boarding"], "explain": True, "remember": False},
    )


class PredictMany(Options):
    """Many instances, each as a single call would take it; options beside the list hold where one says nothing."""

    model_config = examples(
        {"instances": [{"features": {"flight": 1}}, {"features": {"invoice": 1}}], "remember": False}
    )
    instances: Annotated[list[PredictOne], Field(min_length=1)]


class PredictBody(RootModel[PredictOne | PredictMany]):
    """One instance, or a batch."""


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


class RetractBody(BaseModel):
    """Which event to withdraw: exactly one of the two."""

    model_config = examples({"feedback_id": "order-17"})
    feedback_id: Identity | None = None
    prediction_id: Identity | None = None


class AliasBody(BaseModel):
    """The learner that the name shall stand for."""

    model_config = examples({"learner": "mail"})
    learner: LearnerName
