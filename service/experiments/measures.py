"""What an experiment compares, one number in [0, 1] a round.

    loss                  the arms' own loss                                 lower is better
    any loss of the task  `ndcg@10`, `zero-one`, `hamming`, ...              lower is better
    reward                the `reward` of the feedback, in [0, 1]            higher is better
    clicks, clicks@k      the share of the (first k) places clicked          higher is better
    reciprocal-rank       1 / place of the first click, 0 without one        higher is better

Intervals that hold at every look need bounded values. A loss that can pass 1 is divided by the largest value that it could
have had in this round: `hamming` by the labels, `error-set-size` by relevant times irrelevant labels, `absolute` by the
grades less one, `weighted` and `reject` by the highest cost. A loss is judged by the core itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from feedrank.learners import build
from feedrank.learners.spec import LOSSES, QUADRATIC_LOSSES, RANKINGS
from feedrank.service.errors import Unprocessable

CLICKS, RANK, REWARD = "clicks", "reciprocal-rank", "reward"
MISTAKE = "mistake"  # of label rankings by dual ascent: 1 if an irrelevant label stands above a relevant one
_CUTOFFS = (CLICKS, "ndcg", "precision")


@dataclass(frozen=True, slots=True)
class Measure:
    """`judge` is the spec of a learner that has this loss; {} for measures that are no losses."""

    name: str
    cutoff: int | None = None
    judge: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_loss(self) -> bool:
        """Whether lower is better."""
        return bool(self.judge)

    @property
    def text(self) -> str:
        """As it is written in a definition."""
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"


def read(given: Any, specs: Sequence[Mapping[str, Any]], method: str) -> Measure:
    """The measure of a definition; `specs` are those of the arms, which have one task."""
    task = specs[0]["task"]
    if given is None:
        given = "loss" if method == "split" else CLICKS
    if not isinstance(given, str):
        raise Unprocessable.at("/measure", "must be text, such as `loss`, `ndcg@10`, `clicks@3` or `reward`")
    name, _, digits = given.replace("_", "-").partition("@")
    if digits and not (digits.isascii() and digits.isdigit() and 0 < int(digits) <= 10**6):
        raise Unprocessable.at("/measure", "after @ stands a cutoff, a whole number from 1")
    cutoff = int(digits) if digits else None
    if name == REWARD and method == "interleave":
        raise Unprocessable.at("/measure", "a reward cannot be shared out among the arms of a drafted list")
    if name == "loss" and cutoff is None:
        return _own_loss(specs)
    known = {CLICKS, RANK} if task in RANKINGS else set()
    losses = dict.fromkeys(LOSSES[task] + QUADRATIC_LOSSES.get(task, ()))
    if task == "label-ranking":
        losses[MISTAKE] = None
    if name not in (known | {REWARD, *losses}):
        offered = ", ".join(["loss", *losses, REWARD, *sorted(known)])
        raise Unprocessable.at("/measure", f"is not a measure of {task}; there are {offered}")
    if cutoff is not None and name not in _CUTOFFS:
        raise Unprocessable.at("/measure", f"only {', '.join(_CUTOFFS)} take a cutoff")
    return Measure(name, cutoff, _judge(name, cutoff, specs) if name in losses else {})


def _own_loss(specs: Sequence[Mapping[str, Any]]) -> Measure:
    names = {_loss_of(spec) for spec in specs}
    if len(names) > 1:
        told = ", ".join(sorted(f"{name}@{cutoff}" if cutoff else name for name, cutoff in names))
        raise Unprocessable.at("/measure", f"the arms have losses of their own ({told}): name one for all")
    ((name, cutoff),) = names
    return Measure(name, cutoff, _judge(name, cutoff, specs))


def _loss_of(spec: Mapping[str, Any]) -> tuple[str, int | None]:
    """The name and cutoff of what a learner loses."""
    if spec["algorithm"] == "dual-ascent":
        return ("zero-one" if spec["task"] == "multiclass" else MISTAKE), None
    return spec.get("loss") or spec.get("measure") or "ndcg", spec.get("cutoff")


def _judge(name: str, cutoff: int | None, specs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    task = specs[0]["task"]
    if name == MISTAKE:
        return {"task": task, "algorithm": "dual-ascent"}
    judge: dict[str, Any] = {
        "task": task,
        "algorithm": "predtron" if name in LOSSES[task] else "quadratic-surrogate",
        "loss": name,
    }
    if cutoff is not None or name == "precision":
        judge["cutoff"] = cutoff
        if cutoff is None:
            raise Unprocessable.at("/measure", "precision needs a cutoff, such as `precision@10`")
    if task in ("binary", "ordinal"):
        judge["labels"] = specs[0]["labels"]
    for costs in ("weights", "reject_costs", "blocks"):
        given = [spec[costs] for spec in specs if spec.get("loss") == name and costs in spec]
        if given:
            if any(other != given[0] for other in given):
                raise Unprocessable.at(
                    "/measure", f"the arms differ in `{costs}`: their losses cannot be compared"
                )
            judge[costs] = given[0]
    return judge


def value(measure: Measure, served: Mapping[str, Any], feedback: Mapping[str, Any]) -> float | None:
    """The value of one round; None if the feedback does not tell.

    `served` holds the decision, `label`, `labels` or `ranking` (names, best first), the `items` of a list, and how many
    labels were `known`; `feedback` the truth and `reward`.
    """
    if measure.name == REWARD:
        return feedback.get("reward")
    if measure.is_loss:
        return _loss(measure, served, feedback)
    hits = clicked(feedback)
    if hits is None:
        return None
    places = [place for place, name in enumerate(served["ranking"], 1) if name in hits]
    if measure.name == RANK:
        return 1 / places[0] if places else 0.0
    within = min(measure.cutoff or len(served["ranking"]), len(served["ranking"]))
    return sum(place <= within for place in places) / within


def credited(measure: Measure, ranking: Sequence[str], feedback: Mapping[str, Any]) -> list[int] | None:
    """The places (from 0) of a drafted list that earn credit: the clicked ones among the first k, or the first click."""
    hits = clicked(feedback)
    if hits is None:
        return None
    places = [place for place, name in enumerate(ranking[: measure.cutoff]) if name in hits]
    return places[:1] if measure.name == RANK else places


def clicked(feedback: Mapping[str, Any]) -> set[str] | None:
    """The names that were clicked, or graded above 0; None if the feedback holds no truth."""
    for field_ in ("clicks", "labels"):
        if field_ in feedback:
            return set(feedback[field_])
    if "relevance" in feedback:
        return {name for name, grade in feedback["relevance"].items() if grade > 0}
    return {feedback["label"]} if "label" in feedback else None


def _loss(measure: Measure, served: Mapping[str, Any], feedback: Mapping[str, Any]) -> float | None:
    truth = {name: feedback[name] for name in ("label", "labels", "relevance", "clicks") if name in feedback}
    if not truth:
        return None
    spec = dict(measure.judge)
    decision = {key: served[key] for key in ("label", "labels", "ranking") if key in served}
    instance: dict[str, Any] = {"features": {}}
    if spec["task"] == "subset-ranking":
        # What was not shown stands behind what was.
        shown = set(served["ranking"])
        names = [*served["ranking"], *(name for name in served["items"] if name not in shown)]
        instance = {"items": [{"id": name, "features": {}} for name in names]}
    elif "labels" not in spec:
        spec["labels"] = [name for name in _names(decision) if name is not None]
    lost = build(spec).learn(instance, truth, served=decision).served_loss
    return None if lost is None else min(1.0, lost / _largest(spec, served, truth))


def _names(decision: Mapping[str, Any]) -> list[str | None]:
    ((field_, value_),) = decision.items()
    return [value_] if field_ == "label" else list(value_ or ())


def _largest(spec: Mapping[str, Any], served: Mapping[str, Any], truth: Mapping[str, Any]) -> float:
    """The largest loss that the round could have had."""
    loss = spec.get("loss")
    if loss == "absolute":
        return float(max(1, len(spec["labels"]) - 1))
    if loss in ("weighted", "reject"):
        costs: Mapping[str, float] = spec.get("weights" if loss == "weighted" else "reject_costs", {})
        return max([1.0, *costs.values()])
    if loss in ("hamming", "error-set-size") and spec["algorithm"] == "predtron":
        relevant: set[str] = set(truth["labels"])
        labels: int = max(served["known"], len(relevant.union(served["labels"])))
        return float(max(1, labels if loss == "hamming" else len(relevant) * (labels - len(relevant))))
    return 1.0
