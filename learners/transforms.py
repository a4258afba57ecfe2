"""From names to rows, and what happens to features before the weights see them: weighting, normalize, bias.

    weighting  idf   x_j  <- x_j (1 + log(1 + n) - log(1 + n_j))     n events learned so far, n_j of them with feature j
    normalize  unit  x    <- x / ||x||
               blocks     half of that, half by blocks of features and what they are worth (`blocks.py`)
               list  X_ij <- (X_ij - min_i X_ij) / (max_i - min_i)   within the list; a constant feature becomes 0
    normalize  auto  each feature by what was learned from so far: scaling.py
    context          of a list: each of its features times each feature of the context, beside its own, after scaling
    bias             one more feature of value 1, after all scaling

Of a vector, the table of the features (`kernel.Table`) does all but blocks. Its counts n, n_j are state: they change by
learning only, after the round is judged, so that a prediction and the judgement of the same round see the same x.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import sparse
from .blocks import Blocks, BlocksMark
from .errors import InstanceError
from .instances import EMPTY, FeatureVector, Floats, Ints, ItemList, Matrix, Vector, ones
from .kernel import LookedUp, Table, list_scaled
from .kernel.reference import BIAS
from .kernel.table import part_names
from .model import Model
from .scaling import ScaledVector, Scaling
from .sparse import Csr
from .weights.linear import Named

__all__ = ["ALL_KNOWN", "BIAS", "Transform", "UnknownFeatures"]


@dataclass(slots=True)
class UnknownFeatures:
    """Features of an instance that the learner does not know yet: they join if it is learned. `values` are scaled.

    The last `late` of them are the parts of a vector.
    """

    names: Sequence[str]
    values: Floats | Csr
    served: Floats | Csr | None = None  # of all items of a served list, where only some of them count
    late: int = 0


ALL_KNOWN = UnknownFeatures((), EMPTY)


class Transform:
    """Turns what was read into the x that the model scores. The state is the table's."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.idf: Any = spec.get("weighting") == "idf"
        self.normalize: str = spec["normalize"]
        self.bias: bool = spec["bias"]
        self.scaling: Scaling | None = None
        if self.normalize == "auto":
            self.scaling, self.idf = Scaling(self.idf, self.bias), False
        named: bool = spec.get("label_words", False)
        self.blocks: Blocks | None = Blocks(named, self.bias) if self.normalize == "blocks" else None
        self._before: BlocksMark | None = None
        self._columns: tuple[Sequence[str], int, Ints] = ((), 0, np.empty(0, dtype=np.intp))

    def table(self) -> Table:
        """The table of the features, empty."""
        features = Table(idf=self.idf, unit=self.normalize == "unit", bias=self.bias)
        if self.blocks is not None:
            self.blocks.grow(features)
        return features

    # ---- one vector

    def vector(self, words: FeatureVector, features: Table) -> Vector:
        """x on the features that are known, and on the rest."""
        x = features.look(words)
        if self.scaling is not None:
            return self.scaling.vector(x, len(features), features.events)
        if self.blocks is None:
            return x
        first = int(self.bias)
        values, rest = self.blocks.scaled(x.rows[first:], x.values[first:], x.unknown, x.unseen)
        return LookedUp(x.rows, np.concatenate((x.values[:first], values)), rest, x.unknown, x.late)

    # ---- a list

    def matrix(self, item_list: ItemList, features: Table) -> tuple[Matrix, UnknownFeatures]:
        """X on the features that are known, and the rest."""
        rows, names = self._rows(item_list.names, features), item_list.names
        values, vectors, late = self._scaled(item_list.values), None, 0
        if item_list.vectors is not None:
            vectors = self._scaled(item_list.vectors)
        if item_list.context is not None:
            crossed = self._crossed(item_list, item_list.context, values, vectors, features)
            rows, values, names = np.concatenate((rows, crossed[0])), hstack(values, crossed[1]), crossed[2]
        if vectors is not None:  # last, so that they join behind the named features
            first, width = features.vector
            late = 0 if width else item_list.width
            block = np.arange(first, first + width) if width else np.full(late, -1)
            rows, values = np.concatenate((rows, block)), hstack(values, vectors)
            names = [*names, *part_names(item_list.width)]
        unknown, norms = ALL_KNOWN, EMPTY
        if rows.size and rows[rows.argmin()] < 0:
            joined = rows >= 0
            rest = values[:, ~joined]
            unknown = UnknownFeatures([names[i] for i in np.flatnonzero(~joined).tolist()], rest, late=late)
            norms = Matrix(rows, rest).squared_norms()
            rows, values = rows[joined], values[:, joined]
        if self.bias:
            rows, values = np.concatenate(([0], rows)), hstack(np.ones((len(item_list.ids), 1)), values)
        return Matrix(rows, values, norms), unknown

    def _scaled(self, values: Floats | Csr) -> Floats | Csr:
        """The named features of all items, or their vectors, by themselves."""
        if self.normalize == "unit":
            return _unit_rows(values)
        return _list_columns(values) if self.normalize == "list" else values

    def _crossed(
        self,
        item_list: ItemList,
        context: FeatureVector,
        values: Floats | Csr,
        vectors: Floats | Csr | None,
        features: Table,
    ) -> tuple[Ints, Floats | Csr, Sequence[str]]:
        """For each feature of the context, as it is, its products with all features of the items; the names of all."""
        about = dict.fromkeys(context.names) if context.values is None else context.names
        scales = ones(len(about)) if context.values is None else context.values
        own = [*item_list.names, *(f"vector[{i}]" for i in range(item_list.width))]
        products = [f"{feature} * {name}" for feature in about for name in own]
        names = [*item_list.names, *products]
        if len(set(names)) < len(names):
            raise InstanceError(
                "a product with a feature of the items has the name of another feature", "/features"
            )
        if vectors is not None:
            values = hstack(values, vectors)
        if not products:
            crossed: Floats | Csr = np.zeros((len(item_list.ids), 0))
        elif isinstance(values, np.ndarray):
            crossed = np.hstack([values * scale for scale in scales.tolist()])
        else:
            crossed = sparse.csr_array(sparse.hstack([values * scale for scale in scales.tolist()]))
        return features.rows(products), crossed, names

    def _rows(self, names: Sequence[str], features: Table) -> Ints:
        # Numbered features come as one shared tuple: they are looked up once.
        if self._columns[0] is not names or self._columns[1] != len(features):
            rows = features.rows(names)
            self._columns = (names, len(features), rows)
        return self._columns[2]

    # ---- learning

    def join(self, x: Vector | Matrix, unknown: UnknownFeatures, features: Table) -> Vector | Matrix:
        """x with every feature known: the unknown ones join, behind all others."""
        if isinstance(x, ScaledVector):
            return x.joined(features.join(x.look))
        if not isinstance(x, Matrix):
            joined = features.join(x)  # type: ignore[arg-type]
            if self.blocks is not None:
                self.blocks.grow(features)
            return joined
        named = unknown.names[: len(unknown.names) - unknown.late]
        rows = np.array([features.add(name) for name in named], dtype=np.intp)
        late = np.arange(unknown.late) + features.add_vector(unknown.late) if unknown.late else rows[:0]
        every = np.concatenate((x.rows, rows, late))
        served = x.served
        if served is not None and unknown.served is not None:
            served = hstack(served[0], unknown.served), served[1]
        return Matrix(every, hstack(x.values, unknown.values), served=served)

    def attend(self, model: Model) -> None:
        """Have the model tell the blocks of its steps, and give it what words of labels' names say."""
        blocks, weights = self.blocks, getattr(model, "weights", None)
        if blocks is None:
            return
        named = weights if isinstance(weights, Named) else None
        if named is not None:
            named.blocks = blocks

        def witness(scored: Vector | Matrix, g: Floats) -> None:
            parts = model.contributions(scored) if named is None else named.by_feature(scored)
            if parts is not None and not isinstance(scored, Matrix):
                blocks.judge(scored, parts, g)

        model.witness = witness

    def name_labels(self, names: Sequence[str], features: Table) -> None:
        """These are the labels by now."""
        if self.blocks is not None:
            self.blocks.name_labels(names, features)

    def count(self, x: Vector | Matrix, features: Table) -> None:
        """One more event; every feature of x is known by now."""
        if isinstance(x, Matrix):
            features.events += 1
        elif self.scaling is not None and isinstance(x, ScaledVector):
            self.scaling.count(x, len(features))
            features.events += 1
        else:
            features.count(x)

    def uncount(self, x: Vector | Matrix | None, features: Table) -> None:
        """Take the last `count` back."""
        if isinstance(x, Matrix) or self.scaling is not None:
            features.events -= 1
        else:
            features.uncount(x)  # type: ignore[arg-type]

    def mark(self) -> None:
        """An event begins: `rewind` takes back what is counted from now on."""
        if self.scaling is not None:
            self.scaling.mark()
        if self.blocks is not None:
            self._before = self.blocks.mark()

    def rewind(self, x: Vector | Matrix | None, features: Table, count: int, events: int) -> None:
        """As it was with so many features and events; x is what was counted since, if anything was."""
        if self.scaling is not None:
            self.scaling.uncount()
        if self.blocks is not None and self._before is not None:
            self.blocks.rewind(self._before)
        if features.events > events:
            self.uncount(x, features)
        features.forget(count)


def hstack(left: Floats | Csr, right: Floats | Csr) -> Floats | Csr:
    """Side by side: sparse if one of them is."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.hstack([left, right])
    return sparse.csr_array(sparse.hstack([left, right], format="csr"))


def _unit_rows(values: Floats | Csr) -> Floats | Csr:
    if not isinstance(values, np.ndarray):
        top = abs(values).max(axis=1).toarray().ravel()
        values = sparse.diags_array(1 / np.where(top > 0, top, 1)) @ values
        norms = np.sqrt(Matrix(EMPTY.astype(np.intp), values).squared_norms())
        return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ values)
    top = np.abs(values).max(axis=1, initial=0.0)
    values = values / np.where(top > 0, top, 1)[:, None]
    norms = np.sqrt((values * values).sum(axis=1))
    return values / np.where(norms > 0, norms, 1)[:, None]


def _list_columns(values: Floats | Csr) -> Floats | Csr:
    if not isinstance(values, np.ndarray):
        # Zeros stay zeros where a feature's least value is 0; elsewhere the shift fills the column.
        low = values.min(axis=0).toarray().ravel()
        if low.any():
            return _list_columns(values.toarray())
        high = values.max(axis=0).toarray().ravel()
        return sparse.csr_array(values @ sparse.diags_array(1 / np.where(high > 0, high, 1)))
    return list_scaled(values)
