"""How long rewards are remembered: one share that is forgotten, or several side by side, trusted by what they foretell.

Each memory is a bilinear W (bilinear.py) that forgets another share phi of its precision. On every reward r of a pair,
before the step,

    l_k = log(1 + e^s_k) - r s_k,      v_k <- v_k e^-l_k,      v <- (1 - a) v / sum v + a / K,      a = `SWITCH`

and the score of an item is that of sum_k v_k W_k. Rewards that stay the same are known best by who forgets nothing, those
that change by who forgets fast; the share a lets the best one change (Herbster and Warmuth 1998). One memory has v = 1.
"""

from collections.abc import Sequence

import numpy as np

from ..instances import Floats, Ints
from ..json_types import Json
from ..kernel.elementary import exp_of, log_of, row_total, total
from ..weights.base import Arrays
from .bilinear import PRIOR, stepped
from .pairs import Numbers, Pairs

AUTO = (0.01, 0.001, 0.0)
SWITCH = 1e-3

MemoriesMark = tuple[Pairs, int, int, int, Floats]


class Memories:
    """The weights of a choice. `trust` is v; `rows`: contexts and the constant; `columns`: features of items and ids."""

    shares: tuple[float, ...]
    prior: float
    rows: int
    columns: int

    def __init__(self, forget: Sequence[float], prior: float = PRIOR) -> None:
        self.shares, self.prior = tuple(forget), prior
        self.trust: Floats = np.full(len(self.shares), 1.0 / len(self.shares))
        self.rows = self.columns = 0
        self.pairs: Pairs = Pairs(len(self.shares), prior)
        self._before: tuple[tuple[Ints, Numbers, Numbers], ...] = ()

    def grow(self, rows: int, columns: int) -> None:
        """So many have joined; a pair of them takes room when it is met."""
        self.rows, self.columns = max(self.rows, rows), max(self.columns, columns)

    def block(self, rows: Ints, columns: Ints) -> Floats:
        """W on these rows and columns, of all memories."""
        numbers = self.pairs.find(rows, columns)
        weights = self.pairs.weights
        mixed: Floats = self.trust.item(0) * weights[0].take(numbers, mode="wrap").astype(np.float64)
        for k in range(1, len(self.shares)):
            mixed += self.trust.item(k) * weights[k].take(numbers, mode="wrap").astype(np.float64)
        mixed[numbers < 0] = 0.0
        return mixed

    def along(self, rows: Ints, x: Floats, columns: Ints) -> Floats:
        """x' W on the named columns, summed over the rows from the first to the last."""
        if not len(rows) or not len(columns):
            return np.zeros(len(columns))
        return row_total(self.block(rows, columns) * x[:, None])

    def step(
        self, rows: Ints, x: Floats, columns: Ints, a: Floats, reward: float, weight: float = 1.0
    ) -> None:
        """Learn that the pair earned `reward`, in [0, 1]."""
        numbers = self.pairs.join(rows, columns)
        f = np.multiply.outer(x, a)
        W, A = self.pairs.weights[:, numbers], self.pairs.precision[:, numbers]
        after = [
            stepped(W[k].astype(np.float64), A[k].astype(np.float64), f, reward, weight, self.prior, share)
            for k, share in enumerate(self.shares)
        ]
        new_W, new_A = (np.stack([one[i] for one in after]) for i in (0, 1))
        if len(after) > 1:
            self.trust = self._trusted(
                [total((W[k].astype(np.float64) * f).ravel()) for k in range(len(after))], reward
            )
        self._before = (*self._before, (numbers, W, A))
        self.pairs.weights[:, numbers] = new_W
        self.pairs.precision[:, numbers] = new_A

    def _trusted(self, scores: Sequence[float], reward: float) -> Floats:
        losses = [softplus(s) - reward * s for s in scores]
        least = min(losses)
        v = self.trust * np.array([exp_of(least - loss) for loss in losses])
        trusted: Floats = (1.0 - SWITCH) * (v / total(v)) + SWITCH / len(v)
        return trusted

    def mark(self) -> MemoriesMark:
        """What `rewind` needs to take back all that follows."""
        self._before = ()
        self.pairs.mark()
        return self.pairs, self.pairs.count, self.rows, self.columns, self.trust

    def rewind(self, mark: MemoriesMark) -> None:
        """As at the mark."""
        pairs, count, self.rows, self.columns, self.trust = mark
        if pairs is self.pairs:
            for numbers, W, A in reversed(self._before):
                pairs.weights[:, numbers], pairs.precision[:, numbers] = W, A
        # Else some had left for others, and nothing was written into the pairs of the mark since.
        self._before, self.pairs = (), pairs
        pairs.rewind(count)

    def leave(self, rows: Ints, columns: Ints) -> None:
        """The pairs of these rows and of these columns weigh nothing any more, and are as if never met."""
        gone = self.pairs.of(rows, columns)
        if gone.any():
            self.pairs = self.pairs.without(gone)

    def describe(self) -> list[Json]:
        """How much each memory is trusted."""
        return [
            {"forget": share, "weight": v} for share, v in zip(self.shares, self.trust.tolist(), strict=True)
        ]

    def arrays(self) -> Arrays:
        """The pairs by row and column, with a row of weights and of precision for each memory."""
        pairs = self.pairs
        order = pairs.keys[: pairs.count].argsort(kind="stable")
        state: Arrays = {
            "pairs": pairs.keys[order],
            "weights": pairs.weights[:, order],
            "precision": pairs.precision[:, order],
        }
        return state | ({"trust": self.trust} if len(self.shares) > 1 else {})

    def modern(self, arrays: Arrays) -> Arrays:
        """Arrays of a release that kept a matrix of all rows and columns."""
        if "pairs" in arrays:
            return arrays
        weights, precision = arrays["weights"], arrays["precision"]
        if weights.shape != (self.rows, self.columns) or precision.shape != weights.shape:
            raise ValueError("weights and their precision differ in shape, or do not fit the names")
        rows, columns = ((weights != 0.0) | (precision != self.prior)).nonzero()
        return {
            **arrays,
            "pairs": (rows.astype(np.int64) << 32) | columns,
            "weights": weights[rows, columns][None],
            "precision": precision[rows, columns][None],
        }

    def restore(self, arrays: Arrays) -> None:
        """All as it was."""
        keys, weights, precision = arrays["pairs"], arrays["weights"], arrays["precision"]
        shape = (len(self.shares), len(keys))
        if {weights.dtype, precision.dtype} != {np.dtype(self.pairs.dtype)}:
            raise ValueError("the weights or their precision have another type")
        if keys.dtype != np.int64 or keys.ndim != 1 or weights.shape != shape or precision.shape != shape:
            raise ValueError("the pairs, their weights and their precision differ in shape")
        rows, columns = keys >> 32, keys & 0xFFFFFFFF
        if len(keys) and (
            int(rows.max()) >= self.rows
            or int(columns.max()) >= self.columns
            or int(rows.min()) < 0
            or not (keys[1:] > keys[:-1]).all()
        ):
            raise ValueError("the pairs do not fit the names, or do not ascend")
        if not (precision > 0.0).all():
            raise ValueError("a precision is not above 0")
        if len(self.shares) > 1:
            trust = np.array(arrays["trust"])
            if trust.shape != self.trust.shape or not (trust > 0.0).all():
                raise ValueError("the trust in the memories is not above 0")
            self.trust = trust
        self.pairs = Pairs(len(self.shares), self.prior)
        self.pairs.restore(np.array(keys), np.array(weights), np.array(precision))

    def nbytes(self) -> int:
        """Memory taken."""
        return self.pairs.nbytes()


def softplus(s: float) -> float:
    """log(1 + e^s)."""
    return max(s, 0.0) + log_of(1.0 + exp_of(-abs(s)))
