"""What events would add to a learner."""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.learners import truths
from feedrank.learners.learner import Learner
from feedrank.service.contract.events import Event


def new_names(learner: Learner, events: Sequence[Event]) -> tuple[set[str], set[object]]:
    """Labels and features in events that a learner has not."""
    named_truths = [event.truth for event in events if event.truth and not learner.form.items]
    named = [truths.named(learner.meant(truth)) for truth in named_truths]
    parsed = [event.parsed for event in events if event.parsed is not None]
    labels = {name for names in named for name in names}.difference(learner.labels)
    features: set[object] = {
        name for instance in parsed for name in instance.names if name not in learner.features
    }
    if not learner.features.vector[1]:  # its parts have numbers for names
        features.update(range(max((instance.width for instance in parsed), default=0)))
    return labels, features
