"""What a learner decided just before an event, and what other decisions would have lost on its truth: from inside `learn`.

Whoever counts what decisions are worth needs the decision that `predict` would have given, with its stated probability. A
round has scored its instance anyway, so that this costs no prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import kernel
from .forms import Form
from .json_types import Json
from .model import Decision
from .results import Served
from .tasks.task import Y

if TYPE_CHECKING:
    from .learner import Learner

NamedLabels = list[tuple[str, float | None]]  # labels, with their stated probabilities


@dataclass(slots=True)
class DecisionBefore:
    """Given to `learn`, which fills it: the decision as `named`, None if it abstained, and the `losses` of `others`."""

    others: Sequence[Served] = ()
    named: NamedLabels | None = None
    losses: list[float] = field(default_factory=list)

    def take_short(self, learner: Learner, short: tuple[Any, ...], y: Y) -> None:
        """The decision, from what a whole round predicts, and what others lose."""
        form, ranking, label = learner.form, short[0], short[2]
        if self.others:
            self._lose(learner, y)
        if label is not None and ranking[0][0] == label:
            self.named = [(label, short[5][0] if len(short) > 5 else None)]
        elif label is not None or form.ranks:
            self.named = named(form, label, [name for name, _ in ranking], short[5] if len(short) > 5 else [])

    def take(self, learner: Learner, decision: Decision | None, y: Y) -> None:
        """The same of the decision of the pieces; None before any label has joined."""
        form, names = learner.form, learner.labels
        self._lose(learner, y)
        if decision is None:
            self.named = None if form.decision.empty() is None and not form.ranks else []
            return
        label = form.decision.name(decision.sigma, names)
        if label is None and not form.ranks:
            return
        if form.ranks:
            order: list[int] = decision.sigma[:1].tolist()
        else:
            view, t = learner.model.view, decision.scores
            order, _ = kernel.best(t if view is None else kernel.times(view, t), form.decision.looked)
        p = decision.probabilities
        self.named = named(form, label, [names[i] for i in order], [] if p is None else p[order].tolist())

    def _lose(self, learner: Learner, y: Y) -> None:
        seen = map(learner.seen, self.others)
        self.losses = [0.0 if sigma is None else float(learner.model.loss(sigma, y)) for sigma in seen]


def named(form: Form, decision: Json, ranking: Sequence[str], probabilities: Sequence[float]) -> NamedLabels:
    """The labels of a decision that did not abstain: of an order the first one; a probability where it is stated."""
    if form.ranks:
        labels: Sequence[Any] = ranking[:1]
    else:
        labels = decision if isinstance(decision, list) else [decision]
    stated = dict(zip(ranking, probabilities, strict=True)) if probabilities else {}
    return [(label, stated.get(label)) for label in labels]
