"""What a learner would have decided just before each event, counted against the event's truth (reliability.py)."""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.learners import reading, truths
from feedrank.learners.inference.reliability import Reliability
from feedrank.learners.learner import Learner
from feedrank.learners.results import Prediction
from feedrank.service.contract.events import Event
from feedrank.service.contract.json_types import JSON

TOP = 64  # labels of a set whose probabilities are looked at


def decided(learner: Learner, event: Event) -> tuple[Prediction | None, object]:
    """The decision on an event's instance, None of a list, and the instance to learn from: read once for both."""
    instance: object = event.instance if event.parsed is None else event.parsed
    if learner.form.items or not event.truth:
        return None, instance
    if event.parsed is None:
        instance = reading.instance(learner.spec, instance)
    single = learner.form.decision.single or learner.form.ranks
    return learner.predict(instance, top=1 if single else TOP), instance


def named(learner: Learner, prediction: Prediction) -> list[tuple[str, float | None]] | None:
    """The labels of a decision with their probabilities; None if it abstained."""
    if prediction.abstained:
        return None
    ranking, probabilities = prediction.ranking, prediction.probabilities
    if learner.form.ranks:
        labels = [name for name, _ in ranking[:1]]
    else:
        labels = prediction.labels or [] if prediction.label is None else [prediction.label]
    if not probabilities:
        return [(label, None) for label in labels]
    stated = {name: p for (name, _), p in zip(ranking, probabilities, strict=True)}
    return [(label, stated.get(label)) for label in labels]


def judge(
    reliability: Reliability, learner: Learner, prediction: Prediction | None, truth: JSON, loss: float
) -> None:
    """Count what was decided before the event, which is learned by now."""
    if prediction is None:
        return
    relevant = truths.relevant(truth)
    reliability.count(named(learner, prediction), relevant, loss)
    if learner.form.ranks or (not relevant and learner.form.decision.single):
        return
    field = learner.form.decision.field

    def loss_of(labels: Sequence[str]) -> float:
        shown = labels[0] if learner.form.decision.single else list(labels)
        return learner.loss_of({field: shown}, truth)

    reliability.count_baselines(relevant, not learner.form.decision.single, loss_of)
