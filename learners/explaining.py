"""What each feature adds to the scores of a prediction, and which features have the largest weights for a label."""

from typing import TYPE_CHECKING

import numpy as np

from . import kernel
from .errors import OptionError, pointer
from .instances import FeatureVector, Floats, Ints, ItemList, Matrix, Vector
from .transforms import BIAS
from .weights.base import X

if TYPE_CHECKING:
    from .learner import Learner

# Weights looked at in one go: what is copied stays within some megabytes, whatever the size of the learner.
CELLS = 2**20


def explain(
    learner: "Learner", parsed: FeatureVector | ItemList, x: X, order: list[int], loss: str | None
) -> list[dict[str, float]]:
    """The contributions to the scores of the labels or items of `order`; OptionError where a score is no such sum."""
    model = learner.model
    parts = model.contributions(x, loss)
    if parts is None:
        raise OptionError("with a kernel, a score is not a sum over features", pointer("explain"))
    first, width = learner.features.vector
    names = [shown(learner.features[row], row - first, width) for row in x.rows.tolist()]
    if model.extra_names:
        names += model.extra_names
    elif len(parts) > len(names) and not isinstance(parsed, ItemList):
        # Some weights score features that were never seen too; they stand behind the known ones.
        names += [name for name in dict.fromkeys(parsed.names) if name not in learner.features]
        names += [f"vector[{i}]" for i in range(0 if width else parsed.width)]
    if model.view is not None:
        parts = kernel.times(parts, model.view.T)
    columns = parts if isinstance(x, Matrix) else parts.T
    explained: list[dict[str, float]] = []
    for i in order:
        entry: dict[str, float] = {}
        for name, part in zip(names, columns[i].tolist(), strict=False):
            if part:
                entry[name] = entry.get(name, 0.0) + part
        explained.append(entry)
    return explained


def shown(name: str, part: int, width: int) -> str:
    """The name of a feature in a reply; `part` is its place among the parts of the vector, if it is one of them."""
    if 0 <= part < width:
        return f"vector[{part}]"
    return "bias" if name == BIAS else name


def strongest(learner: "Learner", label: str | None, count: int) -> list[tuple[str, float]]:
    """At most `count` pairs (feature, weight) by falling |weight|, ties by joining; weights of 0 are left out.

    A weight is what a feature of value 1, after weighting and scaling, adds to the score of `label` (None in subset
    ranking, where all items share one column) or, where features are scaled within a list, what the highest value of the
    list adds. OptionError where there is no such label, or no weight of a feature.
    """
    if (label is None) != learner.form.items:
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
    first, width = learner.features.vector
    return [
        (shown(learner.features[row], row - first, width), weight)
        for row, weight in zip(rows.tolist(), weights.tolist(), strict=True)
        if weight
    ]


def _column(learner: "Learner", label: str | None, rows: Ints) -> Floats:
    shared = learner.model.item_weights(rows)
    if shared is not None:
        return shared
    x = Vector(rows, np.ones(len(rows))) if label is not None else Matrix(rows, np.ones((1, len(rows))))
    parts = learner.model.contributions(x)
    if parts is None:
        raise OptionError("with a kernel, a score is not a sum over features", pointer("label"))
    if label is None:
        return np.asarray(parts[0])
    at = learner.labels.index[label]
    parts = parts[: len(rows)]
    view = learner.model.view
    return np.asarray(parts[:, at] if view is None else kernel.times(parts, view[at]))
