"""What comes back from a learner: predictions and outcomes."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Prediction:
    """A decision by name. `ranking` holds pairs of name and score, best first.

    `label` (binary, multiclass, ordinal) or `labels` (multilabel) is the decision beside it, None where it `abstained`.
    """

    task: str
    ranking: list[tuple[str, float]]
    margin: float | None
    label: str | None = None
    labels: list[str] | None = None
    abstained: bool = False
    objective: float | None = None
    contributions: list[dict[str, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The fields of the contract's reply that the learner knows."""
        key = "id" if self.task == "subset-ranking" else "label"
        ranking: list[dict[str, Any]] = [{key: name, "score": score} for name, score in self.ranking]
        for entry, contributions in zip(ranking, self.contributions, strict=False):
            entry["contributions"] = contributions
        reply: dict[str, Any] = {"ranking": ranking}
        if self.task == "multilabel":
            reply["labels"] = self.labels
        elif self.task not in ("label-ranking", "subset-ranking"):
            reply["label"] = self.label
        reply["margin"] = self.margin
        reply["abstained"] = self.abstained
        if self.objective is not None:
            reply["objective"] = self.objective
        return reply

    def served(self) -> dict[str, Any]:
        """What the user saw, as `Learner.learn` takes it back to judge it."""
        if self.task == "multilabel":
            return {"labels": self.labels}
        if self.task in ("label-ranking", "subset-ranking"):
            return {"ranking": [name for name, _ in self.ranking]}
        return {"label": self.label}


@dataclass(slots=True)
class Outcome:
    """What one piece of feedback did.

    `loss` is that of the weights just before it, `served_loss` that of what was served.
    """

    loss: float
    mistake: bool
    updated: bool
    served_loss: float | None = None


@dataclass(slots=True)
class Progress:
    """Counts over all rounds learned, and the losses of the last `WINDOW` of them."""

    rounds: int = 0
    mistakes: int = 0
    updates: int = 0
    cumulative_loss: float = 0.0
    recent: list[float] = field(default_factory=list)

    def count(self, loss: float, updated: bool) -> None:
        """One more round."""
        if len(self.recent) < WINDOW:
            self.recent.append(loss)
        else:
            self.recent[self.rounds % WINDOW] = loss
        self.rounds += 1
        self.updates += updated
        if loss > 0:
            self.mistakes += 1
            self.cumulative_loss += loss

    def to_json(self) -> dict[str, Any]:
        """As in the contract; means are None before the first round."""
        return {
            "rounds": self.rounds,
            "mistakes": self.mistakes,
            "updates": self.updates,
            "cumulative_loss": self.cumulative_loss,
            "mean_loss": self.cumulative_loss / self.rounds if self.rounds else None,
            "recent_loss": sum(self.recent) / len(self.recent) if self.recent else None,
        }


WINDOW = 100
