"""What comes back from a learner: predictions and outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from .forms import Form
from .json_types import Json

Served = Mapping[str, object]  # a decision that a user saw, as `Prediction.served` gives it


@dataclass(slots=True)
class Prediction:
    """A decision by name. `ranking` holds pairs of name and score, best first.

    `decision` stands beside it where the ranking does not say it all: the label, or the list of labels; None where the
    learner `abstained`. `known` features of the instance were learned from, `unknown` ones not; None for items.
    """

    form: Form
    ranking: list[tuple[str, float]]
    margin: float | None
    decision: Json = None
    abstained: bool = False
    objective: float | None = None
    contributions: list[dict[str, float]] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    known: int | None = None
    unknown: int | None = None
    draw: dict[str, Json] | None = None  # of a choice: what is kept of how it was drawn

    @property
    def label(self) -> str | None:
        """The decision, where it is one label."""
        return self.decision if isinstance(self.decision, str) else None

    @property
    def labels(self) -> list[str] | None:
        """The decision, where it is a set of labels."""
        return self.decision if isinstance(self.decision, list) else None

    def probability_of(self) -> dict[str, float]:
        """The probability of each name of the ranking, where the learner estimates or draws by them."""
        return {name: p for (name, _), p in zip(self.ranking, self.probabilities, strict=True)}

    def to_json(self, ranking: Any = None) -> dict[str, Json]:
        """The fields of the contract's reply that the learner knows; `ranking` stands for the entries, if it is given."""
        if ranking is None:
            ranking = self._entries()
        reply: dict[str, Json] = {
            "ranking": ranking,
            **self.form.decision.reply(self.decision),
            "margin": self.margin,
            "abstained": self.abstained,
        }
        if self.known is not None:
            reply["known"], reply["unknown"] = self.known, self.unknown
        if self.objective is not None:
            reply["objective"] = self.objective
        return reply

    def _entries(self) -> list[dict[str, Json]]:
        key = self.form.entry
        entries: list[dict[str, Json]] = [{key: name, "score": score} for name, score in self.ranking]
        if self.contributions:
            for entry, contributions in zip(entries, self.contributions, strict=False):
                entry["contributions"] = contributions
        if self.probabilities:
            for entry, probability in zip(entries, self.probabilities, strict=False):
                entry["probability"] = probability
        return entries

    def served(self) -> dict[str, Json]:
        """What the user saw, as `Learner.learn` takes it back to judge it."""
        shown = self.form.decision.shown(self.decision, self.ranking)
        return shown if self.draw is None else {**shown, "draw": self.draw}


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
        """One more round, here."""
        after = self.after(loss)
        self.rounds, self.mistakes, self.cumulative_loss = after.rounds, after.mistakes, after.cumulative_loss
        self.updates, self.recent = self.updates + updated, after.recent

    def after(self, loss: float) -> "Progress":
        """The progress after one more round, whose update is not counted yet. This one stays as it is."""
        mistake = loss > 0
        recent = self.recent[-(WINDOW - 1) :]
        recent.append(loss)
        return Progress(
            self.rounds + 1,
            self.mistakes + mistake,
            self.updates,
            self.cumulative_loss + loss if mistake else self.cumulative_loss,
            recent,
        )

    def to_json(self) -> dict[str, Json]:
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


class ExpertRow(TypedDict):
    """What `GET` shows of one expert of a pool."""

    name: str
    weight: float
    mean_loss: float | None
