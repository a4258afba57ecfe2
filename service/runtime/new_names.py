"""What events would add to a learner."""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.learners import truths
from feedrank.learners.learner import Learner
from feedrank.service.contract.messages import Event


def new_names(learner: Learner, events: Sequence[Event]) -> tuple[set[str], set[object]]:
    """Labels and features in events that a learner has not."""
    named_truths = [event.truth for event in events if event.truth and not learner.form.items]
    named = [truths.named(learner.meant(truth)) for truth in named_truths]
    parsed = [event.parsed.names for event in events if event.parsed is not None]
    labels = {name for names in named for name in names}.difference(learner.labels)
    return labels, {name for names in parsed for name in names if name not in learner.features}
