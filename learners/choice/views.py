"""A list of items as the weights see it: context and items scaled, their places in W, their scores.

s(a) = sum over the item's features and its id of (x' W), x the context with its constant.

Names of contexts, item features and ids are kept in one list with a mark in front, and in one index for each kind: a word
may belong to the query and to an item.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..instances import EMPTY, FeatureVector, Floats, Ints, ItemList
from ..kernel import Table
from ..kernel.elementary import row_total
from ..kernel.table import part_names
from ..scaling import ScaledVector
from .item_scaling import scaled_rows
from .rewards import Rewards

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
    places: Ints  # of the ids
    scores: Floats


class Views:
    """The places of names in W, and what is seen by them."""

    model: Rewards
    contexts: Table
    columns: Table

    def __init__(self, model: Rewards, names: Iterable[str]) -> None:
        self.model, self.contexts, self.columns = model, Table(), Table()
        for name in names:
            if name[:1] == CONTEXT:
                self.contexts.add(name[1:])
            elif name[:1] in (FEATURE, ID, PART):
                self.columns.add(name)
            else:
                raise ValueError("a name has no mark of what it names")
        self._room()

    def _room(self) -> None:
        self.model.grow_to(1 + len(self.contexts), len(self.columns))

    def sizes(self) -> tuple[int, int]:
        """What `forget` needs to let names go again."""
        return len(self.contexts), len(self.columns)

    def forget(self, sizes: tuple[int, int]) -> None:
        """Only so many names stay."""
        self.contexts.forget(sizes[0])
        self.columns.forget(sizes[1])

    def see(self, parsed: ItemList, context: FeatureVector | None, events: int) -> Seen:
        """The items under one context."""
        raw = parsed.values if isinstance(parsed.values, np.ndarray) else parsed.values.toarray()
        names = [FEATURE + name for name in parsed.names]
        if parsed.vectors is not None:
            names += part_names(parsed.width)
            raw = np.hstack([raw, parsed.vectors])
        features = self.columns.rows(names)
        ids = self.columns.rows([ID + name for name in parsed.ids])
        scaled = scaled_rows(self.model.items, features, raw, events)
        words = self._words(context, events)
        scores = self._scores(words, features, scaled, ids)
        return Seen(parsed.ids, names, parsed.width, words, features, scaled, raw, ids, scores)

    def under(self, seen: Seen, context: FeatureVector | None, events: int) -> Seen:
        """The same items under another context."""
        words = self._words(context, events)
        return replace(
            seen, context=words, scores=self._scores(words, seen.features, seen.values, seen.places)
        )

    def _words(self, context: FeatureVector | None, events: int) -> ScaledVector:
        look = self.contexts.look(context or _NO_CONTEXT)
        return self.model.contexts.vector(look, len(self.contexts), events)

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

    def parts(self, seen: Seen, item: int) -> dict[str, float]:
        """What each pair adds to the score of an item; a pair with the constant has the item's own name."""
        contexts = ["", *(self.contexts[row] for row in seen.context.rows.tolist())]
        active = np.flatnonzero(seen.values[item]).tolist()
        own = [(_shown(seen.names[j]), int(seen.features[j]), float(seen.values[item, j])) for j in active]
        own.append((f"id {seen.ids[item]}", self.columns.find(ID + seen.ids[item]), 1.0))
        rows, x = self._context(seen.context)
        parts: dict[str, float] = {}
        for name, column, value in own:
            if column < 0:
                continue
            for context, part in zip(
                contexts,
                (x * self.model.weights.block(rows, np.array([column]))[:, 0] * value).tolist(),
                strict=True,
            ):
                if part:
                    pair = f"{context} * {name}" if context else name
                    parts[pair] = parts.get(pair, 0.0) + part
        return parts

    def pair(self, seen: Seen, item: int, features: Table) -> tuple[Ints, Floats, Ints, Floats]:
        """The pair that was served, every name of it known by now."""
        if seen.context.look.fresh:
            for name in seen.context.look.unknown:
                features.add(CONTEXT + name)
            seen.context = seen.context.joined(self.contexts.join(seen.context.look))
        active = np.flatnonzero(seen.raw[item])
        if seen.width and not features.vector[1]:
            features.add_vector(seen.width)
            for name in part_names(seen.width):
                self.columns.add(name)
        columns = [self._column(seen.names[j], features) for j in active.tolist()]
        columns.append(self._column(ID + seen.ids[item], features))
        self._room()
        rows, x = self._context(seen.context)
        return rows, x, np.array(columns, dtype=np.intp), np.concatenate((seen.values[item, active], [1.0]))

    def _column(self, name: str, features: Table) -> int:
        if name[0] != PART:  # whose parts have joined together
            features.add(name)
        return self.columns.add(name)

    def count(self, seen: Seen, item: int, columns: Ints) -> None:
        """One more event with this context and this item."""
        self.model.contexts.count(seen.context, len(self.contexts))
        raw = seen.raw[item]
        self.model.items.count(ScaledVector(columns[:-1], EMPTY, raw=raw[raw != 0.0]), len(self.columns))


def _shown(name: str) -> str:
    """What a reply calls a feature of an item, which has a mark in front."""
    return name[1:] if name[0] == FEATURE else name.replace(":", "")
