"""What each feature adds to each score of a prediction, by name."""

from typing import TYPE_CHECKING

from . import kernel
from .errors import OptionError, pointer
from .instances import FeatureVector, ItemList, Matrix
from .transforms import BIAS
from .weights.base import X

if TYPE_CHECKING:
    from .learner import Learner


def explain(
    learner: "Learner", parsed: FeatureVector | ItemList, x: X, order: list[int], loss: str | None
) -> list[dict[str, float]]:
    """The contributions to the scores of the labels or items of `order`; OptionError where a score is no such sum."""
    model = learner.model
    parts = model.contributions(x, loss)
    if parts is None:
        raise OptionError("a score of a kernel is not a sum over features", pointer("explain"))
    names = ["bias" if (name := learner.features[row]) == BIAS else name for row in x.rows.tolist()]
    if model.extra_names:
        names += model.extra_names
    elif len(parts) > len(names) and not isinstance(parsed, ItemList):
        # Entropic weights score features that were never seen too; they stand behind the known ones.
        names += [name for name in parsed.names if name not in learner.features]
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
