"""The learner of `choice`: a context and items in, one item drawn with a known probability, a reward back.

Predicting draws and changes nothing; learning reads what was served from the event and never draws, so that a log gives
the same weights whoever folds it. A value of 0 of an item's feature is the same as the feature left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import get_ident
from typing import Any

import numpy as np

from .. import reading
from ..decided import DecisionBefore
from ..errors import SHARED, OptionError, TruthError, pointer
from ..forms import Form
from ..forms import of as form_of
from ..instances import FeatureVector, Floats, Ints, ItemList
from ..json_types import Json
from ..kernel import Table
from ..kernel.elementary import sigmoid
from ..learner import Learner
from ..names import Names
from ..registry import Cost, Spec
from ..results import Outcome, Prediction, Progress, Served
from ..transforms import Transform
from ..truths import Truth
from .draw_records import DrawEvidence, draw_of, draws_of, evidence_of, fingerprint, without_draw
from .exploration import draw
from .presence import SWEEP
from .rewards import Rewards, RewardsMark
from .slots import Slot, chance_for, check_openings, no_item, openings
from .views import ID, Seen, Views


@dataclass(frozen=True, slots=True)
class Drawn:
    """One draw: the item, p of all items, and what is kept of it."""

    item: int
    p: Floats
    kept: dict[str, Json]


@dataclass(frozen=True, slots=True)
class RewardLesson:
    """What one item that was served earned, as a share of the range."""

    context: FeatureVector | None
    item: int
    reward: float
    evidence: DrawEvidence | None


class ChoiceLearner(Learner):
    """See `build`."""

    model: Rewards

    def __init__(self, spec: Spec, model: Rewards) -> None:
        self.spec = spec
        self.model = model
        self.teacher: int = 0
        self.form: Form = form_of(spec["task"])
        self.version: int = 0
        self.progress: Progress = Progress()
        self.transform: Transform = Transform({"normalize": "none", "bias": False})
        self.labels: Names = Names()
        self.features: Table = Table()
        self.costs: dict[tuple[int, ...], Cost] = {}
        self._own = fingerprint(spec)
        self.grow()

    def grow(self, fresh: int = 0) -> None:
        """Give the names that have joined, or were loaded, their places."""
        self._views = Views(self.model, self.features)

    # ---- predicting

    def predict(
        self,
        instance: object,
        *,
        top: int | None = None,
        explain: bool = False,
        loss: str | None = None,
        min_margin: float | None = None,
        exclude: Sequence[str] = (),
        chance: float | None = None,
    ) -> Prediction:
        """Choose an item of `{"items": ..., "features": ...}`, but none of `exclude`.

        `chance` in [0, 1) settles the draw; without it, a hash of the version and the ids does.
        """
        if self.teacher not in (0, get_ident()):
            raise RuntimeError(SHARED)
        self.model.offers(loss)
        if min_margin is not None:
            raise OptionError(
                "is not available for the task choice, which never abstains", pointer("min_margin")
            )
        reading.options(top, None)
        parsed = self._parse(instance)
        if chance is None:
            text = "\0".join([str(self.version), *parsed.ids]).encode()
            chance = int.from_bytes(blake2b(text, digest_size=6).digest(), "big") / 2.0**48
        first, drawn = self._draws(parsed, exclude, chance)
        order = (-first.scores).argsort(kind="stable")
        if top is not None:
            order = order[:top]
        ids, kept = parsed.ids, [one.kept for one in drawn]
        named = [(ids[one.item], float(one.p[one.item])) for one in drawn]
        slots = [(slot.id, *name) for slot, name in zip(parsed.slots, named, strict=False)]
        prediction = Prediction(
            self.form,
            list(zip(map(ids.__getitem__, order.tolist()), first.scores[order].tolist(), strict=True)),
            None,
            slots or named[0],
        )
        prediction.probabilities = drawn[0].p[order].tolist()
        prediction.draw = {"slots": kept} if slots else kept[0]
        if explain:
            prediction.contributions = [self._views.parts(first, i) for i in order.tolist()]
        return prediction

    def _draws(self, parsed: ItemList, exclude: Sequence[str], chance: float) -> tuple[Seen, list[Drawn]]:
        """What the first draw sees, and the draw of every slot; without slots there is one."""
        slots = parsed.slots or (Slot("", parsed.context),)
        ids = parsed.ids
        everywhere = self._allowed(ids, exclude)
        allowed = [everywhere * self._allowed(ids, slot.exclude) for slot in slots]
        free, drawn = np.ones(len(ids)), list[Drawn]()
        first = seen = self._views.see(parsed, slots[0].context, self.pairs)
        for i, slot in enumerate(slots):
            if i:
                seen = self._views.under(first, slot.context, self.pairs)
            options = openings(allowed, i, free)
            check_openings(options, slot if parsed.slots else None, i)
            baseline = ids.index(slot.baseline) if slot.baseline is not None else -1
            if baseline < 0 or not options[baseline]:
                baseline = int(options.argmax())
            p, policy = self.model.probabilities(sigmoid(seen.scores), options, baseline, self.pairs)
            item = draw(p, chance_for(chance, i))
            shut = exclude if not parsed.slots else [ids[j] for j in np.flatnonzero(options == 0.0).tolist()]
            drawn.append(Drawn(item, p, draw_of(p, shut, self._beside(ids, policy, item, baseline))))
            free[item] = 0.0
        return first, drawn

    def _beside(
        self, ids: Sequence[str], policy: Floats, chosen: int, baseline: int
    ) -> dict[str, Json] | None:
        """What is kept of the baseline that an item was drawn beside."""
        apprentice = self.model.apprentice
        if not apprentice.share:
            return None
        return {
            "id": ids[baseline],
            "share": apprentice.present_share,
            "policy": [float(policy[chosen]), float(policy[baseline])],
            "since": apprentice.phase.since,
            "by": self._own,
        }

    @property
    def pairs(self) -> int:
        """Rewards learned from: an event of slots may have several."""
        return self.version + self.model.more

    def _allowed(self, ids: Sequence[str], exclude: Sequence[str]) -> Floats:
        allowed = np.ones(len(ids))
        if not exclude:
            return allowed
        index = {name: i for i, name in enumerate(ids)}
        for i, name in enumerate(exclude):
            if name not in index:
                raise OptionError(no_item(name), pointer("exclude", i))
            allowed[index[name]] = 0.0
        return allowed

    # ---- learning

    def check_truth(
        self, parsed: FeatureVector | ItemList, truth: object, served: Served | None = None
    ) -> None:
        """Refuse what `learn` would refuse."""
        self._lessons(parsed, self.form.truth_of(self.spec, truth, parsed), served)

    def _lessons(
        self, parsed: FeatureVector | ItemList, truth: Truth, served: Mapping[str, Any] | None
    ) -> list[RewardLesson]:
        """What the items that were served earned; of slots, those that have a reward, or a default one."""
        assert isinstance(parsed, ItemList)
        if served is None:
            raise TruthError(
                "a reward needs the item that was served: send `prediction_id` or `served`", "/served"
            )
        self.form.decision.check(without_draw(served))
        if ("slots" in served) != bool(parsed.slots):
            raise TruthError("must have an entry in `slots` for each slot, and only for slots", "/served")
        contexts = {slot.id: slot.context for slot in parsed.slots} or {"": parsed.context}
        rewards = {"": truth.reward} if truth.rewards is None else truth.rewards
        lessons, ids = list[RewardLesson](), list(parsed.ids)
        shown = draws_of(served)
        for i, one in enumerate(shown):
            slot = one.get("slot", "")
            place = ("served", "slots", i, "choice") if parsed.slots else ("served", "id")
            if slot not in contexts:
                raise TruthError(f"the choice had no slot {slot!r}", pointer(*place[:-1], "id"))
            if one["id"] not in ids:
                raise TruthError(no_item(one["id"]), pointer(*place))
            reward = rewards.get(slot, self.spec["default_reward"])
            if reward is not None:
                evidence = evidence_of(one, self._own)
                scaled = self.model.scaled(reward)
                lessons.append(RewardLesson(contexts[slot], ids.index(one["id"]), scaled, evidence))
        if strange := rewards.keys() - {one.get("slot", "") for one in shown}:
            raise TruthError("nothing was served in this slot", pointer("reward", min(strange)))
        return lessons

    def learn(
        self,
        instance: object,
        truth: object,
        *,
        served: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        judged: DecisionBefore | None = None,
    ) -> Outcome:
        """The reward of the item that was served: `served` holds its `id` and its `probability`."""
        parsed, answer = reading.event(self.spec, instance, truth)
        reading.check_vector(self, parsed)
        weight = reading.weight(weight)
        lessons = self._lessons(parsed, answer, served)
        assert isinstance(parsed, ItemList)
        names = len(self.features), self._views.sizes(), self.features.events
        # No call between these lines, so that no other thread comes between; none at the end, so that it cannot fail.
        thread = get_ident()
        if self.teacher not in (0, thread):
            raise RuntimeError(SHARED)
        before, self.teacher = self.teacher, thread
        try:
            mark = self.model.mark()
            try:
                return self._reward_round(parsed, lessons, weight)
            except BaseException:
                self._take_back(mark, names)
                raise
        finally:
            self.teacher = before

    def _reward_round(self, parsed: ItemList, lessons: Sequence[RewardLesson], weight: float) -> Outcome:
        counted, earlier = list[tuple[Seen, int, Ints]](), list[int]()
        if self.pairs // SWEEP < (self.pairs + len(lessons)) // SWEEP:
            self.model.age(self.pairs)
        for lesson in lessons:
            seen = self._views.see(parsed, lesson.context, self.pairs)
            seen.scores[earlier] = -np.inf
            best = int(seen.scores.argmax())
            rows, x, columns, a = self._views.pair(seen, lesson.item, self.features)
            self.model.learn_pair(rows, x, columns, a, lesson.reward, weight)
            self.model.record(rows, int(columns[-1]), lesson.reward, lesson.item != best, self.pairs)
            counted.append((seen, lesson.item, columns))
            earlier.append(lesson.item)
        proofs = [(one.evidence, one.reward) for one in lessons if one.evidence is not None]
        if proofs:
            self.model.apprentice.add(proofs, self.version + 1)
        loss = 1.0 - sum(lesson.reward for lesson in lessons) / len(lessons)
        # Ready before the counts: behind them nothing can fail.
        after, outcome = self.progress.after(loss), Outcome(loss, loss > 0.0, True, loss)
        after.updates += 1
        more = self.model.more + len(lessons) - 1
        for seen, item, columns in counted:
            self._views.count(seen, item, columns)
        self.features.events += 1
        self.progress = after
        self.model.more = more
        self.version += 1
        return outcome

    def _take_back(self, mark: RewardsMark, names: tuple[int, tuple[int, int], int]) -> None:
        """An event that failed leaves no trace: names leave again, counts and weights go back."""
        features, views, events = names
        self.features.events = events
        self.model.rewind(mark)
        self.features.forget(features)
        self._views.forget(views)

    # ---- seeing

    def _parse(self, instance: object) -> ItemList:
        parsed = reading.fitting(self, instance)
        assert isinstance(parsed, ItemList)
        return parsed

    def describe(self) -> dict[str, Json]:
        """The parts of the contract's Progress, and what a choice has to tell beyond."""
        columns = list(self._views.columns)
        return {
            "spec": self.spec,
            "version": self.version,
            "labels": [],
            "features": len(self.features),
            "bytes": self.nbytes(),
            "progress": self.progress.to_json(),
            "certificate": self.certificate,
            "choice": self.model.describe(
                [name[1:] for name in columns], [name[0] == ID for name in columns]
            ),
        }

    def nbytes(self) -> int:
        """Memory taken, roughly."""
        return self.model.nbytes() + 2 * self.features.nbytes()
