"""A learner: a spec, the names it has seen, and a model. Predicting never changes it; learning does, in one place.

`learn` first reads everything that could be refused, then changes: a refused event leaves no trace. It knows no task and
no algorithm by name: it asks the form of the task, and the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import clicks, forms, kernel, reading, registry
from . import spec as specs
from .errors import OptionError, pointer
from .instances import FeatureVector, Floats, ItemList, Matrix
from .model import Decision, Model
from .names import Names
from .registry import Spec
from .results import Outcome, Prediction, Progress
from .transforms import ALL_KNOWN, BIAS, Transform, UnknownFeatures
from .truths import Truth
from .weights.base import X

_NOTHING = Decision(None, np.empty(0))


@dataclass(slots=True)
class Look:
    """An instance as the weights see it: x on the known features, the others, and the decision."""

    x: X
    unknown: UnknownFeatures
    decision: Decision


@dataclass(slots=True)
class Last:
    """The last prediction: what was asked, and the answer. `raw` is a copy of its names, where it was names alone."""

    raw: list[str] | None
    parsed: FeatureVector
    loss: str | None
    look: Look


@dataclass(slots=True)
class Lesson:
    """What one event teaches: y, the served decision `seen`, and the clicks that count (see `Model.learn`)."""

    look: Look
    y: Any = None
    seen: Any = None
    clicked: Floats | None = None
    teaches: bool = True


def build(spec: Any) -> "Learner":
    """A learner of a spec: a mapping of the contract's JSON. SpecError, with a pointer, if it cannot be."""
    full = specs.read(spec)
    entry = registry.algorithm(full["algorithm"])
    learner: Learner = (entry.learner or Learner)(full, entry.build(full))
    return learner


class Learner:
    """See `build`. `labels` and `features` are in order of joining; `version` counts what was learned."""

    def __init__(self, spec: Spec, model: Model) -> None:
        self.spec = spec
        self.model = model
        self.form = forms.of(spec["task"])
        self.version = 0
        self.progress = Progress()
        self.transform = Transform(spec)
        self.features = self.transform.table()
        self.labels = Names()
        self._last: Last | None = None
        self._counted: X | None = None
        self._costs: dict[str, float] | None = spec.get("weights", spec.get("reject_costs"))
        self._blocks = {name: i for i, block in enumerate(spec.get("blocks") or []) for name in block}
        if self.transform.blocks is not None:
            model.witness = lambda x, g: self.transform.judge_blocks(x, model.contributions(x), g)
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
        parsed = self._read(instance)
        if not isinstance(parsed, ItemList) and not len(self.labels):
            self.model.offers(loss)
            empty = self.form.decision.empty()
            return Prediction(self.form, [], None, empty, abstained=empty is None and not self.form.ranks)
        look = self._look(parsed, loss)
        if not isinstance(parsed, ItemList):
            self._last = Last(_raw(instance), parsed, loss, look)
        decision = look.decision
        scores = (
            decision.scores if self.model.view is None else kernel.times(self.model.view, decision.scores)
        )
        names: Any = parsed.ids if isinstance(parsed, ItemList) else self.labels
        if self.form.ranks:
            sigma = decision.sigma if top is None else decision.sigma[:top]
            order, best = sigma.tolist(), scores[sigma].tolist()
        else:
            order, best = kernel.best(scores, -1 if top is None else top)
        margin = self.model.margin(look.x, decision, loss)
        if margin is not None:
            margin += 0.0  # a gap of -0.0 reads oddly
        abstained = min_margin is not None and margin is not None and margin < min_margin
        named = None if abstained else self.form.decision.name(decision.sigma, self.labels)
        prediction = Prediction(
            self.form,
            [(names[i], score) for i, score in zip(order, best, strict=True)],
            margin,
            named,
            abstained or (named is None and not self.form.ranks),
            decision.objective,
        )
        if decision.probabilities is not None:
            prediction.probabilities = decision.probabilities[order].tolist()
        if explain:
            prediction.contributions = self._explain(parsed, look.x, order, loss)
        return prediction

    def _explain(
        self, parsed: FeatureVector | ItemList, x: X, order: list[int], loss: str | None
    ) -> list[dict[str, float]]:
        parts = self.model.contributions(x, loss)
        if parts is None:
            raise OptionError("a score of a kernel is not a sum over features", pointer("explain"))
        names = ["bias" if (name := self.features[row]) == BIAS else name for row in x.rows.tolist()]
        if self.model.extra_names:
            names += self.model.extra_names
        elif len(parts) > len(names) and not isinstance(parsed, ItemList):
            # Entropic weights score features that were never seen too; they stand behind the known ones.
            names += [name for name in parsed.names if name not in self.features]
        if self.model.view is not None:
            parts = kernel.times(parts, self.model.view.T)
        columns = parts if isinstance(x, Matrix) else parts.T
        explained: list[dict[str, float]] = []
        for i in order:
            entry: dict[str, float] = {}
            for name, part in zip(names, columns[i].tolist(), strict=False):
                if part:
                    entry[name] = entry.get(name, 0.0) + part
            explained.append(entry)
        return explained

    # ---- learning

    def check(
        self, instance: Any, truth: Any, *, weight: float = 1.0, served: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse what `learn` would refuse. Depends on the spec and the input alone, so that all replicas agree."""
        reading.event(self.spec, instance, truth)
        reading.weight(weight)

    def learn(
        self, instance: Any, truth: Any, *, served: Mapping[str, Any] | None = None, weight: float = 1.0
    ) -> Outcome:
        """One round: judge the weights as they are, then update.

        `served` is the decision that the user saw (`Prediction.served`), to be judged too. The event counts `weight`
        times in the update; it is one round all the same.
        """
        parsed = self._read(instance)
        answer = reading.truth(self.spec, truth, parsed)
        times = reading.weight(weight)
        self.transform.mark()
        mark = (self.model.mark(), len(self.labels), len(self.features), self.features.events)
        self._counted = None
        try:
            return self._round(parsed, answer, served, times)
        except BaseException:
            self._rewind(mark)
            raise

    def _round(
        self, parsed: FeatureVector | ItemList, truth: Truth, served: Mapping[str, Any] | None, weight: float
    ) -> Outcome:
        """One round, in the order of the mathematics. The step is the last thing that can fail."""
        if isinstance(parsed, ItemList):
            lesson = self._list_lesson(parsed, truth, served)
        else:
            lesson = self._label_lesson(parsed, truth, served)
        self._last = None
        decision, seen = lesson.look.decision, lesson.seen
        loss = float(self.model.judge(decision, lesson.y)) if lesson.teaches else 0.0
        served_loss = None if seen is None else float(self.model.loss(seen, lesson.y))
        x = self._with_every_feature(lesson.look)
        self._counted = x
        self.transform.count(x, self.features)
        # Ready before the step: behind it nothing is asked for any more.
        after, outcome = self.progress.after(loss), Outcome(loss, loss > 0, False, served_loss)
        if lesson.teaches:
            outcome.updated = self.model.learn(x, decision, lesson.y, lesson.look.x, lesson.clicked, weight)
        after.updates += outcome.updated
        self.progress = after
        self.version += 1
        return outcome

    def _rewind(self, mark: tuple[Any, int, int, int]) -> None:
        """An event that failed leaves no trace, whatever was raised: names leave again, counts and weights go back."""
        model, labels, features, events = mark
        self._last = None
        self.transform.rewind(self._counted, self.features, features, events)
        self.labels.forget(labels)
        self.model.rewind(model)
        self._name_costs()

    def _label_lesson(
        self, parsed: FeatureVector, truth: Truth, served: Mapping[str, Any] | None
    ) -> "Lesson":
        """A round on the labels: those that the truth names join before it is judged."""
        self._join(truth.grades)
        if not len(self.labels) and not self.model.learns_unlabelled:
            return Lesson(Look(*self._x(parsed), _NOTHING), teaches=False)
        index, decision = self.labels.index, self.form.decision
        seen = None if served is None else decision.sigma(served, index, self.spec.get("loss") == "reject")
        return Lesson(self._look(parsed), decision.encode(truth, index), seen)

    def _list_lesson(self, parsed: ItemList, truth: Truth, served: Mapping[str, Any] | None) -> "Lesson":
        """A round on a list: with clicks, only the items that count."""
        look = self._look(parsed)
        if truth.listed is not None and served is None:
            return Lesson(look, truth.listed)
        index = {name: i for i, name in enumerate(parsed.ids)}
        seen = None if served is None else self.form.decision.sigma(served, index, False)
        if truth.clicks is None:
            y = self.form.decision.encode(truth, index) if truth.listed is None else truth.listed
            return Lesson(look, y, seen)
        order = look.decision.sigma if seen is None else seen
        items = [index[name] for name in truth.clicks]
        if not items:
            return Lesson(Look(look.x, look.unknown, _NOTHING), teaches=False)
        examination = self.spec["examination"]
        if examination is not None:
            clicked = clicks.inverse_propensities(order, items, examination)
            return Lesson(look, (clicked > 0).astype(np.float64), seen, clicked)
        kept, y = clicks.skip_above(order, items)
        X, unknown = look.x, look.unknown
        assert isinstance(X, Matrix)
        X = Matrix(X.rows, X.values[kept], X.unseen[kept] if len(X.unseen) else X.unseen)
        if seen is not None:
            place = np.full(len(index), -1)
            place[kept] = np.arange(len(kept))
            seen = place[seen]
            seen = seen[seen >= 0]
        if unknown.names:
            unknown = UnknownFeatures(unknown.names, unknown.values[kept])
        return Lesson(Look(X, unknown, self.model.decide(X)), y, seen)

    def _read(self, instance: Any) -> FeatureVector | ItemList:
        last = self._last
        if last is not None and last.raw is not None and _raw(instance) == last.raw:
            return last.parsed
        return reading.instance(self.spec, instance)

    def _look(self, parsed: FeatureVector | ItemList, loss: str | None = None) -> "Look":
        """x on what is known, what is not, and the decision."""
        # Feedback often follows its prediction at once, so the last answer is kept. It is no state: a change drops it.
        last = self._last
        if last is not None and last.loss == loss and (last.parsed is parsed or last.parsed == parsed):
            return last.look
        x, unknown = self._x(parsed)
        return Look(x, unknown, self.model.decide(x, loss))

    def _x(self, parsed: FeatureVector | ItemList) -> tuple[X, UnknownFeatures]:
        """x on what is known, and of a list what is not."""
        if isinstance(parsed, ItemList):
            return self.transform.matrix(parsed, self.features)
        return self.transform.vector(parsed, self.features), ALL_KNOWN

    def _join(self, names: Mapping[str, float]) -> None:
        if not names.keys() <= self.labels.index.keys():
            for name in names:
                self.labels.add(name)
            self.grow()

    def grow(self, fresh: int = 0) -> None:
        """Make room in the model for every name that has joined, and for so many features that are about to."""
        self._last = None
        columns = self.form.columns(self.model.columns(len(self.labels)))
        self.model.grow(len(self.features) + fresh, columns)
        self._name_costs()

    def _name_costs(self) -> None:
        """Tell the model what the spec says of its labels."""
        if self._costs is not None:
            self.model.price([self._costs.get(name, 1.0) for name in self.labels])
        if self._blocks:
            self.model.group([self._blocks.get(name, -1) for name in self.labels])

    def _with_every_feature(self, look: "Look") -> X:
        """x with every feature of the instance known. Room is made first: a lack of memory leaves no half of it."""
        x, unknown = look.x, look.unknown
        fresh = len(unknown.names) if isinstance(x, Matrix) else x.fresh
        if not fresh:
            return x
        self.grow(fresh)
        return self.transform.join(x, unknown, self.features)

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.form.name

    @property
    def kind(self) -> str:
        """What an instance is: "features" or "items"."""
        return self.form.instance

    # ---- telling

    @property
    def certificate(self) -> dict[str, Any]:
        """What the theory proves at this moment; empty where it is silent."""
        return self.model.certificate()

    def nbytes(self) -> int:
        """Memory taken, roughly: weights, names, counts."""
        counts = 0 if self.transform.scaling is None else 32 * len(self.features)
        return self.model.nbytes() + self.features.nbytes() + self.labels.nbytes() + counts

    def describe(self) -> dict[str, Any]:
        """The parts of the contract's Progress that a learner knows of itself."""
        experts, drift = self.model.expert_rows(), self.model.drift()
        more = ({} if experts is None else {"experts": experts}) | ({} if drift is None else {"drift": drift})
        return {
            "spec": self.spec,
            "version": self.version,
            "labels": list(self.labels),
            "features": len(self.features) - self.spec["bias"],
            "bytes": self.nbytes(),
            "progress": self.progress.to_json(),
            "certificate": self.certificate,
            **more,
        }


def _raw(instance: Any) -> list[str] | None:
    """A copy of the names, where an instance is names alone: two that are equal are read to the same."""
    if type(instance) is not dict or len(instance) != 1:
        return None
    features = instance.get("features")
    return features[:] if type(features) is list and features and type(features[0]) is str else None


def _check_options(top: Any, min_margin: Any) -> None:
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise OptionError("must be a whole number of at least 1", pointer("top"))
    if min_margin is not None and (
        isinstance(min_margin, bool)
        or not isinstance(min_margin, int | float)
        or not 0 <= min_margin < np.inf
    ):
        raise OptionError("must be a finite number of at least 0", pointer("min_margin"))
