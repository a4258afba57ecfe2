"""Estimators for scikit-learn: `fit` makes one pass over the data, `partial_fit` continues; all of its checks pass.

model = FeedrankClassifier().fit(X, y)
model.partial_fit(more_X, more_y)
open("model.feedrank", "wb").write(model.snapshot())        # for PUT /v1/learners/{name}/snapshot
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from feedrank import learners
from feedrank.learners import Prediction, forms

from .portable import LabelNames, Portable

Array = npt.NDArray[Any]
CLASS, SET, RANKING = forms.MULTICLASS.name, forms.MULTILABEL.name, forms.SUBSET_RANKING.name


class _Estimator(BaseEstimator):
    """A learner of `spec`, which names neither task nor labels; `passes` is how often `fit` goes through the data.

    `fit` takes the data in a random order, by `random_state`: tables are often sorted by class, and what came last would
    count most. `shuffle=False` keeps the order, for data that is a stream; `partial_fit` always does.
    """

    def __init__(
        self,
        spec: Mapping[str, object] | None = None,
        passes: int = 1,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.spec = spec
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state

    def _orders(self, count: int) -> Iterator[list[int]]:
        """Of each pass, the places of what comes one after the other."""
        chance = check_random_state(self.random_state)
        for _ in range(self.passes):
            yield chance.permutation(count).tolist() if self.shuffle else list(range(count))

    def snapshot(self) -> bytes:
        """The learner as one portable file."""
        check_is_fitted(self)
        return learners.dump(self.portable_.learner)

    def _start(self, task: str, labels: Sequence[str] = ()) -> None:
        spec: dict[str, object] = {"task": task, **(self.spec or {})}
        if labels:
            spec["labels"] = list(labels)
        self.portable_ = Portable(spec)

    def _checked(self, X: npt.ArrayLike) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)  # type: ignore[no-any-return]


class FeedrankClassifier(ClassifierMixin, _Estimator):
    """One label out of several, or, where y is a matrix of 0 and 1, a set of labels, one column each.

    The automatic learner of `multiclass` or `multilabel`, or what `spec` asks for.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn from nothing, `passes` times through the data."""
        rows, truths = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        self._begin(truths, None)
        if not self.multilabel_ and len(self.classes_) < 2:
            raise ValueError(f"a classifier needs at least two classes; y has {len(self.classes_)} class")
        for order in self._orders(len(rows)):
            self._learn(rows[order], truths[order])
        return self

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Go on learning. `classes` names all labels at the first call; without it they are those of that call."""
        fresh = not hasattr(self, "portable_")
        rows, truths = validate_data(self, X, y, reset=fresh, dtype=np.float64, multi_output=True)
        if fresh:
            self._begin(truths, classes)
        return self._learn(rows, truths)

    def _begin(self, y: Array, classes: npt.ArrayLike | None) -> None:
        check_classification_targets(y)
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if self.multilabel_:
            if type_of_target(y) != "multilabel-indicator":
                raise ValueError("y with several columns must hold 0 and 1 only, one column a label")
            self.classes_ = np.arange(y.shape[1])
        else:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        names = LabelNames()
        self.names_ = [names.name(label) for label in self.classes_.tolist()]
        self._start(SET if self.multilabel_ else CLASS, self.names_)

    def _learn(self, X: Array, y: Array) -> Self:
        for row, truth in zip(X, self._truths(y), strict=True):
            self.portable_.learner.learn({"features": row}, truth)
        return self

    def _truths(self, y: Array) -> list[dict[str, object]]:
        if self.multilabel_:
            if y.ndim != 2 or y.shape[1] != len(self.classes_):
                raise ValueError(f"y must have {len(self.classes_)} columns as in the first call")
            return [{"labels": [self.names_[place] for place in np.flatnonzero(bits)]} for bits in y]
        y = column_or_1d(y, warn=True)
        places = np.searchsorted(self.classes_, y)
        if np.any(self.classes_[np.minimum(places, len(self.classes_) - 1)] != y):
            raise ValueError("y holds a label that is not among the classes of the first call")
        return [{"label": self.names_[place]} for place in places.tolist()]

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """The scores: one column a label, or for two classes how far the second is ahead, by probability if there is one.

        Scores and probabilities of the automatic learner weigh its experts differently, and their order may differ: for
        sets of labels too a probability, less a half, goes before a score.
        """
        check_is_fitted(self)
        if len(self.classes_) > 2 and not self.multilabel_:
            return self._table(X, probabilities=False)
        middle = 0.5
        try:
            table = self._table(X, probabilities=True)
        except AttributeError:
            table, middle = self._table(X, probabilities=False), 0.0
        decided: Array = table - middle if self.multilabel_ else table[:, 1] - table[:, 0]
        return decided

    def predict(self, X: npt.ArrayLike) -> Array:
        """The decisions: labels, or a matrix of 0 and 1."""
        decisions, places = self._predictions(X), self._places()
        if not self.multilabel_:
            return self.classes_[[places[decision.label] for decision in decisions]]
        bits = np.zeros((len(decisions), len(self.classes_)), dtype=int)
        for i, decision in enumerate(decisions):
            bits[i, [places[name] for name in decision.labels or ()]] = 1
        return bits

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """The learner's estimate of each label; AttributeError if its algorithm estimates none."""
        return self._table(X, probabilities=True)

    def _places(self) -> dict[str | None, int]:
        return {name: place for place, name in enumerate(self.names_)}

    def _predictions(self, X: npt.ArrayLike) -> list[Prediction]:
        return [self.portable_.learner.predict({"features": row}) for row in self._checked(X)]

    def _table(self, X: npt.ArrayLike, probabilities: bool) -> Array:
        decisions, places = self._predictions(X), self._places()
        table = np.zeros((len(decisions), len(self.classes_)))
        for i, decision in enumerate(decisions):
            values = decision.probabilities if probabilities else [score for _, score in decision.ranking]
            if not values and decision.ranking:
                raise AttributeError("this algorithm estimates no probabilities; use the preset")
            table[i, [places[name] for name, _ in decision.ranking]] = values
            best = places.get(decision.label, 0)
            if probabilities and not self.multilabel_ and table[i].argmax() != best:
                table[i, best] = np.nextafter(
                    table[i].max(), 2.0
                )  # calibrated alike: the decision goes first
        return table


class FeedrankRanker(_Estimator):
    """A ranker of lists: `group` holds the length of each list, y the grades of its items (at least 0)."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, group: Sequence[int]) -> Self:
        """Learn from nothing, `passes` times through the lists."""
        rows, grades = validate_data(self, X, y, dtype=np.float64)
        self._start(RANKING)
        spans = _spans(group, len(rows))
        for order in self._orders(len(spans)):
            self._lists(rows, grades, [spans[place] for place in order])
        return self

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, group: Sequence[int]) -> Self:
        """Go on learning."""
        fresh = not hasattr(self, "portable_")
        rows, grades = validate_data(self, X, y, reset=fresh, dtype=np.float64)
        if fresh:
            self._start(RANKING)
        self._lists(rows, grades, _spans(group, len(rows)))
        return self

    def _lists(self, X: Array, y: Array, spans: Sequence[tuple[int, int]]) -> None:
        for start, stop in spans:
            items = _items(X[start:stop])
            self.portable_.learner.learn(items, {"relevance": np.asarray(y[start:stop], dtype=np.float64)})

    def predict(self, X: npt.ArrayLike, group: Sequence[int] | None = None) -> Array:
        """The score of every item; without `group`, X is one list."""
        rows = self._checked(X)
        scores = np.empty(len(rows))
        for start, stop in _spans([len(rows)] if group is None else group, len(rows)):
            for name, score in self.portable_.learner.predict(_items(rows[start:stop])).ranking:
                scores[start + int(name)] = score
        return scores


def _items(X: Array) -> dict[str, object]:
    return {"items": [{"id": str(i), "features": row} for i, row in enumerate(X)]}


def _spans(group: Sequence[int], rows: int) -> list[tuple[int, int]]:
    ends = np.cumsum(np.asarray(group, dtype=np.intp)).tolist()
    if min(group, default=0) < 1 or not ends or ends[-1] != rows:
        raise ValueError(f"the lengths in `group` must be at least 1 and add up to the {rows} rows of X")
    return list(zip([0, *ends[:-1]], ends, strict=True))
