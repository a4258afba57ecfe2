"""Models for River: `learn_one` and `predict_one` on dicts; all of `river.checks` pass.

model = FeedrankClassifier()
for x, y in stream:
    model.predict_one(x)
    model.learn_one(x, y)
"""

from collections.abc import Hashable, Mapping
from typing import Any

from river import base

from feedrank import learners
from feedrank.learners import forms

from .portable import LabelNames, Portable, features_of


class FeedrankClassifier(base.Classifier):
    """One label out of several: the automatic learner of `multiclass`, or what `spec` asks for."""

    def __init__(self, spec: Mapping[str, object] | None = None) -> None:
        self.spec = spec
        self._names = LabelNames()
        self._portable = Portable({"task": forms.MULTICLASS.name, **(spec or {})})

    @property
    def _multiclass(self) -> bool:
        return True

    def snapshot(self) -> bytes:
        """The learner as one portable file."""
        return learners.dump(self._portable.learner)

    def learn_one(self, x: dict[Hashable, object], y: Hashable) -> None:
        """One round."""
        self._portable.learner.learn({"features": features_of(x)}, {"label": self._names.name(y)})

    def predict_one(self, x: dict[Hashable, object], **_: object) -> Any:
        """The label; None before the first round."""
        label = self._portable.learner.predict({"features": features_of(x)}).label
        return None if label is None else self._names.labels[label]

    def predict_proba_one(self, x: dict[Hashable, object], **_: object) -> dict[Any, float]:
        """The learner's estimate of each label met so far; where it estimates none, all on its decision."""
        prediction = self._portable.learner.predict({"features": features_of(x)})
        labels = [self._names.labels[name] for name, _ in prediction.ranking]
        if not prediction.probabilities:
            return {label: float(i == 0) for i, label in enumerate(labels)}
        return dict(zip(labels, prediction.probabilities, strict=True))


class FeedrankMultilabel(base.MultiLabelClassifier):
    """A set of labels: y is a dict of label and whether it belongs to the set."""

    def __init__(self, spec: Mapping[str, object] | None = None) -> None:
        self.spec = spec
        self._names = LabelNames()
        self._portable = Portable({"task": forms.MULTILABEL.name, **(spec or {})})

    def snapshot(self) -> bytes:
        """The learner as one portable file."""
        return learners.dump(self._portable.learner)

    def learn_one(self, x: dict[Hashable, object], y: Mapping[Hashable, object]) -> None:
        """One round; labels that were never true are known all the same, and predicted False."""
        chosen = [self._names.name(label) for label, member in y.items() if member]
        for label in y:
            self._names.name(label)
        self._portable.learner.learn({"features": features_of(x)}, {"labels": chosen})

    def predict_one(self, x: dict[Hashable, object], **_: object) -> dict[Hashable, bool]:
        """Whether each label met so far belongs to the set."""
        chosen = set(self._portable.learner.predict({"features": features_of(x)}).labels or ())
        return {label: name in chosen for label, name in self._names.names.items()}
