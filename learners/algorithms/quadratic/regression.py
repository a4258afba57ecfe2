"""Ridge regression on targets psi(y), online: after n events the answer of the batch problem at ridge r sqrt(n).

Which form is in use depends on the log alone. With N rows and d features so far, and D the budget:

    kernel    form                                        exact
    linear    rows (dual) from the start; features        while N <= D or d <= D
              (primal) once N >= d, or N > D; back to
              rows while N <= D once d >= 2 N, or d > D
    linear,   features, where those that join after the   no: a feature that joins late shares a coordinate
    N, d > D  D-th are hashed, with a sign, into the      with others, the frequent ones that joined early
              later half of D coordinates                 keep their own
    other     rows                                        while N <= D
    N > D     Nystrom: the first D rows are landmarks,    no: g is sought in the span of k(., landmark); exact
              the coordinates of k(., x) in their span    at the moment of change, when that span holds g
              are features

Nystrom and not random Fourier features, because it changes nothing at the moment of change and adapts to where the
data lie. Memory is O(D^2 + D targets) whatever the length of the stream.
"""

from __future__ import annotations

import math

import numpy as np

from ...instances import Floats, Ints, Matrix
from ...kernel import add_outer, times
from ...weights.base import Arrays, Counters, X, check_rows
from .dual import Dual, KernelFunction, Support, SupportMark, columns_of
from .landmarks import orthonormal
from .resolvent import Resolvent, ResolventMark
from .ridge import Primal, PrimalMark
from .rows import Rows, RowsMark

__all__ = ["BUDGET", "Regression"]

BUDGET = 2048


Lists = tuple[Support, SupportMark, Rows, RowsMark]
Forms = tuple[tuple[Primal, PrimalMark] | None, tuple[Dual, ResolventMark] | None, Floats | None]
RegressionMark = tuple[Lists, Forms, tuple[float, int, int, int]]


class Regression:
    """`predict` before `learn`; `columns` number the targets, in the order in which they joined."""

    def __init__(
        self,
        regularization: float = 1.0,
        bandwidth: float | None = None,
        budget: int | None = None,
        degree: int | None = None,
    ) -> None:
        self.r = regularization
        self.kernel: KernelFunction = KernelFunction(bandwidth, degree)
        self.budget: int = budget or BUDGET
        self.events: float = 0.0
        self.rows: int = 0
        self.targets: int = 0
        self.features: int = 0
        # The rows and their targets, while they are kept; landmarks of a kernel stay.
        self.support: Support = Support(self.kernel)
        self.psi: Rows = Rows()
        self.primal: Primal | None = None
        self.dual: Dual | None = Dual(self.support, self.psi)
        self.basis: Floats | None = None

    @property
    def linear(self) -> bool:
        return self.kernel.linear

    @property
    def form(self) -> str:
        """`rows`, `features`, `hashed` or `landmarks`."""
        if self.primal is None:
            return "rows"
        return "landmarks" if not self.linear else "hashed" if self.features > self.budget else "features"

    @property
    def exact(self) -> bool:
        """Whether the answer is still that of the batch problem."""
        return self.form in ("rows", "features")

    def rho(self) -> float:
        """The ridge: n lambda_n = r sqrt(n)."""
        return self.r * math.sqrt(self.events)

    def predict(self, x: X, columns: Ints) -> Floats:
        """g (rows of x, targets asked); 0 for a target that has not joined."""
        g = np.zeros((x.values.shape[0] if isinstance(x, Matrix) else 1, len(columns)))
        known = columns < self.targets
        if not known.any():
            return g
        if self.primal is not None:
            g[:, known] = self.primal.predict(self._coordinates(x), columns[known], self.rho())
        else:
            assert self.dual is not None
            g[:, known] = self.dual.predict(x, columns[known], self.targets, self.rho())
        return g

    def learn(self, x: X, columns: Ints, values: Floats, weight: float = 1.0) -> None:
        """One event: its rows (one, or the items of a list) with targets `values` (rows, columns); 0 elsewhere.

        It counts as `weight` equal events: S += w f f', B += w psi f', n += w. Rows are kept once, times sqrt(w).
        """
        rows, scale = len(values), math.sqrt(weight)
        if len(columns):
            self.targets = max(self.targets, int(columns.max()) + 1)
        if len(x.rows):
            self.features = max(self.features, int(x.rows.max()) + 1)
        self.events += weight
        self.rows += rows
        self._settle(x, self.rows - rows, scale)
        if self.dual is not None:
            self.dual.learn(x, columns, values, self.rho(), scale)
            return
        assert self.primal is not None
        if self.linear:
            self.primal.grow(min(self.features, self.budget), self.targets)
            if self.rows > self.budget:
                self.support, self.psi = Support(self.kernel), Rows()
            else:
                self.support.append(x, scale)
                self.psi.extend(columns, scale * values)
        else:
            self.primal.grow(self.primal.resolvent.size, self.targets)
        self.primal.learn(scale * self._coordinates(x), columns, scale * values, self.rho())

    def _settle(self, x: X, before: int, scale: float) -> None:
        """Choose the form for the event x, `before` which there were so many rows. A change needs a count to
        double.
        """
        N, d, D = self.rows, self.features, self.budget
        if self.dual is not None:
            if not self.linear and N > D:
                self._to_landmarks(x, before, scale)
            elif self.linear and (d <= N or N > D):
                self._to_features()
        elif self.linear and N <= D and (d >= 2 * N or d > D):
            self.dual, self.primal = Dual(self.support, self.psi, self.rho()), None

    def _to_features(self) -> None:
        size = min(self.features, self.budget)
        rows = self.support.scaled_rows(self.features)
        if self.features > self.budget:
            F = np.zeros((size, len(self.support)))
            at, sign = self._places(np.arange(self.features))
            np.add.at(F, at, sign[:, None] * rows.toarray().T)
        else:
            F = rows.toarray().T
        self._start_primal(F)

    def _to_landmarks(self, x: X, before: int, scale: float) -> None:
        """The first D rows, of which `before` were learned, become landmarks, and a basis of their span."""
        self.support.append(x, scale)
        self.support.keep(self.budget)
        K = self.support.gram()
        self.basis = orthonormal(K)
        self._start_primal(times(self.basis, K[:, :before]))
        self.psi = Rows()

    def _start_primal(self, F: Floats) -> None:
        """S = F F', B = Psi' F' on the rows learned so far."""
        B = self.psi.matrix(self.targets).T @ F.T
        self.primal = Primal(Resolvent.of(_square(F), self.rho()), np.ascontiguousarray(B))
        self.dual = None

    def _coordinates(self, x: X) -> Floats:
        """x as the primal form sees it: columns (coordinates, rows of x)."""
        assert self.primal is not None
        size = self.primal.resolvent.size
        if self.basis is not None:
            return times(self.basis, self.support.cross(x))  # type: ignore[no-any-return]
        if size == self.features or not len(x.rows) or x.rows.max() < size:
            dense = columns_of(x, size)
            return dense.toarray() if not isinstance(dense, np.ndarray) else dense
        full = columns_of(x, self.features)
        if not isinstance(full, np.ndarray):
            full = full.toarray()
        rows = np.unique(x.rows[x.rows < self.features])
        at, sign = self._places(rows)
        F = np.zeros((size, full.shape[1]))
        np.add.at(F, at, sign[:, None] * full[rows])
        return F

    def _places(self, rows: Ints) -> tuple[Ints, Floats]:
        """The coordinate and the sign of each feature: its own below the budget, a hashed one beyond."""
        half = self.budget // 2
        h = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
        late = rows >= self.budget
        at = np.where(late, half + (h >> np.uint64(1)) % np.uint64(self.budget - half), rows)
        sign = np.where(late & (h & np.uint64(1) == 1), -1.0, 1.0)
        return at.astype(np.intp), sign

    def contributions(self, x: X, T: Floats) -> Floats | None:
        """x_f W[f, c] for the functionals T (c, targets): (active features, c), or (rows, active features) of a
        list, c = 1.
        """
        if not self.linear:
            return None
        if not self.events:
            W = np.zeros((len(x.rows), len(T)))
        elif self.dual is not None:
            W = self._at(self.dual.weights(T, self.rho()), x.rows, np.ones(len(x.rows)))
        else:
            assert self.primal is not None
            at, sign = self._places(x.rows)
            W = self._at(
                self.primal.weights(T, self.rho()), np.where(x.rows < self.features, at, self.features), sign
            )
        if not isinstance(x, Matrix):
            return x.values[:, None] * W
        values = x.values if isinstance(x.values, np.ndarray) else x.values.toarray()
        return values * W[:, 0]

    @staticmethod
    def _at(W: Floats, at: Ints, sign: Floats) -> Floats:
        known = at < len(W)
        return np.where(known, sign, 0.0)[:, None] * W.take(np.where(known, at, 0), axis=0, mode="clip")

    def mark(self) -> RegressionMark:
        """What `rewind` needs. Rows are appended, forms replaced: references will do but for what changes in place."""
        primal = None if self.primal is None else (self.primal, self.primal.mark())
        dual = None if self.dual is None else (self.dual, self.dual.mark())
        lists = self.support, self.support.mark(), self.psi, self.psi.mark()
        return lists, (primal, dual, self.basis), (self.events, self.rows, self.targets, self.features)

    def rewind(self, mark: RegressionMark) -> None:
        """All as it was at the mark."""
        (self.support, support, self.psi, psi), (primal, dual, self.basis), counts = mark
        self.events, self.rows, self.targets, self.features = counts
        self.support.rewind(support)
        self.psi.rewind(psi)
        self.primal = self.dual = None
        if primal is not None:
            self.primal = primal[0]
            self.primal.rewind(primal[1])
        if dual is not None:
            self.dual = dual[0]
            self.dual.rewind(dual[1])

    def _dual(self) -> Dual:
        assert self.dual is not None
        return self.dual

    def arrays(self) -> Arrays:
        """The state. Of the symmetric matrices only the lower triangles, which are all that is read."""
        parts: Arrays = {f"support_{k}": v for k, v in self.support.rows.arrays().items()}
        parts |= {f"psi_{k}": v for k, v in self.psi.arrays().items()}
        parts["norms"] = self.support.norms.copy()
        parts["scales"] = self.support.scales.copy()
        resolvent = self._resolvent()
        triangle = np.tri(resolvent.size, dtype=bool)
        parts["M"] = resolvent.M[: resolvent.size, : resolvent.size][triangle]
        parts["P"] = resolvent.P[: resolvent.size, : resolvent.size][triangle]
        if self.primal is not None:
            parts["B"] = self.primal.B[: self.primal.targets, : resolvent.size].copy()
        if self.basis is not None:
            parts["basis"] = self.basis.copy()
        return parts

    def counters(self) -> Counters:
        resolvent = self._resolvent()
        return {
            "events": self.events,
            "rows": self.rows,
            "targets": self.targets,
            "features": self.features,
            "support_features": self.support.features,
            "size": resolvent.size,
            "rho": resolvent.rho,
            "floor": resolvent.floor,
        }

    def _resolvent(self) -> Resolvent:
        return self._dual().resolvent if self.primal is None else self.primal.resolvent

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """Take the state back, bit for bit."""
        rows = {"support": counters["support_features"], "psi": counters["targets"]}
        for kind, width in rows.items():
            starts = arrays[f"{kind}_starts"]
            parts = arrays[f"{kind}_indices"], arrays[f"{kind}_values"]
            check_rows(starts, *parts, max(0, starts.size - 1), width)
        kept = (arrays["support_starts"].size - 1,)
        if arrays["norms"].shape != kept or arrays["scales"].shape != kept:
            raise ValueError("the rows of the regression have other norms")
        if counters["support_features"] > counters["features"] or arrays["norms"].min(initial=0.0) < 0.0:
            raise ValueError("the rows of the regression do not fit its features")
        self.events, self.rows = float(counters["events"]), counters["rows"]
        self.targets, self.features = counters["targets"], counters["features"]
        self.support = Support(self.kernel)
        self.support.rows.restore({k: arrays[f"support_{k}"] for k in ("starts", "indices", "values")})
        self.support.norms = arrays["norms"].copy()
        self.support.scales = arrays["scales"].copy()
        self.support.features = counters["support_features"]
        self.psi = Rows()
        self.psi.restore({k: arrays[f"psi_{k}"] for k in ("starts", "indices", "values")})
        resolvent = Resolvent.restored(
            counters["size"], counters["rho"], counters["floor"], arrays["M"], arrays["P"]
        )
        self.basis = arrays["basis"].copy() if "basis" in arrays else None
        if "B" in arrays:
            if arrays["B"].shape != (counters["targets"], counters["size"]):
                raise ValueError("the regression has other targets or features")
            self.primal, self.dual = Primal(resolvent, arrays["B"].copy()), None
        else:
            self.primal, self.dual = None, Dual(self.support, self.psi)
            self.dual.resolvent = resolvent

    def nbytes(self) -> int:
        resolvent = self._resolvent()
        size = resolvent.M.nbytes + resolvent.P.nbytes + self.support.rows.nbytes() + self.psi.nbytes()
        if self.primal is not None:
            size += 8 * self.primal.targets * resolvent.padded
        return size + (0 if self.basis is None else self.basis.nbytes)


def _square(F: Floats) -> Floats:
    """F F', symmetric to the bit."""
    S = np.zeros((len(F), len(F)))
    add_outer(S, 1.0, F)
    return S
