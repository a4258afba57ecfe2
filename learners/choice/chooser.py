"""The learner of `choice`: a context and items in, one item drawn with a known probability, a reward back.

Predicting draws and changes nothing; learning reads what was served from the event and never draws, so that a log gives
the same weights whoever folds it. A value of 0 of an item's feature is the same as the feature left out.

Names of contexts, item features and ids are kept in one list with a mark in front, and in one index for each kind: a word
may belong to the query and to an item.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from .. import reading
from ..errors import OptionError, TruthError, pointer
from ..forms import of as form_of
from ..instances import EMPTY, FeatureVector, Floats, Ints, ItemList
from ..json_types import Json
from ..kernel import Table
from ..kernel.elementary import row_total, sigmoid
from ..kernel.table import part_names
from ..learner import Learner
from ..names import Names
from ..registry import Spec
from ..results import Outcome, Prediction, Progress, Served
from ..scaling import ScaledVector
from ..transforms import Transform
from .draw_records import DrawEvidence, draw_of, evidence_of, fingerprint, without_draw
from .exploration import draw
from .item_scaling import scaled_rows
from .rewards import Rewards, RewardsMark

CONTEXT, FEATURE, ID = "c", "f", "i"
PART = part_names(1)[0][0]  # of a vector: no other mark
CONSTANT = 0.2
_NO_CONTEXT = FeatureVector((), EMPTY)


@dataclass(slots=True)
class Seen:
    """An instance as the weights see it. Places are rows (contexts) and columns (features, ids) of W, -1 if unknown.

    `names` of features have their mark in front; the last `width` are the parts of a vector.
    """

    ids: Sequence[str]
    names: Sequence[str]
    width: int
    context: ScaledVector
    features: Ints
    values: Floats
    raw: Floats
    scores: Floats


class ChoiceLearner(Learner):
    """See `build`."""

    model: Rewards

    def __init__(self, spec: Spec, model: Rewards) -> None:
        self.spec = spec
        self.model = model
        self.form = form_of(spec["task"])
        self.version = 0
        self.progress = Progress()
        self.transform = Transform({"normalize": "none", "bias": False})
        self.labels = Names()
        self.features = Table()
        self.costs = {}
        self._own = fingerprint(spec)
        self.grow()

    def grow(self, fresh: int = 0) -> None:
        """Give the names that have joined, or were loaded, their places."""
        self._contexts, self._columns = Table(), Table()
        for name in self.features:
            if name[:1] == CONTEXT:
                self._contexts.add(name[1:])
            elif name[:1] in (FEATURE, ID, PART):
                self._columns.add(name)
            else:
                raise ValueError("a name has no mark of what it names")
        self._room()

    def _room(self) -> None:
        self.model.grow_to(1 + len(self._contexts), len(self._columns))

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
        self.model.offers(loss)
        if min_margin is not None:
            raise OptionError(
                "is not available for the task choice, which never abstains", pointer("min_margin")
            )
        if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
            raise OptionError("must be a whole number of at least 1", pointer("top"))
        parsed = self._parse(instance)
        allowed = self._allowed(parsed.ids, exclude)
        seen = self._see(parsed)
        p, policy = self.model.probabilities(sigmoid(seen.scores), allowed, self.version)
        if chance is None:
            text = "\0".join([str(self.version), *parsed.ids]).encode()
            chance = int.from_bytes(blake2b(text, digest_size=6).digest(), "big") / 2.0**48
        chosen = draw(p, chance)
        order = (-seen.scores).argsort(kind="stable")
        if top is not None:
            order = order[:top]
        prediction = Prediction(
            self.form,
            [(parsed.ids[i], float(seen.scores[i])) for i in order.tolist()],
            None,
            (parsed.ids[chosen], float(p[chosen])),
        )
        prediction.probabilities = p[order].tolist()
        prediction.draw = draw_of(p, exclude, self._beside(parsed.ids, policy, chosen, allowed))
        if explain:
            prediction.contributions = [self._parts(seen, i) for i in order.tolist()]
        return prediction

    def _beside(
        self, ids: Sequence[str], policy: Floats, chosen: int, allowed: Floats
    ) -> dict[str, Json] | None:
        """What is kept of the baseline that an item was drawn beside."""
        apprentice = self.model.apprentice
        if not apprentice.share:
            return None
        baseline = int(allowed.argmax())
        return {
            "id": ids[baseline],
            "share": apprentice.present_share,
            "policy": [float(policy[chosen]), float(policy[baseline])],
            "since": apprentice.phase.since,
            "by": self._own,
        }

    def _allowed(self, ids: Sequence[str], exclude: Sequence[str]) -> Floats:
        allowed = np.ones(len(ids))
        if not exclude:
            return allowed
        index = {name: i for i, name in enumerate(ids)}
        for i, name in enumerate(exclude):
            if name not in index:
                raise OptionError(f"{name!r} is not an item of the list", pointer("exclude", i))
            allowed[index[name]] = 0.0
        if not allowed.any():
            raise OptionError("every item is excluded: nothing is left to choose", pointer("exclude"))
        return allowed

    def _parts(self, seen: Seen, item: int) -> dict[str, float]:
        """What each pair adds to the score of an item; a pair with the constant has the item's own name."""
        contexts = ["", *(self._contexts[row] for row in seen.context.rows.tolist())]
        active = np.flatnonzero(seen.values[item]).tolist()
        own = [
            (self._shown(seen.names[j]), int(seen.features[j]), float(seen.values[item, j])) for j in active
        ]
        own.append((f"id {seen.ids[item]}", self._columns.find(ID + seen.ids[item]), 1.0))
        rows, x = self._context(seen.context)
        parts: dict[str, float] = {}
        for name, column, value in own:
            if column < 0:
                continue
            for context, part in zip(
                contexts, (x * self.model.weights.weights[rows, column] * value).tolist(), strict=True
            ):
                if part:
                    pair = f"{context} * {name}" if context else name
                    parts[pair] = parts.get(pair, 0.0) + part
        return parts

    # ---- learning

    @staticmethod
    def _shown(name: str) -> str:
        """What a reply calls a feature of an item, which has a mark in front."""
        return name[1:] if name[0] == FEATURE else name.replace(":", "")

    def check_truth(
        self, parsed: FeatureVector | ItemList, truth: object, served: Served | None = None
    ) -> None:
        """Refuse what `learn` would refuse."""
        super().check_truth(parsed, truth, served)
        self._item(parsed, served)

    def _item(self, parsed: FeatureVector | ItemList, served: Mapping[str, Any] | None) -> int:
        """The index of the item that was served."""
        assert isinstance(parsed, ItemList)
        if served is None:
            raise TruthError(
                "a reward needs the item that was served: send `prediction_id` or `served`", "/served"
            )
        self.form.decision.check(without_draw(served))
        if served["id"] not in parsed.ids:
            raise TruthError(f"{served['id']!r} is not an item of the list", "/served/id")
        return list(parsed.ids).index(served["id"])

    def learn(
        self, instance: object, truth: object, *, served: Mapping[str, Any] | None = None, weight: float = 1.0
    ) -> Outcome:
        """The reward of the item that was served: `served` holds its `id` and its `probability`."""
        parsed, answer = reading.event(self.spec, instance, truth)
        reading.check_vector(self, parsed)
        weight = reading.weight(weight)
        item = self._item(parsed, served)
        assert isinstance(parsed, ItemList)
        assert served is not None
        reward = self.model.scaled(self.form.decision.encode(answer, {}))
        names = (len(self.features), len(self._contexts), len(self._columns), self.features.events)
        mark = self.model.mark()
        try:
            return self._reward_round(parsed, item, reward, evidence_of(served, self._own), weight)
        except BaseException:
            self._take_back(mark, names)
            raise

    def _reward_round(
        self, parsed: ItemList, item: int, reward: float, evidence: DrawEvidence | None, weight: float
    ) -> Outcome:
        seen = self._see(parsed)
        best = int(seen.scores.argmax())
        rows, x, columns, a = self._served_pair(seen, item)
        self.model.learn_pair(rows, x, columns, a, reward, weight)
        self.model.record(int(columns[-1]), reward, item != best, evidence, self.version + 1)
        # Ready before the counts: behind them nothing can fail.
        after, outcome = (
            self.progress.after(1.0 - reward),
            Outcome(1.0 - reward, reward < 1.0, True, 1.0 - reward),
        )
        after.updates += 1
        self._count(seen, item, columns)
        self.progress = after
        self.version += 1
        return outcome

    def _take_back(self, mark: RewardsMark, names: tuple[int, int, int, int]) -> None:
        """An event that failed leaves no trace: names leave again, counts and weights go back."""
        features, contexts, columns, events = names
        self.features.events = events
        self.model.rewind(mark)
        self.features.forget(features)
        self._contexts.forget(contexts)
        self._columns.forget(columns)

    def _served_pair(self, seen: Seen, item: int) -> tuple[Ints, Floats, Ints, Floats]:
        """The pair that was served, every name of it known by now."""
        if seen.context.look.fresh:
            for name in seen.context.look.unknown:
                self.features.add(CONTEXT + name)
            seen.context = seen.context.joined(self._contexts.join(seen.context.look))
        active = np.flatnonzero(seen.raw[item])
        if seen.width and not self.features.vector[1]:
            self.features.add_vector(seen.width)
            for name in part_names(seen.width):
                self._columns.add(name)
        columns = [self._column(seen.names[j]) for j in active.tolist()]
        columns.append(self._column(ID + seen.ids[item]))
        self._room()
        rows, x = self._context(seen.context)
        return rows, x, np.array(columns, dtype=np.intp), np.concatenate((seen.values[item, active], [1.0]))

    def _column(self, name: str) -> int:
        if name[0] != PART:  # whose parts have joined together
            self.features.add(name)
        return self._columns.add(name)

    def _count(self, seen: Seen, item: int, columns: Ints) -> None:
        self.model.contexts.count(seen.context, len(self._contexts))
        raw = seen.raw[item]
        self.model.items.count(ScaledVector(columns[:-1], EMPTY, raw=raw[raw != 0.0]), len(self._columns))
        self.features.events += 1

    # ---- seeing

    def _parse(self, instance: object) -> ItemList:
        parsed = reading.fitting(self, instance)
        assert isinstance(parsed, ItemList)
        return parsed

    def _see(self, parsed: ItemList) -> Seen:
        words = self._contexts.look(parsed.context or _NO_CONTEXT)
        context = self.model.contexts.vector(words, len(self._contexts), self.version)
        raw = parsed.values if isinstance(parsed.values, np.ndarray) else parsed.values.toarray()
        names = [FEATURE + name for name in parsed.names]
        if parsed.vectors is not None:
            names += part_names(parsed.width)
            raw = np.hstack([raw, parsed.vectors])
        features = self._columns.rows(names)
        ids = self._columns.rows([ID + name for name in parsed.ids])
        scaled = scaled_rows(self.model.items, features, raw, self.version)
        scores = self._scores(context, features, scaled, ids)
        return Seen(parsed.ids, names, parsed.width, context, features, scaled, raw, scores)

    def _context(self, context: ScaledVector) -> tuple[Ints, Floats]:
        """The rows of W and x on them, the constant first."""
        return np.concatenate(([0], context.rows + 1)), np.concatenate(([CONSTANT], context.values))

    def _scores(self, context: ScaledVector, features: Ints, values: Floats, ids: Ints) -> Floats:
        """s(a) = sum over the item's features and its id of (x' W), in the order of the list's features."""
        rows, x = self._context(context)
        known, there = features >= 0, ids >= 0
        along = self.model.weights.along(rows, x, np.concatenate((features[known], ids[there])))
        count = int(np.count_nonzero(known))
        scores = np.zeros(len(ids))
        if count:
            scores = row_total(values.T[known] * along[:count, None])
        scores[there] += along[count:]
        return scores

    def describe(self) -> dict[str, Json]:
        """The parts of the contract's Progress, and what a choice has to tell beyond."""
        return {
            "spec": self.spec,
            "version": self.version,
            "labels": [],
            "features": len(self.features),
            "bytes": self.nbytes(),
            "progress": self.progress.to_json(),
            "certificate": self.certificate,
            "choice": self.model.describe(
                [name[1:] for name in self._columns], [name[0] == ID for name in self._columns]
            ),
        }

    def nbytes(self) -> int:
        """Memory taken, roughly."""
        return self.model.nbytes() + 2 * self.features.nbytes()
