"""The losses of the core as measures of experiments: each divided by its largest possible value, so at most 1.

    hamming           by the labels known          error-set-size   by relevant times irrelevant labels
    absolute          by the grades less one       weighted, reject, matrix by the highest cost

None where there is nothing to judge: an abstention without REJECT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from feedrank.learners.instances import Floats
from feedrank.learners.losses import rankings
from feedrank.service.contract.json_types import View

MISTAKE = "mistake"  # of label rankings by dual ascent: 1 if an irrelevant label stands above a relevant one


@dataclass(frozen=True, slots=True)
class LossMeasure:
    """What a loss needs beside its name: the labels (ordinal), what labels cost, and blocks of labels."""

    task: str
    name: str
    cutoff: int | None = None
    labels: Sequence[str] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    blocks: Sequence[Sequence[str]] = ()
    matrix: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def block(self, label: str) -> str:
        """A name for the label's block; a label that no block names is one of its own."""
        return next((block[0] for block in self.blocks if label in block), label)


def judge(loss: LossMeasure, served: View, feedback: View) -> float | None:
    """L in [0, 1] of `label`, `labels` or `ranking`; `items` are the ids of a list, `known` counts the labels."""
    if "ranking" in served:
        return _of_order(loss, served, feedback)
    if "labels" in served:
        chosen = served["labels"]
        return (
            None if chosen is None else _of_set(loss, set(chosen), set(feedback["labels"]), served["known"])
        )
    return _of_label(loss, served["label"], feedback["label"])


def _of_label(loss: LossMeasure, sigma: str | None, y: str) -> float | None:
    most, cost = max([1.0, *loss.costs.values()]), loss.costs.get(y, 1.0)
    if sigma is None:
        return cost / most if loss.name == "reject" else None
    if loss.name == "absolute":
        steps = abs(loss.labels.index(sigma) - loss.labels.index(y))
        return steps / max(1, len(loss.labels) - 1)
    if loss.name == "block-zero-one":
        return float(loss.block(sigma) != loss.block(y))
    wrong = float(sigma != y)
    if loss.name == "matrix":
        highest = max([1.0, *(each for row in loss.matrix.values() for each in row.values())])
        return loss.matrix.get(y, {}).get(sigma, wrong) / highest
    return wrong * cost / most if loss.name == "weighted" else wrong / most


def _of_set(loss: LossMeasure, sigma: set[str], y: set[str], known: int) -> float:
    a, b, c = len(sigma & y), len(sigma - y), len(y - sigma)
    labels = max(known, a + b + c)
    match loss.name:
        case "hamming":
            return (b + c) / max(1, labels)
        case "error-set-size":
            return b * c / max(1, len(y) * (labels - len(y)))
        case "f-score":
            return (b + c) / (2 * a + b + c) if a + b + c else 0.0
        case "jaccard":
            return (b + c) / (a + b + c) if a + b + c else 0.0
        case "precision":
            k = loss.cutoff or 1
            return (min(k, len(y)) - min(k, a)) / k
        case "block-zero-one":
            return float({loss.block(label) for label in sigma} != {loss.block(label) for label in y})
        case _:
            return float(b + c > 0)


def _of_order(loss: LossMeasure, served: View, feedback: View) -> float:
    """The order is that of the served list, so its own indices are 0, 1, ...; what was not shown stands behind it."""
    shown = list(served["ranking"])
    grades = _grades(feedback)
    there = set(shown)
    shown += [name for name in (*served["items"], *grades) if name not in there]
    shown = list(dict.fromkeys(shown))
    return _ORDERS[loss.name](np.array([grades.get(name, 0.0) for name in shown]), loss.cutoff)


def _grades(feedback: View) -> dict[str, float]:
    if "relevance" in feedback:
        return {name: float(grade) for name, grade in feedback["relevance"].items()}
    return dict.fromkeys(feedback.get("labels", [feedback.get("label")]), 1.0)


def _mistake(y: Floats, cutoff: int | None) -> float:
    relevant = y > 0
    return float(not relevant[: np.count_nonzero(relevant)].all())


_ORDERS: dict[str, Callable[[Floats, int | None], float]] = {
    "ndcg": lambda y, k: rankings.ndcg_loss(np.arange(len(y)), y, k),
    "ap": lambda y, k: rankings.ap_loss(np.arange(len(y)), y),
    "precision": lambda y, k: rankings.precision_loss(np.arange(len(y)), y, k or len(y)),
    "pairwise-disagreement": lambda y, k: rankings.pairwise_disagreement_loss(np.arange(len(y)), y),
    MISTAKE: _mistake,
}
