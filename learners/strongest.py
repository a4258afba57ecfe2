"""Which features speak loudest for a label, and which against it: the largest |W_jr| of one column of the weights."""

import numpy as np

from .errors import OptionError, pointer
from .instances import Floats, Ints, Matrix, Vector
from .kernel import times
from .learner import Learner
from .transforms import BIAS

# Weights looked at in one go: what is copied stays within some megabytes, whatever the size of the learner.
CELLS = 2**20


def strongest(learner: Learner, label: str | None, count: int) -> list[tuple[str, float]]:
    """At most `count` pairs (feature, weight) by falling |weight|, ties by joining; weights of 0 are left out.

    A weight is what a feature of value 1, after weighting and scaling, adds to the score of `label` (None in subset
    ranking, where all items share one column) or, where features are scaled within a list, what the highest value of the
    list adds. OptionError where there is no such label, or no weight of a feature.
    """
    if (label is None) != (learner.kind == "items"):
        kind = "needs one of the learner's labels" if label is None else "items have one ranker in common"
        raise OptionError(kind, pointer("label"))
    if label is not None and label not in learner.labels:
        raise OptionError("is not a label of this learner", pointer("label"))
    total = len(learner.features)
    # Of some models, what is asked decides about the weights: they cannot be asked piece by piece.
    step = max(1, CELLS // max(1, len(learner.labels))) if learner.model.piecewise else total
    rows, weights = np.empty(0, dtype=np.intp), np.empty(0)
    for start in range(0, total, max(step, 1)):
        chunk = np.arange(start, min(start + step, total))
        rows = np.concatenate((rows, chunk))
        weights = np.concatenate((weights, _column(learner, label, chunk)))
        best = np.argsort(-np.abs(weights), kind="stable")[:count]
        rows, weights = rows[best], weights[best]
    named = (
        (learner.features[row], weight) for row, weight in zip(rows.tolist(), weights.tolist(), strict=True)
    )
    return [("bias" if name == BIAS else name, weight) for name, weight in named if weight]


def _column(learner: Learner, label: str | None, rows: Ints) -> Floats:
    shared = learner.model.item_weights(rows)
    if shared is not None:
        return shared
    x = Vector(rows, np.ones(len(rows))) if label is not None else Matrix(rows, np.ones((1, len(rows))))
    parts = learner.model.contributions(x)
    if parts is None:
        raise OptionError("a score of a kernel is not a sum over features", pointer("label"))
    if label is None:
        return np.asarray(parts[0])
    at = learner.labels.index[label]
    parts = parts[: len(rows)]
    view = learner.model.view
    return np.asarray(parts[:, at] if view is None else times(parts, view[at]))
