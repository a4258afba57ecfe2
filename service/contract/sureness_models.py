"""Reply bodies about how sure a learner is and what it would like to be told, for OpenAPI."""

from __future__ import annotations

from pydantic import BaseModel, Field

from .json_types import JSON
from .reply_models import NextPage
from .request_models import Count


class QueueEntry(BaseModel):
    """A remembered prediction that waits for an answer."""

    prediction_id: str
    instance: JSON
    label: str | None = Field(None, description="what was decided, or would have been")
    labels: list[str] | None = None
    ranking: list[str] | None = None
    probability: float | None = Field(description="of the decision, where it was stated")
    margin: float | None
    remembered_at: float = Field(description="seconds since 1970")


class Queue(BaseModel):
    """Predictions without an answer, those first whose answer would teach most."""

    queue: list[QueueEntry]
    next: NextPage


class StatedBin(BaseModel):
    """Decisions whose stated probability was in a tenth: how probable they were said to be, and how many were right."""

    start: float = Field(alias="from")
    to: float
    mean: float = Field(description="of the stated probabilities")
    right: float = Field(description="the share of these decisions that was right")
    n: Count


class CoverageAt(BaseModel):
    """The largest share of decisions, by a threshold on the probability, that was right so often."""

    precision: float
    share: float
    proved: float | None = Field(
        description="what is proved of these decisions: their chance to be right is at least this on average, "
        "with confidence .95 at every moment; null without any"
    )
    start: float | None = Field(alias="from", description="the threshold")


class LabelReliability(BaseModel):
    """Of one label."""

    precision: float | None = Field(description="of the decisions for it, null without any")
    recall: float | None = Field(description="of the events in which it was true, null without any")
    n: Count = Field(description="events in which it was true")
    taken_for: dict[str, Count] = Field(description="labels that were decided in its place, and how often")


class Baselines(BaseModel):
    """Mean losses of two that never look at the instance; null for orders and lists."""

    commonest: float | None = Field(description="always the commonest truth so far")
    last: float | None = Field(description="the truth of the event before")


class Reliability(BaseModel):
    """What decisions were worth, by the decision before each event."""

    version: Count
    events: Count
    since: Count = Field(
        description="the version behind which it counts: 0 unless the learner came as a snapshot"
    )
    abstained: Count
    stated: bool = Field(description="whether the learner states probabilities: else there are no bins")
    bins: list[StatedBin]
    coverage: list[CoverageAt]
    labels: dict[str, LabelReliability]
    baselines: Baselines
    loss: float | None = Field(description="the learner's mean loss over the same events")
