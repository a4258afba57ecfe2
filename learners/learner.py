"""A learner: a spec, the names it has met, and a model. Predicting never changes it; learning does, in one place.

`learn` first reads everything that could be refused, then changes: a refused event leaves no trace.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import clicks, instances, truths
from .errors import OptionError, pointer
from .instances import Floats, Ints, Listing, Matrix, Words
from .model import Decision, Model
from .names import Names
from .results import Outcome, Prediction, Progress
from .tasks.classes import REJECT
from .transforms import BIAS, Transform, Unmet, met
from .truths import Truth
from .weights.base import X

_CLASSES = ("binary", "multiclass", "ordinal")
# Stands for a served label that the learner no longer has (its event was withdrawn): equal to no truth.
_GONE = -2


class Learner:
    """See `build`. `labels` and `features` are in order of joining; `version` counts what was learned."""

    def __init__(self, spec: dict[str, Any], model: Model) -> None:
        self.spec = spec
        self.model = model
        self.task: str = spec["task"]
        self.kind = "items" if self.task == "subset-ranking" else "features"
        self.version = 0
        self.progress = Progress()
        self.transform = Transform(spec)
        self.features = Names([BIAS] if spec["bias"] else [])
        self.labels = Names()
        self._last: tuple[str | None, Words, tuple[X, Unmet, Decision]] | None = None
        self._costs: dict[str, float] | None = spec.get("weights", spec.get("reject_costs"))
        self._blocks = {name: i for i, block in enumerate(spec.get("blocks") or []) for name in block}
        self._positive = spec.get("complexity") == "entropy"
        self._closed = spec["labels"] if self.task in truths.CLOSED else None
        for name in spec.get("labels", []):
            self.labels.add(name)
        self.grow()

    # ---- predicting

    def predict(
        self,
        instance: Any,
        *,
        top: int | None = None,
        explain: bool = False,
        loss: str | None = None,
        min_margin: float | None = None,
    ) -> Prediction:
        """Decide on an instance: `{"features": ...}` or `{"items": ...}`."""
        _check_options(top, min_margin)
        found = self._found(instance)
        if self.kind == "features" and not len(self.labels):
            self.model.offers(loss)
            chosen: list[str] | None = [] if self.task == "multilabel" else None
            return Prediction(self.task, [], None, labels=chosen, abstained=self.task in _CLASSES)
        x, unmet, decision = self._look(found, loss)
        if isinstance(found, Words):
            self._last = (loss, Words(tuple(found.names), found.values), (x, unmet, decision))
        scores = self._shown(decision.scores)
        names: Any = found.ids if isinstance(found, Listing) else self.labels
        order = decision.sigma if self._ranks else np.argsort(-scores, kind="stable")
        if top is not None:
            order = order[:top]
        margin = self.model.margin(x, decision, loss)
        if margin is not None:
            margin += 0.0  # a gap of -0.0 reads oddly
        prediction = Prediction(
            self.task,
            [(names[i], score) for i, score in zip(order.tolist(), scores[order].tolist(), strict=True)],
            margin,
            objective=decision.objective,
        )
        self._name(
            prediction,
            decision,
            abstain=min_margin is not None and margin is not None and margin < min_margin,
        )
        if explain:
            prediction.contributions = self._explain(found, x, order, loss)
        return prediction

    @property
    def _ranks(self) -> bool:
        return self.task in ("label-ranking", "subset-ranking")

    def _shown(self, t: Floats) -> Floats:
        # Binary weights have one column, the positive label's.
        return np.concatenate((-t, t)) if self.task == "binary" and len(t) == 1 else t

    def _name(self, prediction: Prediction, decision: Decision, abstain: bool) -> None:
        prediction.abstained = abstain
        if self.task == "multilabel":
            prediction.labels = (
                None if abstain else [self.labels[i] for i in np.flatnonzero(decision.sigma).tolist()]
            )
        elif self.task in _CLASSES:
            sigma = int(decision.sigma)
            prediction.abstained = abstain or sigma == REJECT
            prediction.label = None if prediction.abstained else self.labels[sigma]

    def _explain(self, found: Words | Listing, x: X, order: Ints, loss: str | None) -> list[dict[str, float]]:
        parts = self.model.contributions(x, loss)
        if parts is None:
            raise OptionError("a score of a kernel is not a sum over features", pointer("explain"))
        names = ["bias" if (name := self.features[row]) == BIAS else name for row in x.rows.tolist()]
        if len(parts) > len(names) and isinstance(found, Words):
            # Entropic weights score features that were never met too; they stand behind the known ones.
            names += [name for name in found.names if name not in self.features]
        if self.task == "binary" and parts.shape[1] == 1:
            parts = np.hstack([-parts, parts])
        columns = parts if isinstance(x, Matrix) else parts.T
        told: list[dict[str, float]] = []
        for i in order.tolist():
            entry: dict[str, float] = {}
            for name, part in zip(names, columns[i].tolist(), strict=False):
                if part:
                    entry[name] = entry.get(name, 0.0) + part
            told.append(entry)
        return told

    # ---- learning

    def check(self, instance: Any, truth: Any) -> None:
        """Refuse what `learn` would refuse. Depends on the spec and the input alone, so that all replicas agree."""
        self._read(instance, truth)

    def learn(self, instance: Any, truth: Any, *, served: Mapping[str, Any] | None = None) -> Outcome:
        """One round: judge the weights as they are, then update.

        `served` is the decision that the user saw (`Prediction.served`), to be judged too.
        """
        found, wanted = self._read(instance, truth)
        if self.kind == "features":
            self._join(wanted.grades)
        y: Any = None
        seen: Any = None
        clicked: Floats | None = None
        if isinstance(found, Listing):
            scored, unmet, decision, y, seen, clicked = self._list_round(found, wanted, served)
        elif len(self.labels) or self.model.learns_unlabelled:
            scored, unmet, decision = self._look(found)
            y, seen = self._encode(wanted), self._seen(served)
        else:
            (scored, unmet), decision = self._x(found), _NOTHING
        self._last = None
        something = decision is not _NOTHING
        loss = float(self.model.judge(decision, y)) if something else 0.0
        x = self._meet(scored, unmet)
        updated = something and self.model.learn(x, decision, y, scored, clicked)
        self.transform.count(x, len(self.features))
        self.progress.count(loss, updated)
        self.version += 1
        return Outcome(loss, loss > 0, updated, None if seen is None else float(self.model.loss(seen, y)))

    def _list_round(
        self, found: Listing, truth: Truth, served: Mapping[str, Any] | None
    ) -> tuple[X, Unmet, Decision, Any, Any, Floats | None]:
        """What a round on a list is about: with clicks, only the items that count."""
        X: Any
        X, unmet, decision = self._look(found)
        if truth.listed is not None and served is None:
            return X, unmet, decision, truth.listed, None, None
        index = {name: i for i, name in enumerate(found.ids)}
        seen = None if served is None else _order(served["ranking"], index, len(index))
        if truth.clicks is None:
            y = truths.grades(truth, index, len(index)) if truth.listed is None else truth.listed
            return X, unmet, decision, y, seen, None
        order = decision.sigma if seen is None else seen
        items = [index[name] for name in truth.clicks]
        if not items:
            return X, unmet, _NOTHING, None, None, None
        examination = self.spec["examination"]
        if examination is not None:
            clicked = clicks.inverse_propensities(order, items, examination)
            return X, unmet, decision, (clicked > 0).astype(np.float64), seen, clicked
        kept, y = clicks.skip_above(order, items)
        X = Matrix(X.rows, X.values[kept], X.unseen[kept] if len(X.unseen) else X.unseen)
        if seen is not None:
            place = np.full(len(index), -1)
            place[kept] = np.arange(len(kept))
            seen = place[seen]
            seen = seen[seen >= 0]
        if unmet.names:
            unmet = Unmet(unmet.names, unmet.values[kept])
        return X, unmet, self.model.decide(X), y, seen, None

    def _read(self, instance: Any, truth: Any) -> tuple[Words | Listing, Truth]:
        found = self._found(instance)
        members = found.ids if isinstance(found, Listing) else self._closed
        return found, truths.read(truth, self.task, members)

    def _found(self, instance: Any) -> Words | Listing:
        found = instances.read(instance, self.kind)
        if self._positive and isinstance(found, Words):
            instances.not_negative(found)
        return found

    def _look(self, found: Words | Listing, loss: str | None = None) -> tuple[X, Unmet, Decision]:
        """x on what is known, what is not, and the decision."""
        # Feedback often follows its prediction at once, so the last answer is kept. It is no state: a change drops it.
        last = self._last
        if last is not None and last[0] == loss and _same(last[1], found):
            return last[2]
        x, unmet = self._x(found)
        return x, unmet, self.model.decide(x, loss)

    def _x(self, found: Words | Listing) -> tuple[X, Unmet]:
        """x on what is known, and what is not."""
        if isinstance(found, Listing):
            return self.transform.matrix(found, self.features)
        return self.transform.vector(found, self.features)

    def _join(self, names: Mapping[str, float]) -> None:
        if not names.keys() <= self.labels.index.keys():
            for name in names:
                self.labels.add(name)
            self.grow()

    def grow(self) -> None:
        """Make room in the model for every name that has joined."""
        self._last = None
        # Lists share one column of weights; a binary learner has one, the positive label's, unless REJECT needs two.
        single = self.kind == "items" or (self.task == "binary" and self.spec["loss"] != "reject")
        self.transform.grow(len(self.features))
        self.model.grow(len(self.features), 1 if single else len(self.labels))
        if self._costs is not None:
            self.model.price([self._costs.get(name, 1.0) for name in self.labels])
        if self._blocks:
            self.model.group([self._blocks.get(name, -1) for name in self.labels])

    def _meet(self, scored: X, unmet: Unmet) -> X:
        """x with every feature of the instance known."""
        if not unmet.names:
            return scored
        rows = [self.features.add(name) for name in unmet.names]
        self.grow()
        return met(scored, unmet, rows)

    def _encode(self, truth: Truth) -> Any:
        if self.task in _CLASSES:
            return truths.index(truth, self.labels)
        if self.task == "multilabel":
            return truths.mask(truth, self.labels)
        return truths.grades(truth, self.labels.index, len(self.labels))

    def _seen(self, served: Mapping[str, Any] | None) -> Any:
        """The served decision in the task's form; None where there was none, or it abstained without a REJECT."""
        if served is None:
            return None
        if self.task == "multilabel":
            if served["labels"] is None:
                return None
            mask = np.zeros(len(self.labels), dtype=bool)
            mask[[self.labels.index[name] for name in served["labels"] if name in self.labels]] = True
            return mask
        if self.task in _CLASSES:
            if served["label"] is None:
                return REJECT if self.spec.get("loss") == "reject" else None
            return self.labels.index.get(served["label"], _GONE)
        return _order(served["ranking"], self.labels.index, len(self.labels))

    # ---- telling

    @property
    def certificate(self) -> dict[str, Any]:
        """What the theory proves at this moment; empty where it is silent."""
        return self.model.certificate()

    def nbytes(self) -> int:
        """Memory taken, roughly: weights, names, counts."""
        counts = 8 * len(self.features) if self.transform.idf else 0
        return self.model.nbytes() + self.features.nbytes() + self.labels.nbytes() + counts

    def describe(self) -> dict[str, Any]:
        """The parts of the contract's Progress that a learner knows of itself."""
        return {
            "spec": self.spec,
            "version": self.version,
            "labels": list(self.labels),
            "features": len(self.features) - self.spec["bias"],
            "bytes": self.nbytes(),
            "progress": self.progress.to_json(),
            "certificate": self.certificate,
        }


_NOTHING = Decision(None, np.empty(0))


def _same(one: Words, other: Words | Listing) -> bool:
    if isinstance(other, Listing) or one.names != tuple(other.names):
        return False
    if one.values is None or other.values is None:
        return one.values is other.values
    return np.array_equal(one.values, other.values)


def _order(names: Any, index: Mapping[str, int], count: int) -> Ints:
    """The served order as indices; what was not shown stands behind it, in order of joining."""
    shown = [index[name] for name in names if name in index]
    rest = np.ones(count, dtype=bool)
    rest[shown] = False
    return np.concatenate((np.array(shown, dtype=np.intp), np.flatnonzero(rest)))


def _check_options(top: Any, min_margin: Any) -> None:
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise OptionError("must be a whole number of at least 1", pointer("top"))
    if min_margin is not None and (
        isinstance(min_margin, bool)
        or not isinstance(min_margin, int | float)
        or not 0 <= min_margin < np.inf
    ):
        raise OptionError("must be a finite number of at least 0", pointer("min_margin"))
