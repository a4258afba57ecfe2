"""Reply bodies of the contract, for OpenAPI; scripts/client_types.py writes the client's types of them.

A field that joins a reply later is optional, so that a client can also read what an older service sends.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from .json_types import JSON
from .request_models import Count

NextPage = Annotated[str | None, Field(description="the cursor of the next page, or null")]


class Problem(BaseModel):
    """RFC 9457; `type` is one of the names in docs/errors.md."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Place] | None = Field(None, description="with 422: each wrong place")
    checks: dict[str, str] | None = Field(None, description="of `/readyz`: each check, `ok` or why it fails")


class Place(BaseModel):
    """One wrong place in a request."""

    pointer: str = Field(description="JSON pointer (RFC 6901) into the body, or the name of a parameter")
    detail: str


class RankingEntry(BaseModel):
    """One place of a ranking, best first."""

    label: str | None = None
    id: str | None = None
    score: float
    probability: float | None = None
    contributions: dict[str, float] | None = None


class SlotChoice(BaseModel):
    """What was drawn for a slot."""

    id: str = Field(description="of the slot")
    choice: str = Field(description="the id of the chosen item")
    probability: float = Field(description="with which it was drawn of the items that were left")


class Served(BaseModel):
    """A decision and the ranking behind it."""

    prediction_id: str | None = None
    version: Count
    ranking: list[RankingEntry]
    label: str | None = None
    labels: list[str] | None = None
    choice: str | None = Field(None, description="the id of the chosen item")
    probability: float | None = Field(None, description="with which the choice was drawn")
    slots: list[SlotChoice] | None = Field(None, description="of a choice with slots, instead of `choice`")
    abstained: bool | None = None
    margin: float | None = Field(None, description="the gap another decision would have to close")
    known: Count | None = Field(None, description="features of the instance that were learned from")
    unknown: Count | None = Field(None, description="features of the instance that were never learned from")
    proved: float | None = Field(
        None, description="with `min_precision`: the precision proved so far, or null"
    )
    audit: bool | None = Field(None, description="true if it abstains only because it was drawn as an audit")
    objective: float | None = Field(
        None, description="quadratic surrogate: the estimated expected loss of the decision"
    )


class Coverage(BaseModel):
    """How many features the instance has, all its items together, and how many of them the learner knows."""

    features: Count
    known: Count


class Prediction(Served):
    """The decision of one learner."""

    learner: str
    coverage: Coverage | None = Field(None, description="where it was asked for")


class Predictions(BaseModel):
    """The replies to a batch, in its order."""

    predictions: list[Prediction]


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


class Expert(BaseModel):
    """One of the learners that `auto` blends or follows."""

    name: str
    weight: float
    mean_loss: float | None = None


class Learner(BaseModel):
    """A learner and how it is doing."""

    name: str
    spec: JSON
    version: Count
    labels: list[str] = Field(description="in order of joining")
    features: Count
    bytes: Count
    progress: Progress
    preset: str | None = Field(None, description="the version of the list of experts, where it has one")
    tokenizer: str | None = Field(None, description="the version of the rule that reads text")
    certificate: JSON = Field(description="what the theory proves at this moment")
    experts: list[Expert] | None = Field(None, description="of `auto`")
    drift: JSON | None = Field(None, description="what the drift alarm says, where there is one")
    retracting: list[Count] = Field(description="versions of events whose retraction is not done yet")
    renames: dict[str, str] | None = Field(
        None,
        description="labels that were renamed, and what they are called now; `spec` shows what was asked for",
    )


class ListedLearner(BaseModel):
    """A learner in a list."""

    name: str
    task: str
    algorithm: str
    version: Count


class Learners(BaseModel):
    """A page of learners by name; with a key bound to prefixes, only those it reaches."""

    learners: list[ListedLearner]
    next: NextPage


class Point(BaseModel):
    """One point of the learning curve."""

    rounds: Count
    cumulative_loss: float
    mean_loss: float
    window_loss: float
    at: float | None = Field(description="seconds since 1970; null where it is not known")
    experts: list[float | None] = Field(description="the mean loss of each of the history's `experts`")


class History(BaseModel):
    """The learning curve in a bounded number of points; the last one is now."""

    version: Count
    progress: Progress
    experts: list[str] = Field(description="names, in the order of each point's losses")
    points: list[Point]


class ClicksSoFar(BaseModel):
    """The clicks that a prediction has got, and when they are counted."""

    prediction_id: str
    clicks: list[str]
    closes_at: float = Field(description="seconds since 1970")


class RewardSoFar(BaseModel):
    """The sum of the parts of a reward, and when it is counted."""

    prediction_id: str
    reward: float | dict[str, float]
    closes_at: float = Field(description="seconds since 1970")


class Alias(BaseModel):
    """An alias as it now stands."""

    name: str
    learner: str


class Aliases(BaseModel):
    """A page of aliases by name; with a key bound to prefixes, only those it reaches."""

    aliases: list[Alias]
    next: NextPage


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"]
    checks: dict[str, str] | None = Field(None, description="of `/readyz`: the names of all checks")


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


class FeatureWeight(BaseModel):
    """What a feature of value 1, after weighting and scaling, adds to a score."""

    feature: str
    weight: float


class Weights(BaseModel):
    """The features that speak loudest for a label, or against it, by falling size of their weight."""

    version: Count
    label: str | None = Field(description="null in subset ranking, where all items share the weights")
    features: list[FeatureWeight]
