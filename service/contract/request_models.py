"""Request bodies of the contract as models, for OpenAPI and its examples; the core and the host check at run time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from .json_types import JSON
from .spec_schema import spec_schema

Text = Annotated[str, Field(min_length=1)]
EventId = Annotated[str, Field(min_length=1, max_length=512)]
LearnerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Features = Annotated[
    dict[Text, float] | list[Text] | list[float],
    Field(description="`{name: number}`, `[name, ...]` (each 1), or `[number, ...]` (named `0`, `1`, ...)"),
]

RawText = Annotated[str | dict[Text, str], Field(description="raw text, made into words by docs/spec.md")]
Vector = Annotated[
    list[float] | str,
    Field(
        description="numbers without names, such as an embedding: a list, or the base64 of little-endian float32; "
        "always of one length"
    ),
]


Subject = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="whom it is about: kept as a keyed hash, by which all of it can be erased",
    ),
]


def examples(*values: Any) -> ConfigDict:
    """Refuse unknown fields, and show these examples, which tests send."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(values)})


SPECS = [
    {"task": "multiclass", "algorithm": "predtron", "labels": ["inbox", "travel"]},
    {"task": "subset-ranking", "algorithm": "slam", "measure": "ndcg", "cutoff": 10},
    {"task": "binary", "labels": ["ham", "spam"]},
]


def _describe(schema: JSON) -> None:
    schema.clear()
    schema.update(spec_schema(), examples=SPECS)


class Spec(RootModel[JSON]):
    """What a learner is; described by the registrations of the core, which also read it."""

    model_config = ConfigDict(json_schema_extra=_describe)


class Item(BaseModel):
    """One item of a list to rank."""

    model_config = ConfigDict(extra="forbid")
    id: Text
    features: Features | None = None
    text: RawText | None = None
    vector: Vector | None = None


class Columns(BaseModel):
    """Items that have the same features, in columns."""

    model_config = ConfigDict(extra="forbid")
    ids: Annotated[list[Text], Field(min_length=1)]
    columns: list[Text]
    rows: list[list[float]] | str = Field(
        description="one row an id; or base64 of little-endian float32, row by row"
    )


class Slot(BaseModel):
    """A place for one of the items of a choice."""

    model_config = ConfigDict(extra="forbid")
    id: Text
    features: Features | None = None
    exclude: list[Text] | None = Field(None, description="items that must not be drawn for it")
    baseline: Text | None = Field(None, description="the item that the caller would show there")


class Instance(BaseModel):
    """`features`, `text` and `vector`, alone or together; a `row` of the learner's `input`; or `items`, with `features` of
    their context."""

    features: Features | None = None
    text: RawText | None = None
    vector: Vector | None = None
    row: dict[Text, Any] | None = Field(None, description="a record as it is, read by the learner's `input`")
    unknown_columns: Literal["ignore"] | None = Field(
        None, description="pass over columns of the row that `input` does not name"
    )
    items: Annotated[list[Item], Field(min_length=1)] | Columns | None = None
    slots: Annotated[list[Slot], Field(min_length=1, max_length=100)] | None = Field(
        None, description="of a choice: one item is drawn for each, without replacement"
    )


class Options(BaseModel):
    """How to decide, and whether to remember it."""

    top: Annotated[int, Field(ge=1)] | None = Field(None, description="cut the ranking after so many entries")
    explain: bool = Field(False, description="add what each feature contributes to each score")
    coverage: bool = Field(False, description="add how many features of the instance are known")
    remember: bool = Field(True, description="keep the prediction, so that feedback can name it")
    min_margin: Annotated[float, Field(ge=0)] | None = Field(None, description="abstain below this margin")
    min_precision: Annotated[float, Field(ge=0.5, le=0.999)] | None = Field(
        None,
        description="decide only where it is proved that such decisions are right so often; else abstain",
    )
    promise: Literal["proof", "account"] = Field(
        "proof",
        description="how `min_precision` is kept: `proof` of the chances, or `account` of the mistakes that happened",
    )
    min_version: Count | None = Field(None, description="wait until this version is applied")
    loss: str | None = Field(None, description="quadratic surrogate: decode for this loss")
    subject: Subject = None


class PredictOne(Instance, Options):
    """One instance to decide on."""

    prediction_id: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="an id of the caller: the same request again replies as the first time"
    )

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
    prediction_id: EventId | None = None
    feedback_id: EventId | None = None
    weight: Annotated[float, Field(gt=0, le=1000)] = Field(1, description="how many times the event counts")
    subject: Subject = None
    label: Text | None = None
    labels: list[Text] | None = None
    relevance: dict[Text, Annotated[float, Field(ge=0)]] | None = None
    clicks: list[Text] | None = None
    reward: float | dict[Text, float] | None = Field(
        None, description="of a choice: what the item that was served earned; of slots, by slot"
    )
    served: JSON | None = Field(
        None,
        description="what was shown, `label`, `labels` or `ranking`, as clicks are read by it, or of a choice `id` and "
        "`probability`, or `slots` of `id`, `choice` and `probability`: beside an instance, or beside a prediction_id if "
        "it was not the prediction",
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


class ClicksBody(BaseModel):
    """Items that were clicked, as they come; an empty list opens the window of a list that may get none."""

    model_config = examples({"prediction_id": "0192f3c7a1b2", "clicks": ["d2"]})
    prediction_id: EventId
    clicks: list[Text]


class RetractOne(BaseModel):
    """Which event to retract: exactly one of the two."""

    model_config = examples({"feedback_id": "order-17"})
    feedback_id: EventId | None = None
    prediction_id: EventId | None = None


class RetractMany(BaseModel):
    """Many events, all of them or none, folded again once."""

    model_config = ConfigDict(extra="forbid")
    events: list[RetractOne] = Field(min_length=1)


class RewardsBody(BaseModel):
    """A part of a reward that comes in several, such as the orders of a visit, by its own name."""

    model_config = examples({"prediction_id": "0192f3c7a1b2", "part": "order-7", "reward": 0.2})
    prediction_id: EventId
    part: EventId = Field(description="sent again, it counts no second time")
    reward: float | dict[Text, float]


class RetractBody(RootModel[RetractOne | RetractMany]):
    """One event, or a batch."""


class EraseBody(BaseModel):
    """What to erase: exactly one of the three."""

    model_config = examples({"feedback_id": "order-17"}, {"subject": "user-42"})
    feedback_id: EventId | None = None
    prediction_id: EventId | None = None
    subject: Subject = None


class EraseSubjectBody(BaseModel):
    """Whose data to erase."""

    model_config = examples({"subject": "user-42"})
    subject: Annotated[str, Field(min_length=1, max_length=200)]


class LabelsBody(BaseModel):
    """Labels that get other names; two that get one name are merged."""

    model_config = examples({"rename": {"inbox": "primary"}})
    rename: dict[Text, Text] = Field(description="`{old: new}`", min_length=1)


class AliasBody(BaseModel):
    """The learner that the name shall stand for."""

    model_config = examples({"learner": "mail"})
    learner: LearnerName
