"""`normalize: auto`: features scaled online, one by one, by what was learned from so far.

Of feature j: the count c of events that named it, its mean mu and its sum of squared deviations m2 (Welford); n events.
What is counted, once c >= 5, is the value taken to mu +- 4 sd (4 |mu| while all values were equal): a wrong cell moves the
scale a little, and a true change of unit gets through, because sd may double in some c / 10 events.

    sd = sqrt(m2 / c),  rms = sqrt(mu^2 + sd^2)
    dense   a feature that at least 95 % of the events name, and that varies: 20 c >= 19 n > 0 and sd > 1e-9 |mu|
    z       (v - mu) / sd if dense, else v / rms (the sign of v if rms = 0), taken to [-2, 2]; beside a bias, 0 for the
            value that all events so far named, once there are two
    u       dense: z / sqrt(number of dense features); the others: z (with weighting idf: z (1 + log((1 + n) / (1 + c)))),
            divided by their own length

So no result depends on the unit of a feature, a constant beside a bias says nothing, and words beside numbers have half
of the say. A feature that is often left out is not centred, because what is left out counts as 0: so zeros may be left out.
The state changes by learning only, after the round.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .growth import grown
from .instances import EMPTY, Floats, Mask, Vector
from .kernel import LookedUp, log, scale, tally


@dataclass(slots=True)
class ScaledVector(Vector):
    """u on the known `rows`, with what it was made of: the values as they came, z, and which features are dense.

    `unseen`, `unseen_raw` and `unseen_z` are the same of features not seen yet. The bias has z = 0 and counts as dense.
    """

    raw: Floats = field(default_factory=lambda: EMPTY)
    z: Floats = field(default_factory=lambda: EMPTY)
    dense: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    look: Any = None  # what the table knows of it
    unseen_raw: Floats = field(default_factory=lambda: EMPTY)
    unseen_z: Floats = field(default_factory=lambda: EMPTY)

    def joined(self, look: LookedUp) -> "ScaledVector":
        """The same with the features that were not seen yet, now in rows of the table, after all others."""
        return ScaledVector(
            look.rows,
            np.concatenate((self.values, self.unseen)),
            EMPTY,
            np.concatenate((self.raw, self.unseen_raw)),
            np.concatenate((self.z, self.unseen_z)),
            np.concatenate((self.dense, np.zeros(len(self.unseen), dtype=bool))),
            look,
        )


class Scaling:
    """The statistics of every feature. `bias` rows stand first and are left alone."""

    def __init__(self, idf: bool, bias: bool) -> None:
        self.idf = idf
        self.bias: int = int(bias)
        # One row a feature, hence one place in memory: c, mu, m2, and log(1 + c), because a round asks for it twice.
        self.statistics: Floats = np.zeros((0, 4))
        self._before: tuple[tuple[Floats, Any, Floats], ...] = ()

    @property
    def counts(self) -> Floats:
        """c of every feature."""
        return self.statistics[:, 0]

    @property
    def means(self) -> Floats:
        """mu of every feature."""
        return self.statistics[:, 1]

    @property
    def deviations(self) -> Floats:
        """m2 of every feature."""
        return self.statistics[:, 2]

    def grow(self, features: int) -> None:
        """Room for every feature."""
        self.statistics = grown(self.statistics, features)

    def vector(self, look: LookedUp, features: int, events: int) -> ScaledVector:
        """u of the values of a table."""
        self.grow(features)
        rows, raw, rest = look.rows, look.values, look.unseen
        values, unseen, z, dense, unseen_z = scale(
            rows, raw, rest, self.statistics, self.bias, self.idf, events
        )
        return ScaledVector(rows, values, unseen, raw, z, dense, look, rest, unseen_z)

    def count(self, x: ScaledVector, features: int) -> None:
        """One more event with these features."""
        self.grow(features)
        # No call behind that of tally: what may fail leaves nothing that `uncount` does not know of.
        self._before = (
            *self._before,
            (self.statistics, x.rows, tally(x.rows, x.raw, self.statistics, self.bias)),
        )

    def mark(self) -> None:
        """An event begins."""
        self._before = ()

    def uncount(self) -> None:
        """Take back every `count` of the event."""
        for _, rows, before in reversed(self._before):
            self.statistics[rows[self.bias :]] = before
        self._before = ()

    def arrays(self, features: int) -> dict[str, Floats]:
        """The state, trimmed."""
        self.grow(features)
        return {
            "counts": self.counts[:features],
            "means": self.means[:features],
            "deviations": self.deviations[:features],
        }

    def restore(self, arrays: dict[str, Floats], features: int) -> None:
        """All as it was."""
        if any(array.shape != (features,) for array in arrays.values()):
            raise ValueError("the statistics do not fit the features")
        counts = arrays["counts"]
        self.statistics = np.stack((counts, arrays["means"], arrays["deviations"], log(1.0 + counts)), axis=1)
