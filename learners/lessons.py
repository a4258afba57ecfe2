"""What one event teaches: what was scored, the truth as an array, and of a list, with clicks, only the items that count.

Clicks on a served list become judgements of its items by one of two rules against position bias. `order` is the served
list as item indices, best first; `clicked` are item indices, in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .decided import DecisionBefore
from .instances import FeatureVector, Floats, Ints, ItemList, Matrix
from .model import Decision
from .results import Served
from .transforms import UnknownFeatures
from .truths import Truth
from .unknown_labels import Before, loss_before
from .weights.base import X

if TYPE_CHECKING:
    from .learner import Learner

NOTHING = Decision(None, np.empty(0))


@dataclass(slots=True)
class Look:
    """An instance as the weights see it: x on the known features, the others, and the decision."""

    x: X
    unknown: UnknownFeatures
    decision: Decision


@dataclass(slots=True)
class Lesson:
    """What one event teaches: y, the served decision `seen`, and the clicks that count (see `Model.learn`)."""

    look: Look
    y: object = None
    seen: object = None
    clicked: Floats | None = None
    teaches: bool = True


def skip_above(
    order: Ints, clicked: Sequence[int], below: int = 0, shown: int | None = None
) -> tuple[Ints, Floats]:
    """The items that count, ascending, and their grades: 1 if clicked, 0 if passed over before the last click.

    What stood further below may never have been seen, so it says nothing and is left out, but for the first `below` items
    of those that were shown: who clicks the first item chose it rather than the next.
    """
    grades = np.zeros(len(order))
    grades[list(clicked)] = 1.0
    hits = np.flatnonzero(grades[order])
    last = int(hits[-1]) + 1 if hits.size else 0
    seen = max(last, min(last + below, len(order) if shown is None else shown))
    kept = np.sort(order[:seen]) if hits.size else order[:0]
    return kept, grades[kept]


def inverse_propensities(order: Ints, clicked: Sequence[int], examination: Sequence[float]) -> Floats:
    """1 / p(position) for every clicked item, 0 for the others; `examination` is p at the positions 1, 2, ...

    Positions beyond the curve take its last value. If a click is an examined item's relevance, the
    expectation of this weight is the relevance, wherever the item stood.
    """
    curve = np.asarray(examination, dtype=np.float64)
    chance = np.empty(len(order))
    chance[order] = curve[np.minimum(np.arange(len(order)), len(curve) - 1)]
    weights = np.zeros(len(order))
    items = list(clicked)
    weights[items] = 1.0 / chance[items]
    return weights


def label_lesson(
    learner: "Learner",
    parsed: FeatureVector,
    truth: Truth,
    served: Served | None,
    judged: DecisionBefore | None,
) -> Lesson:
    """A round on the labels. Those that the truth names join first; the loss is that of the decision without them."""
    labels, model = learner.labels, learner.model
    fresh = not truth.grades.keys() <= labels.index.keys()
    prior = learner.look(parsed).decision if fresh and len(labels) else None
    if fresh:
        learner.join(truth.grades)
    known = len(labels) > 0
    teaches = known or model.learns_unlabelled
    look = learner.look(parsed) if teaches else Look(*learner.x(parsed), NOTHING)
    y = learner.form.decision.encode(truth, labels.index)
    if judged is not None:
        judged.take(learner, prior if fresh else look.decision if known else None, y)
    if not teaches:
        return Lesson(look, teaches=False)
    seen = None if served is None else learner.seen(served)
    if fresh:
        look.decision.before = Before(prior, loss_before(model, prior, y))
    return Lesson(look, y, seen)


def list_lesson(
    learner: "Learner", look: Look, parsed: ItemList, truth: Truth, served: Served | None
) -> Lesson:
    """A round on a list: with clicks, only the items that count."""
    if truth.listed is not None and served is None:
        return Lesson(look, truth.listed)
    index, decision = parsed.places, learner.form.decision
    seen = None if served is None else decision.sigma(served, index, False)
    if truth.clicks is None:
        y = decision.encode(truth, index) if truth.listed is None else truth.listed
        return Lesson(look, y, seen)
    order = look.decision.sigma if seen is None else seen
    items = [index[name] for name in truth.clicks]
    if not items:
        return Lesson(Look(look.x, look.unknown, NOTHING), teaches=False)
    examination = learner.spec["examination"]
    if examination is not None:
        clicked = inverse_propensities(order, items, examination)
        return Lesson(look, (clicked > 0).astype(np.float64), seen, clicked)
    shown = None if served is None else len(served["ranking"])  # type: ignore[arg-type]
    kept, y = skip_above(order, items, learner.spec["below"], shown)
    X, unknown = look.x, look.unknown
    assert isinstance(X, Matrix)
    X = Matrix(X.rows, X.values[kept], X.unseen[kept] if len(X.unseen) else X.unseen, served=(X.values, kept))
    if seen is not None:
        place = np.full(len(index), -1)
        place[kept] = np.arange(len(kept))
        seen = place[seen]
        seen = seen[seen >= 0]
    if unknown.names:
        unknown = UnknownFeatures(unknown.names, unknown.values[kept], unknown.values, unknown.late)
    return Lesson(Look(X, unknown, learner.model.decide(X)), y, seen)
