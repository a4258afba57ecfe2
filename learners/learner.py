"""A learner: a spec, the names it has seen, and a model. Predicting never changes it; learning does, in one place.

`learn` first reads everything that could be refused, then changes: a refused event leaves no trace. It knows no task and
no algorithm by name: it asks the form of the task, and the model.
"""

from collections.abc import Mapping
from threading import get_ident
from typing import Any

from . import forms, kernel, reading, registry, renaming
from . import spec as specs
from .decided import DecisionBefore
from .describing import describe
from .errors import SHARED
from .explaining import explain as explain_scores
from .instances import FeatureVector, ItemList, Matrix
from .json_types import Json
from .label_settings import LabelSettings
from .last import Last, LastText, last_of
from .lessons import Look, label_lesson, list_lesson
from .model import Model
from .names import Names
from .registry import Spec
from .results import Outcome, Prediction, Progress, Served
from .tasks.task import Sigma
from .transforms import ALL_KNOWN, Transform, UnknownFeatures
from .truths import Truth
from .weights.base import X
from .whole_rounds import WholeRound

ALL = 2**31 - 1  # a `top` that cuts nothing, and that every kernel can count to


def build(spec: object, renames: Mapping[str, str] | None = None) -> "Learner":
    """A learner of the contract's JSON, read by `renames` (renaming.py); SpecError, with a pointer, if it cannot be."""
    full = renaming.in_spec(specs.read(spec), renames or {})
    entry = registry.algorithm(full["algorithm"])
    learner: Learner = (entry.learner or Learner)(full, entry.build(full))
    learner.renames = dict(renames or {})
    return learner


class Learner:
    """See `build`. `labels` and `features` are in order of joining; `version` counts what was learned."""

    def __init__(self, spec: Spec, model: Model) -> None:
        self.spec = spec
        self.model = model
        self.teacher: int = 0  # the thread that teaches
        self.form: forms.Form = forms.of(spec["task"])
        self.version: int = 0
        self.renames: dict[str, str] = {}
        self.progress: Progress = Progress()
        self.transform: Transform = Transform(spec)
        self.features: kernel.Table = self.transform.table()
        self.labels: Names = Names()
        self.costs: dict[tuple[int, ...], registry.Cost] = {}  # see reading.py
        self._last: Last | None = None
        self._words = LastText()
        self._counted: X | None = None
        self._settings = LabelSettings(spec)
        blocks = self.transform.blocks
        if blocks is not None:
            self.transform.attend(model)
        for name in spec.get("labels", []):
            self.labels.add(name)
        kept = (self.features, self.transform.scaling, None if blocks is None else blocks.kernel)
        self._fused = None if self.form.items else model.fused(*kept)
        self.grow()

    # ---- predicting

    def predict(
        self,
        instance: object,
        *,
        top: int | None = None,
        explain: bool = False,
        loss: str | None = None,
        min_margin: float | None = None,
    ) -> Prediction:
        """Decide on an instance: `{"features": ...}` or `{"items": ...}`."""
        if self.teacher not in (0, get_ident()):
            raise RuntimeError(SHARED)
        if top is not None or min_margin is not None:
            reading.options(top, min_margin)
        most = -1 if top is None else min(top, ALL)
        if self._fused is not None and loss is None and not explain:
            if type(instance) is not FeatureVector:
                instance = self._words.features_of(self.spec, instance)
            short = self._fused.predict(instance, most, self.labels.names)
            if short is not None:
                ranking, gap, label, known, unknown, *probabilities = short
                abstained = min_margin is not None and gap is not None and gap < min_margin
                abstained = abstained or (label is None and not self.form.ranks)
                prediction = Prediction(self.form, ranking, gap, None if abstained else label, abstained)
                prediction.known, prediction.unknown = known, unknown
                prediction.probabilities = probabilities[0] if probabilities else []
                return prediction
        parsed = self._read(instance)
        if not isinstance(parsed, ItemList) and not len(self.labels):
            self.model.offers(loss)
            empty = self.form.decision.empty()
            prediction = Prediction(self.form, [], None, empty, empty is None and not self.form.ranks)
            prediction.known, prediction.unknown = self.features.familiar(parsed)
            return prediction
        look = self.look(parsed, loss)
        self._last = last_of(instance, parsed, loss, look)
        decision = look.decision
        scores = (
            decision.scores if self.model.view is None else kernel.times(self.model.view, decision.scores)
        )
        names: Any = parsed.ids if isinstance(parsed, ItemList) else self.labels
        if self.form.ranks:
            sigma = decision.sigma if top is None else decision.sigma[:top]
            order, best = sigma.tolist(), scores[sigma].tolist()
        else:
            order, best = kernel.best(scores, most)
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
        if not isinstance(parsed, ItemList):
            prediction.known, prediction.unknown = self.features.familiar(parsed)
        if decision.probabilities is not None:
            prediction.probabilities = decision.probabilities[order].tolist()
        if explain:
            prediction.contributions = explain_scores(self, parsed, look.x, order, loss)
        return prediction

    # ---- learning

    def check(
        self, instance: object, truth: object, *, weight: float = 1.0, served: Served | None = None
    ) -> None:
        """Refuse what `learn` would refuse. Depends on the spec and the input alone, so that all replicas agree."""
        reading.weight(weight)
        self.check_truth(reading.fitting(self, instance), truth, served)

    def check_truth(
        self, parsed: FeatureVector | ItemList, truth: object, served: Served | None = None
    ) -> None:
        """The same of an instance that `reading.instance` gave."""
        self.form.truth_of(self.spec, self.meant(truth) if self.renames else truth, parsed)

    def meant(self, answer: Any) -> Any:
        """A truth, or a decision that was served: where it names one of `renames`, it means the new label."""
        return renaming.in_answer(answer, self.renames)

    def learn(
        self,
        instance: object,
        truth: object,
        *,
        served: Served | None = None,
        weight: float = 1.0,
        judged: DecisionBefore | None = None,
    ) -> Outcome:
        """One round: judge the weights as they are, then update.

        `served` is the decision that the user saw (`Prediction.served`), to be judged too. The event counts `weight`
        times in the update; it is one round all the same. `judged`: see decided.py, which no list takes.
        """
        times = reading.weight(weight)
        if self.renames:
            truth, served = self.meant(truth), self.meant(served)
        # No call between these lines, so that no other thread comes between; none at the end, so that it cannot fail.
        thread = get_ident()
        if self.teacher not in (0, thread):
            raise RuntimeError(SHARED)
        before, self.teacher = self.teacher, thread
        try:
            if self._fused is not None:
                if type(instance) is not FeatureVector:
                    instance = self._words.features_of(self.spec, instance)
                short = self._short_round(self._fused, instance, truth, served, times, judged)
                if short is not None:
                    return short
            parsed = self._read(instance)
            answer = reading.truth(self.spec, truth, parsed)
            self.transform.mark()
            mark = (self.model.mark(), len(self.labels), len(self.features), self.features.events)
            self._counted = None
            try:
                return self._round(parsed, answer, served, times, judged)
            except BaseException:
                self._rewind(mark)
                raise
        finally:
            self.teacher = before

    def _short_round(
        self,
        fused: WholeRound,
        instance: object,
        truth: object,
        served: Served | None,
        weight: float,
        judged: DecisionBefore | None,
    ) -> Outcome | None:
        """One round in the kernel, on labels that have joined; None leaves it to the pieces. They give the same bits."""
        names = truth if type(truth) is dict and len(truth) == 1 else {}
        if not names or (y := self.form.decision.quick(names, self.labels.index)) is None:
            return None
        if judged is not None:
            short = fused.predict(instance, self.form.decision.looked, self.labels.names)
            if short is None:
                return None
            judged.take_short(self, short, y)
        planned = fused.plan(instance, y, weight)
        if planned is None:
            return None
        loss, updated, sums = planned
        seen = None if served is None else self.seen(served)
        served_loss = None if seen is None else float(self.model.loss(seen, y))
        after, outcome = self.progress.after(loss), Outcome(loss, loss > 0, updated, served_loss)
        after.updates, version = after.updates + updated, self.version + 1
        self._last = None
        fused.commit(sums)
        # Nothing is called or made any more, so that nothing can fail.
        self.progress = after
        self.version = version
        return outcome

    def _round(
        self,
        parsed: FeatureVector | ItemList,
        truth: Truth,
        served: Served | None,
        weight: float,
        judged: DecisionBefore | None,
    ) -> Outcome:
        """One round, in the order of the mathematics. The step is the last thing that can fail."""
        if isinstance(parsed, ItemList):
            lesson = list_lesson(self, self.look(parsed), parsed, truth, served)
        else:
            lesson = label_lesson(self, parsed, truth, served, judged)
        self._forget_last()
        decision, seen = lesson.look.decision, lesson.seen
        loss = 0.0
        if lesson.teaches:
            loss = float(self.model.judge(decision, lesson.y))
            loss = loss if decision.before is None else decision.before.loss
        served_loss = None if seen is None else float(self.model.loss(seen, lesson.y))
        x = self._with_every_feature(lesson.look)
        self._counted = x
        self.transform.count(x, self.features)
        # Ready before the step: behind it nothing is asked for any more.
        after, outcome = self.progress.after(loss), Outcome(loss, loss > 0, False, served_loss)
        version = self.version + 1
        if lesson.teaches:
            outcome.updated = self.model.learn(x, decision, lesson.y, lesson.look.x, lesson.clicked, weight)
        after.updates += outcome.updated
        self.progress, self.version = after, version
        return outcome

    def _rewind(self, mark: tuple[object, int, int, int]) -> None:
        """An event that failed leaves no trace, whatever was raised: names leave again, counts and weights go back."""
        model, labels, features, events = mark
        self._forget_last()
        self.transform.rewind(self._counted, self.features, features, events)
        self.labels.forget(labels)
        self.model.rewind(model)
        self._name_costs()

    def seen(self, served: Served) -> Sigma:
        """The decision that the user saw; None if it abstained and the loss has no REJECT."""
        return self.form.decision.sigma(served, self.labels.index, self.spec.get("loss") == "reject")

    def _read(self, instance: object) -> FeatureVector | ItemList:
        last = self._last
        parsed = None if last is None else last.reading_of(instance)
        return reading.fitting(self, instance) if parsed is None else parsed

    def look(self, parsed: FeatureVector | ItemList, loss: str | None = None) -> "Look":
        """x on what is known, what is not, and the decision."""
        last = self._last
        # In this order: a name's __eq__ may teach the learner.
        if last is not None and last.answers(parsed, loss) and self._last is last:
            return last.look
        x, unknown = self.x(parsed)
        return Look(x, unknown, self.model.decide(x, loss))

    def x(self, parsed: FeatureVector | ItemList) -> tuple[X, UnknownFeatures]:
        """x on what is known, and of a list what is not."""
        if isinstance(parsed, ItemList):
            return self.transform.matrix(parsed, self.features)
        return self.transform.vector(parsed, self.features), ALL_KNOWN

    def join(self, names: Mapping[str, float]) -> None:
        for name in names:
            self.labels.add(name)
        self.grow()

    def _forget_last(self) -> None:
        self._last = None
        if self._fused is not None:
            self._fused.clear()

    def grow(self, fresh: int = 0) -> None:
        """Make room in the model for every name that has joined, and for so many features that are about to."""
        self._forget_last()
        self.model.place(*self.features.vector)
        self.model.grow(len(self.features) + fresh, self.form.columns(self.model.columns(len(self.labels))))
        self._name_costs()

    def _name_costs(self) -> None:
        """Tell the model what the spec, and the names, say of its labels."""
        self.transform.name_labels(self.labels.names, self.features)
        self._settings.tell(self.model, self.labels)

    def _with_every_feature(self, look: "Look") -> X:
        """x with every feature of the instance known. Room is made first: a lack of memory leaves no half of it."""
        x, unknown = look.x, look.unknown
        fresh = len(unknown.names) if isinstance(x, Matrix) else x.fresh
        if not fresh:
            return x
        self.grow(fresh)
        joined = self.transform.join(x, unknown, self.features)
        self.model.place(*self.features.vector)
        return joined

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.form.name

    @property
    def certificate(self) -> dict[str, Json]:
        """What the theory proves at this moment; empty where it is silent."""
        return self.model.certificate()

    def nbytes(self) -> int:
        """Memory taken, roughly: weights, names, counts."""
        counts = 0 if self.transform.scaling is None else 32 * len(self.features)
        return self.model.nbytes() + self.features.nbytes() + self.labels.nbytes() + counts

    def describe(self) -> dict[str, Json]:
        """See describing.py."""
        return describe(self)
