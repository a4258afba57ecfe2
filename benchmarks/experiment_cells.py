"""The kinds of experiments that `experiment_http.py` plays: method, measure, answers, users, and when they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LABELS = ["no", "yes"]
KINDS: dict[str, dict[str, Any]] = {
    "labels": {"task": "multiclass", "algorithm": "dual-ascent", "labels": LABELS},
    "lists": {"task": "subset-ranking", "algorithm": "listnet"},
    "label lists": {"task": "label-ranking", "algorithm": "predtron"},
}


@dataclass(frozen=True)
class Cell:
    """A kind of experiment. `answers`: how users reply; `units`: who they are; `when`: how soon they do."""

    name: str
    method: str
    kind: str
    measure: str | None
    answers: str
    arms: int = 2
    units: str = "new"
    when: str = "at once"
    learns: bool = True
    retracts: int = 0
    effect: float = 0.0

    @property
    def lower(self) -> bool:
        """Whether a loss is measured."""
        return self.measure in ("zero-one", "ndcg")


CELLS = (
    Cell("labels", "split", "labels", "zero-one", "labels"),
    Cell("labels-retracted", "split", "labels", "zero-one", "labels", 3, "heavy", learns=False, retracts=8),
    Cell("labels-late", "split", "labels", "zero-one", "labels", when="late"),
    Cell("labels-window", "split", "labels", "zero-one", "labels", 2, "heavy", "window"),
    Cell("rewards-history", "split", "labels", "reward", "reward", 2, "heavy"),
    Cell("clicks", "split", "lists", None, "clicks", 2, "drift", retracts=4),
    Cell("grades", "split", "lists", "ndcg", "grades", 5, learns=False),
    Cell("drafts-clicks", "interleave", "lists", "clicks", "clicks", 2, "heavy", retracts=4),
    Cell("drafts-first-three", "interleave", "lists", "clicks@3", "clicks", 5, learns=False),
    Cell(
        "drafts-window",
        "interleave",
        "lists",
        "reciprocal-rank",
        "clicks",
        3,
        "drift",
        "window",
        learns=False,
    ),
    Cell("drafts-grades", "interleave", "lists", "ndcg", "grades", 4, "heavy"),
    Cell("drafts-labels", "interleave", "label lists", "clicks", "labels", 2, "heavy", learns=False),
    Cell("unequal", "split", "labels", "zero-one", "labels", effect=0.05, learns=False),
)


@dataclass(frozen=True)
class PerCell:
    """A kind of experiment with `per`."""

    name: str
    value: str
    arms: int = 2
    cap: float | None = None
    method: str = "split, per"
    units: str = "come back"
    effect: float = 0.0


PER_CELLS = (
    PerCell("per-mean", "mean"),
    PerCell("per-total", "total", 3, cap=4.0),
    PerCell("per-any", "any"),
    PerCell("per-returns", "returns"),
)
