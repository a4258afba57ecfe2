"""The definition of an experiment and what GET says of it, as models for OpenAPI."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .json_types import JSON
from .reply_models import NextPage


class GuardrailDefinition(BaseModel):
    """A measure that stops the promotion of an arm which may be worse than the first one by more than `limit`."""

    model_config = ConfigDict(extra="forbid")
    measure: str = Field(description="a measure, or `metric:NAME` or `cost:NAME` of values sent by unit")
    limit: float = Field(0.0, ge=0, description="below 1, or with `total` below its cap")
    value: Literal["mean", "total", "any", "returns"] | None = Field(
        None, description="with `per`: how a unit's values become one; `mean` if left out"
    )
    cap: float | None = Field(None, gt=0, description="of `total`")


class DivisorDefinition(BaseModel):
    """What the totals of a ratio are divided by."""

    model_config = ConfigDict(extra="forbid")
    measure: str = Field(description="`metric:NAME`: values sent by unit to `events`")
    cap: float = Field(gt=0, description="the largest total of a unit that counts")


class PerDefinition(BaseModel):
    """A unit counts once, `window` seconds after its first exposure; what never came is 0."""

    model_config = ConfigDict(extra="forbid")
    window: float = Field(gt=0, le=31_622_400, description="seconds")
    value: Literal["mean", "total", "any", "returns", "ratio"] = Field(
        "mean",
        description="the mean of its values, their total up to `cap`, whether any was above 0, whether a later "
        "prediction fell into the window, or the totals of all units over those of `over`",
    )
    cap: float | None = Field(
        None, gt=0, description="the largest total that counts; `total` and `ratio` need it"
    )
    over: DivisorDefinition | None = Field(None, description="of `ratio`")


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


class ExposureAge(BaseModel):
    """What came on one day since a unit's own first exposure, of units that have been in for so long. It names nobody."""

    day: int = Field(description="days since the unit's first exposure, from 0")
    units: dict[str, int] = Field(description="of each arm")
    means: dict[str, float | None] = Field(
        description="a unit: the sum of the measure's values of that day; with `returns` its exposures"
    )


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


class PromotionReport(BaseModel):
    """Which alias was switched to which arm, and from which learner: switching it back takes the promotion back."""

    arm: str
    alias: str | None
    replaced: str | None


class Experiment(BaseModel):
    """A definition, and what may be said now; intervals and verdict hold at every look."""

    name: str
    definition: Definition
    method: str
    confidence: float
    status: str
    promoted: str | None
    promotion: PromotionReport | None = Field(None, description="of the arm that was promoted")
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
    ages: list[ExposureAge] = Field([], description="with `per`: what came by day since a unit's exposure")
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
