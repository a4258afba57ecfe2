"""What an experiment compares, one number in [0, 1] a round.

    loss                  the arms' own loss                                 lower is better
    any loss of the task  `ndcg@10`, `zero-one`, `hamming`, ...              lower is better
    reward                the `reward` of the feedback, in [0, 1]            higher is better
    clicks, clicks@k      the share of the (first k) places clicked          higher is better
    reciprocal-rank       1 / place of the first click, 0 without one        higher is better

Intervals that hold at every look need bounded values: `judges` says how losses that can pass 1 are scaled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feedrank.learners.spec import LOSSES, QUADRATIC_LOSSES, RANKINGS
from feedrank.service.errors import Unprocessable
from feedrank.service.experiments.judges import MISTAKE, Loss, judge

CLICKS, RANK, REWARD = "clicks", "reciprocal-rank", "reward"
_CUTOFFS = (CLICKS, "ndcg", "precision")


@dataclass(frozen=True, slots=True)
class Measure:
    """`loss` for measures that are one."""

    name: str
    cutoff: int | None = None
    loss: Loss | None = None

    @property
    def is_loss(self) -> bool:
        """Whether lower is better."""
        return self.loss is not None

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
    return Measure(name, cutoff, _loss(name, cutoff, specs) if name in losses else None)


def _own_loss(specs: Sequence[Mapping[str, Any]]) -> Measure:
    names = {_loss_of(spec) for spec in specs}
    if len(names) > 1:
        told = ", ".join(sorted(f"{name}@{cutoff}" if cutoff else name for name, cutoff in names))
        raise Unprocessable.at("/measure", f"the arms have losses of their own ({told}): name one for all")
    ((name, cutoff),) = names
    return Measure(name, cutoff, _loss(name, cutoff, specs))


def _loss_of(spec: Mapping[str, Any]) -> tuple[str, int | None]:
    """The name and cutoff of what a learner loses."""
    if spec["algorithm"] == "dual-ascent":
        return ("zero-one" if spec["task"] == "multiclass" else MISTAKE), None
    return spec.get("loss") or spec.get("measure") or "ndcg", spec.get("cutoff")


def _loss(name: str, cutoff: int | None, specs: Sequence[Mapping[str, Any]]) -> Loss:
    if name == "precision" and cutoff is None:
        raise Unprocessable.at("/measure", "precision needs a cutoff, such as `precision@10`")
    task = specs[0]["task"]
    costs = {"weighted": "weights", "reject": "reject_costs", "block-zero-one": "blocks"}.get(name, "")
    given = [spec[costs] for spec in specs if costs in spec]
    if any(other != given[0] for other in given):
        raise Unprocessable.at("/measure", f"the arms differ in `{costs}`: their losses cannot be compared")
    if name == "block-zero-one":
        if not given:
            raise Unprocessable.at("/measure", "no arm says what the blocks are")
        return Loss(task, name, blocks=given[0])
    labels = specs[0]["labels"] if task == "ordinal" else ()
    return Loss(task, name, cutoff, labels, given[0] if given else {})


def value(measure: Measure, served: Mapping[str, Any], feedback: Mapping[str, Any]) -> float | None:
    """The value of one round; None if the feedback does not tell.

    `served` holds the decision, `label`, `labels` or `ranking` (names, best first), the `items` of a list, and how many
    labels were `known`; `feedback` the truth and `reward`.
    """
    if measure.name == REWARD:
        return feedback.get("reward")
    if measure.loss is not None:
        told = any(name in feedback for name in ("label", "labels", "relevance", "clicks"))
        return judge(measure.loss, served, feedback) if told else None
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
