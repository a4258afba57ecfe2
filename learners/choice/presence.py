"""Who is met again: contexts and ids that stay away leave, the sooner the less was learned from them.

    idle    now - last > `PATIENCE` times,    now: rewards learned from, times: of those with it, last: the latest

What was met once is given up after `PATIENCE` other rewards, what was met ten times after ten times as many: looked at
every `SWEEP` rewards. The names stay, and who comes back starts anew.
"""

import numpy as np

from ..growth import grown
from ..instances import Floats, Ints
from ..weights.base import Arrays

PATIENCE = 100_000
SWEEP = 10_000


class Presence:
    """How often each place was met, and when last; both are counts of rewards."""

    def __init__(self) -> None:
        self.times: Floats = np.zeros(0)
        self.last: Floats = np.zeros(0)
        self._before: tuple[tuple[Ints, Floats, Floats], ...] = ()

    def grow(self, places: int) -> None:
        """So many have joined."""
        self.times, self.last = grown(self.times, places), grown(self.last, places)

    def meet(self, places: Ints, now: int) -> None:
        """These were met, each once."""
        self._before = (*self._before, (places, self.times[places], self.last[places]))
        self.times[places] += 1.0
        self.last[places] = now

    def idle(self, now: int) -> Ints:
        """Those that are given up."""
        gone: Ints = np.flatnonzero((self.times > 0.0) & (now - self.last > PATIENCE * self.times))
        return gone

    def mark(self) -> None:
        """An event begins."""
        self._before = ()

    def rewind(self) -> None:
        """As before the event."""
        for places, times, last in reversed(self._before):
            self.times[places], self.last[places] = times, last
        self._before = ()

    def arrays(self, places: int) -> Arrays:
        """All of it."""
        return {"times": self.times[:places], "last": self.last[:places]}

    def restore(self, times: Floats, last: Floats, places: int) -> None:
        """All as it was."""
        if len(times) != places or len(last) != places:
            raise ValueError("what was met when does not fit the names")
        self.times, self.last = np.array(times), np.array(last)
