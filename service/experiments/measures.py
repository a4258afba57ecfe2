"""The measures that an experiment can compare: one number in [0, 1] per round.

    loss                  the arms' own loss                                 lower is better     labels or grades
    any loss of the task  `ndcg@10`, `zero-one`, `hamming`, ...              lower is better     labels or grades
    reward                the `reward` of the feedback, in [0, 1]            higher is better    a reward
    clicks, clicks@k      the share of the (first k) positions clicked       higher is better    clicks (or grades)
    reciprocal-rank       1 / position of the first click, 0 without one     higher is better    clicks (or grades)
    metric:NAME           a value sent as an event of a unit                 higher is better    `POST .../events`
    cost:NAME             the same                                           lower is better     `POST .../events`

A measure must fit the feedback. A loss judged from clicks would drop every page without a click and punish a useful
click far down: it is refused. Where a list may get clicks or grades, and the definition names no measure, the first
feedback decides.

Intervals that hold at every look need bounded values: `judges` says how losses that can pass 1 are scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from feedrank.learners import forms, registry
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import View
from feedrank.service.contract.naming import is_name

from .judges import MISTAKE, LossMeasure, judge

CLICKS, RANK, REWARD = "clicks", "reciprocal-rank", "reward"
METRIC, COST = "metric:", "cost:"
CLICKED, GRADED = "clicks", "grades"  # what feedback of a list may hold
_CUTOFFS = (CLICKS, "ndcg", "precision")
_WORDS = {
    CLICKS: "share of positions clicked",
    RANK: "reciprocal rank of the first click",
    REWARD: "reward",
    "ndcg": "NDCG loss",
    "ap": "average-precision loss",
    "precision": "precision loss",
    "zero-one": "share of mistakes",
    "absolute": "distance in grades",
    "hamming": "share of labels wrong",
    "subset-zero-one": "share of sets not exactly right",
    "error-set-size": "share of pairs on the wrong side",
    "weighted": "cost of mistakes",
    "reject": "cost of mistakes and abstentions",
    "matrix": "cost of decisions",
    "jaccard": "Jaccard loss",
    "f-score": "F-score loss",
    "block-zero-one": "share of mistakes between blocks",
    "pairwise-disagreement": "share of pairs in the wrong order",
    MISTAKE: "share of mistakes",
}


def directed(noun: str, lower: bool) -> str:
    """What is compared, with its direction: `reward, higher is better`."""
    return f"{noun}, {'lower' if lower else 'higher'} is better"


@dataclass(frozen=True, slots=True)
class Measure:
    """`loss` for measures that are one."""

    name: str
    cutoff: int | None = None
    loss: LossMeasure | None = None

    @property
    def is_loss(self) -> bool:
        """Whether it is judged from labels or grades."""
        return self.loss is not None

    @property
    def is_metric(self) -> bool:
        """Whether its values come by unit, with a name of their own, and not with feedback."""
        return self.name.startswith((METRIC, COST))

    @property
    def lower_is_better(self) -> bool:
        """Of a loss or a cost."""
        return self.is_loss or self.name.startswith(COST)

    @property
    def text(self) -> str:
        """As it is written in a definition."""
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    @property
    def noun(self) -> str:
        """For people: `NDCG loss in the first 10 positions`."""
        within = "" if self.cutoff is None else f" in the first {self.cutoff} positions"
        name = self.name.partition(":")[2] if self.is_metric else _WORDS.get(self.name, self.name)
        return f"{name}{within}"

    @property
    def in_words(self) -> str:
        """The same with its direction: `reward, higher is better`."""
        return directed(self.noun, self.lower_is_better)


def read(text: object, specs: Sequence[View], method: str, place: str = "/measure") -> Measure:
    """The measure of a definition; `specs` are those of the arms, which have one task."""
    task = specs[0]["task"]
    if not isinstance(text, str):
        raise Unprocessable.at(place, "must be text, such as `loss`, `ndcg@10`, `clicks@3` or `reward`")
    if text.startswith((METRIC, COST)):
        if not is_name(text.partition(":")[2]):
            raise Unprocessable.at(
                place, "a name after the colon has 1 to 128 letters, digits, `.`, `_` and `-`"
            )
        return Measure(text)
    name, _, digits = text.replace("_", "-").partition("@")
    if digits and not (digits.isascii() and digits.isdigit() and 0 < int(digits) <= 10**6):
        raise Unprocessable.at(place, "the cutoff after @ must be a whole number of at least 1")
    cutoff = int(digits) if digits else None
    if name == REWARD and method == "interleave":
        raise Unprocessable.at(place, "a reward cannot be divided among the arms of an interleaved list")
    if name == "loss" and cutoff is None:
        return _own_loss(specs, place)
    form = forms.of(task)
    of_lists = {CLICKS, RANK} if form.ranks else set()
    losses = dict.fromkeys(registry.losses(task) + registry.loss_names(task))
    if form.ranks and not form.items:
        losses[MISTAKE] = None
    if name not in (of_lists | {REWARD, *losses}):
        offered = ", ".join(["loss", *losses, REWARD, *sorted(of_lists)])
        raise Unprocessable.at(
            place,
            f"is not a measure of {task}; use one of {offered}, or `metric:NAME` for values by unit",
        )
    if cutoff is not None and name not in _CUTOFFS:
        raise Unprocessable.at(place, f"only {', '.join(_CUTOFFS)} take a cutoff")
    return Measure(name, cutoff, _loss(name, cutoff, specs, place) if name in losses else None)


def defaults(specs: Sequence[View], method: str) -> dict[str, Measure]:
    """The measure for each kind of feedback that a definition without one may get."""
    form = forms.of(specs[0]["task"])
    if method == "interleave":
        clicks = read(CLICKS, specs, method)
        return {CLICKED: clicks, GRADED: clicks}
    if form.chooses:
        reward = read(REWARD, specs, method)
        return {CLICKED: reward, GRADED: reward}
    if not (form.ranks and form.items):
        loss = read("loss", specs, method)
        return {CLICKED: loss, GRADED: loss}
    own = {_loss_of(spec) for spec in specs}
    return {
        CLICKED: read(RANK, specs, method),
        GRADED: read("loss" if len(own) == 1 else "ndcg", specs, method),
    }


def kind_of(truth: View) -> str:
    """What the feedback holds: clicks, or labels and grades."""
    return CLICKED if "clicks" in truth else GRADED


def check_fit(measure: Measure, feedback: View, *, complete: bool = True) -> None:
    """Refuse feedback that the measure cannot judge, and say what to use instead; `complete` if it must bring a value."""
    if measure.is_loss and "clicks" in feedback:
        raise Unprocessable.at(
            "/clicks",
            f"this experiment measures `{measure.text}`, a loss, which needs labels or grades: send `relevance`, "
            "or create an experiment with the measure `reciprocal-rank` or `clicks@10`",
        )
    if complete and measure.name == REWARD and feedback.get("reward") is None:
        raise Unprocessable.at("/reward", "missing field `reward`, which this experiment measures")


def _own_loss(specs: Sequence[View], place: str) -> Measure:
    names = {_loss_of(spec) for spec in specs}
    if len(names) > 1:
        each = ", ".join(sorted(f"{name}@{cutoff}" if cutoff else name for name, cutoff in names))
        raise Unprocessable.at(
            place, f"the arms have different losses ({each}): set `measure` to one loss for all"
        )
    ((name, cutoff),) = names
    return Measure(name, cutoff, _loss(name, cutoff, specs, place))


def _loss_of(spec: View) -> tuple[str, int | None]:
    """The name and cutoff of what a learner loses."""
    form = forms.of(spec["task"])
    if spec["algorithm"] == "dual-ascent":
        return (MISTAKE if form.ranks else form.loss), None
    name = spec.get("loss") or spec.get("measure")
    return name or form.loss, spec.get("cutoff")


def _loss(name: str, cutoff: int | None, specs: Sequence[View], place: str) -> LossMeasure:
    if name == "precision" and cutoff is None:
        raise Unprocessable.at(place, "precision needs a cutoff, such as `precision@10`")
    task = specs[0]["task"]
    costs = {
        "weighted": "weights",
        "reject": "reject_costs",
        "block-zero-one": "blocks",
        "matrix": "matrix",
    }.get(name, "")
    stated = [spec[costs] for spec in specs if costs in spec]
    if any(other != stated[0] for other in stated):
        raise Unprocessable.at(place, f"the arms differ in `{costs}`: their losses cannot be compared")
    if name == "block-zero-one":
        if not stated:
            raise Unprocessable.at(place, "no arm has `blocks` in its spec")
        return LossMeasure(task, name, blocks=stated[0])
    if name == "matrix":
        return LossMeasure(task, name, matrix=stated[0] if stated else {})
    labels = specs[0]["labels"] if forms.of(task).closed else ()
    return LossMeasure(task, name, cutoff, labels, stated[0] if stated else {})


def value(measure: Measure, served: View, feedback: View) -> float | None:
    """The value of one round; None if the feedback holds nothing of the kind.

    `served` holds the decision, `label`, `labels` or `ranking` (names, best first), the `items` of a list, and how many
    labels were `known`; `feedback` the truth and `reward`.
    """
    if measure.name == REWARD:
        return feedback.get("reward")
    if measure.is_metric:
        return None
    if measure.loss is not None:
        judged = any(name in feedback for name in ("label", "labels", "relevance"))
        return judge(measure.loss, served, feedback) if judged else None
    hits = clicked(feedback)
    if hits is None:
        return None
    places = [place for place, name in enumerate(served["ranking"], 1) if name in hits]
    if measure.name == RANK:
        return 1 / places[0] if places else 0.0
    within = min(measure.cutoff or len(served["ranking"]), len(served["ranking"]))
    return sum(place <= within for place in places) / within


def credited(measure: Measure, ranking: Sequence[str], feedback: View) -> list[int] | None:
    """The places (from 0) of a drafted list that earn credit: the clicked ones among the first k, or the first click."""
    hits = clicked(feedback)
    if hits is None:
        return None
    places = [place for place, name in enumerate(ranking[: measure.cutoff]) if name in hits]
    return places[:1] if measure.name == RANK else places


def clicked(feedback: View) -> set[str] | None:
    """The names that were clicked, or graded above 0; None if the feedback holds no truth."""
    for field_ in ("clicks", "labels"):
        if field_ in feedback:
            return set(feedback[field_])
    if "relevance" in feedback:
        return {name for name, grade in feedback["relevance"].items() if grade > 0}
    return {feedback["label"]} if "label" in feedback else None


def divisor(text: str, specs: Sequence[View], method: str) -> Measure:
    """What a ratio divides by: values that come by unit."""
    measure = read(text, specs, method, "/per/over/measure")
    if not measure.is_metric:
        raise Unprocessable.at(
            "/per/over/measure", "must be a value that comes by unit, such as `metric:visits`"
        )
    return measure
