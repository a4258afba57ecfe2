"""Recursive least squares on curves of the features: few features, any shape.

    phi = [1; 128 waves; of every feature z_j and 9 hats]

    wave i   2 sqrt(2 / 128) cos(1.5 (z' Omega)_i / sqrt(S) + theta_i),  S a running mean of ||z||^2
    hats     max(0, 1 - 2 |z_j - kappa|), kappa = -2, -1.5, ..., 2, while phi stays within 300

    q = P phi,  c = 1 / w + phi' q,  R <- R + (q / c) (Y - R' phi)',  P <- P - q q' / c,  P_0 = I

Waves are random features of a Gaussian kernel (Rahimi and Recht 2007): sums of them are smooth functions of all features
together; hats are curves of single ones. With more than 300 features it leaves for good, and above 2,048 columns, where one
of its steps takes as long as all else, it leaves a pool that has dual ascent. Its draws are a function of
the feature's number, by a generator of its own, so that they are the same everywhere and need not be saved.

Room is made for some features at once. Where none has joined yet, phi is 0, P the identity and R 0, which adds nothing to
any sum: no bit depends on the room, and a snapshot has none of it.
"""

from functools import cache
from typing import Any

import numpy as np

from ...growth import columns_for
from ...instances import Floats, Ints
from ...kernel import add_outer, cos_turns, row_total, times
from ...kernel.elementary import TURN
from ...weights.base import Arrays, Counters
from .draws import normals, uniforms
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target

WAVES = 128
MOST, MOST_COLUMNS = 300, 2_048
BLOCK = 64
HATS = np.arange(9.0) * 0.5 - 2.0
FREQUENCY = 1.5 / TURN
HEIGHT = 2.0 * np.sqrt(2.0 / WAVES)


class LeastSquares(Expert):
    """See above. Column 0 is the constant, then the waves; `columns[j]` is the place of z_j, its hats behind it."""

    curved: int
    features: int

    name = "least-squares"
    kind = 3
    scale: float = 4.0

    def __init__(self, setting: Setting) -> None:
        self.shift: float = 0.5 if setting.bits else 0.0
        self.bias: int = setting.bias
        self.most = MOST_COLUMNS if "dual-ascent" in setting.beside else None
        self.labels: int = 0
        self.size: float = 1.0  # S
        self.events: int = 0
        self.theta: Floats = uniforms(0, WAVES)
        self._spare: Floats = np.zeros((0, 0))
        self._start()
        self._marked = self.P, self.R

    def _start(self) -> None:
        self.features = 0
        self.omega: Floats = np.zeros((0, WAVES))
        self.places: Ints = np.zeros(0, dtype=np.intp)  # also of features that there is only room for
        self.curved = 0  # features that have hats: the first so many
        self.P: Floats = np.eye(1 + WAVES)
        self.R: Floats = np.zeros((1 + WAVES, columns_for(self.labels)))

    def grow(self, features: int, columns: int) -> None:
        if not self.stays(features, columns):
            self._leave()
        features -= self.bias
        if not self.present:
            self.labels = columns
            return
        room, width = room_for(features), len(self.P)
        if room > len(self.places):
            self.omega = np.concatenate((self.omega, normals(range(1 + len(self.places), 1 + room), WAVES)))
            self.places, self.curved, larger = places_of(room)
            P = np.eye(larger)
            P[:width, :width] = self.P
            self.P = P
        if (len(self.P), columns_for(columns)) != self.R.shape:
            R = np.zeros((len(self.P), columns_for(columns)))
            R[: len(self.R), : self.labels] = self.R[:, : self.labels]
            self.R = R
        self.features, self.labels = features, columns

    @property
    def width(self) -> int:
        """Of phi without what there is only room for."""
        last = self.features - 1
        return 1 + WAVES if last < 0 else int(self.places[last]) + 1 + len(HATS) * (last < self.curved)

    def mark(self) -> Any:
        """Arrays are replaced, but by the kernel's whole round: what they are now is the way back."""
        self._marked = self.P, self.R
        return dict(vars(self))

    def rewind(self, mark: Any) -> None:
        vars(self).clear()
        vars(self).update(mark)

    def stays(self, features: int, columns: int) -> bool:
        return features - self.bias <= MOST and (self.most is None or columns <= self.most)

    def _leave(self) -> None:
        self.present = False
        self.omega, self.P, self.R = np.zeros((0, WAVES)), np.zeros((0, 0)), np.zeros((0, 0))
        self.places, self.curved, self.features = np.zeros(0, dtype=np.intp), 0, 0

    def _phi(self, inputs: Inputs) -> Floats:
        if "phi" in inputs.kept:
            made: Floats = inputs.kept["phi"]
            return made
        rows, z = inputs.scaled.rows[self.bias :] - self.bias, inputs.scaled.z[self.bias :]
        phi = np.zeros(len(self.P))
        phi[0] = 1.0
        turns = times(z, self.omega.take(rows, axis=0)) * (FREQUENCY / np.sqrt(self.size))
        phi[1 : 1 + WAVES] = HEIGHT * cos_turns(turns + self.theta)
        places = self.places.take(rows)
        phi[places] = z
        curved = rows < self.curved
        hats = 1.0 - 2.0 * np.abs(z[curved][:, None] - HATS)
        phi[places[curved][:, None] + np.arange(1, 1 + len(HATS))] = np.maximum(hats, 0.0)
        inputs.kept["phi"] = phi
        return phi

    def fused(self) -> tuple[Any, ...]:
        return (
            self.present,
            self.scale,
            float(self.curved),
            self.P,
            self.R,
            self.omega,
            self.theta,
            self.places,
        )

    def scores(self, inputs: Inputs) -> Floats:
        if not self.present:
            return np.zeros(self.labels)
        inputs.kept["fit"] = fit = self._fit(self._phi(inputs))
        return fit - self.shift

    def _fit(self, phi: Floats) -> Floats:
        return _product(phi, self.R)[: self.labels]

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        if not self.present:
            return
        phi = self._phi(inputs)
        q = _product(phi, self.P)  # P is symmetric
        c = 1.0 / target.weight + max(times(phi, q), 0.0)
        fit = inputs.kept.get("fit")
        miss = target.Y - (self._fit(phi) if fit is None else fit)
        # What was there at the mark is the way back until the event is over; for P, memory is kept.
        R = self.R.copy() if self.R is self._marked[1] else self.R
        R[:, : self.labels] += np.multiply.outer(q / c, miss)
        P = self.P
        if P is self._marked[0]:
            P = self._spare if self._spare.shape == P.shape else np.empty_like(P)
            P[:] = self.P
            self._spare = self.P
        add_outer(P, -1.0 / c, q[:, None])
        self.R, self.P = R, P
        z = inputs.scaled.z
        self.size += (times(z, z) - self.size) * max(0.01, 1.0 / (self.events + 2.0))
        self.events += 1

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        x = inputs.scaled
        every = np.zeros((len(x.rows), self.labels))
        if not self.present:
            return every, np.zeros(self.labels), np.zeros(self.labels)
        each = (self.R * self._phi(inputs)[:, None])[:, : self.labels]
        for i, j in enumerate((x.rows[self.bias :] - self.bias).tolist()):
            last = self.places[j] + 1 + (len(HATS) if j < self.curved else 0)
            every[i + self.bias] = row_total(each[self.places[j] : last])
        return every, each[0] - self.shift, row_total(each[1 : 1 + WAVES])

    def reset(self) -> None:
        if self.present:
            features, self.labels, labels = self.features, 0, self.labels
            self._start()
            self.grow(features + self.bias, labels)

    def arrays(self) -> Arrays:
        return {"P": self.P[: self.width, : self.width], "R": self.R[: self.width, : self.labels]}

    def counters(self) -> Counters:
        return {"size": self.size, "events": self.events, "present": self.present}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        self.size, self.events = counters["size"], counters["events"]
        if not counters["present"]:
            self._leave()
            return
        if any(arrays[name].shape != own.shape for name, own in self.arrays().items()):
            raise ValueError("least squares has another shape than its features and labels")
        self.P[: self.width, : self.width] = arrays["P"]
        self.R[: self.width, : self.labels] = arrays["R"]

    def nbytes_for(self, features: int, columns: int) -> int:
        if not self.present or not self.stays(features, columns):
            return 0
        features -= self.bias
        room = room_for(features)
        width = places_of(room)[2]
        return 8 * (width * (width + columns_for(columns)) + WAVES * room)


def room_for(features: int) -> int:
    """How many features room is made for: a power of two, and from 64 on a multiple of it.

    Beyond 8 it grows as the tables of the other experts do, which have a row for the bias: all of them at one event.
    """
    if features <= 8:
        return 8 if features > 0 else 0
    if features < BLOCK:
        return 1 << features.bit_length()
    return min((features // BLOCK + 1) * BLOCK, MOST)


@cache
def places_of(features: int) -> tuple[Ints, int, int]:
    """The place of each of so many features in phi, how many of them have hats, and the width of phi."""
    places, curved, width = np.zeros(features, dtype=np.intp), 0, 1 + WAVES
    for j in range(features):
        places[j] = width
        width += 1
        if width + len(HATS) <= MOST:
            width += len(HATS)
            curved = j + 1
    places.setflags(write=False)
    return places, curved, width


def _product(phi: Floats, matrix: Floats) -> Floats:
    """phi' M: rows where phi is 0, most hats, add nothing; they are left out where that is less work."""
    active = phi.nonzero()[0]
    if 2 * len(active) > len(phi):
        product: Floats = times(phi, matrix)
    else:
        product = times(phi.take(active), matrix.take(active, axis=0))
    return product


register_expert(
    ExpertEntry(
        "least-squares",
        LeastSquares,
        0.5,
        "recursive least squares on random waves and on curves, for at most 300 features",
    )
)
