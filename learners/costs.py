"""What an event, or a prediction, will cost, before it is accepted: see `registry.Cost`.

The estimates of the algorithms are upper ends of what was measured (docs/security.md), so that what is refused is long
for sure, and what is accepted is at most some times as long as it says.
"""

from collections.abc import Iterable

from . import registry
from .instances import FeatureVector, ItemList
from .learner import Learner
from .registry import Cost, Size

__all__ = ["Cost", "of", "of_labels", "of_size"]


# What the judgement of one click takes: something, and something an item.
CLICK, CLICKED_ITEM = 1e-4, 1.5e-7
KEPT = 512  # estimates that a learner keeps: events are much alike, and each is asked about several times


def of(
    learner: Learner, parsed: FeatureVector | ItemList, labels: Iterable[str] = (), clicks: int = 0
) -> Cost:
    """One event on this instance whose truth names these labels or has so many clicks; a prediction costs no more."""
    if isinstance(parsed, ItemList):
        return of_size(learner, len(parsed.ids), len(parsed.names), labels, clicks)
    return of_size(learner, 0, len(parsed), labels, clicks)


def of_size(learner: Learner, items: int, features: int, labels: Iterable[str] = (), clicks: int = 0) -> Cost:
    """The same of an instance that is not read yet."""
    joined = learner.labels.index
    fresh = 0 if learner.form.items else sum([name not in joined for name in labels])
    size = (len(joined) + fresh, items, features, len(learner.features), learner.model.examples())
    cost = learner.costs.get(size)
    if cost is None:
        if len(learner.costs) >= KEPT:
            learner.costs.clear()
        cost = learner.costs[size] = registry.algorithm(learner.spec["algorithm"]).cost(
            learner.spec, Size(*size)
        )
    if learner.spec.get("examination") is None:
        return cost
    # With propensities every click is a judgement of its own.
    return Cost(cost.seconds + clicks * (CLICK + CLICKED_ITEM * items), cost.bytes)


def of_labels(learner: Learner) -> Cost:
    """The least that an event of a fresh learner costs: what its spec alone shows."""
    size = Size(len(learner.labels), 0 if not learner.form.items else 1, 1)
    return registry.algorithm(learner.spec["algorithm"]).cost(learner.spec, size)
