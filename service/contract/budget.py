"""One budget of memory, `FEEDRANK_MEMORY`: what is spent is counted, and what is not there is refused before it is spent.

    limit = learners (three quarters) + flight (a quarter)

`flight` is what calls have on their way: bodies while they are read, what is made of them, events that wait for the store,
snapshots, long replies. Whoever sends much, or never ends, must not keep others from sending little: a lease of more than
`SMALL` bytes leaves a quarter of the flight free, but the only one of its size may take all that the limit allows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .faults import MemoryFull
from .headroom import HEADROOM

SMALL = 2**18  # bytes of a lease that may use all of the flight: that of a body of 8 KB
PARSED = 32  # times its bytes is what the values of a body take at most (kernel/body_cost.py)
ENTRY = 300  # bytes of an entry of a ranking, as an object and as JSON
FALLBACK = 2 * 2**30  # bytes of a machine that does not say how many it has
ENDLESS = 2**60  # bytes: what version 1 of control groups calls no limit is above
GROUPS = Path("/sys/fs/cgroup")


class Budget:
    """Of one host. `flight` and `large` are sums over its leases; a call of the shortest road counts in `flight` itself."""

    def __init__(self, limit: int) -> None:
        self.limit, self.share = limit, limit // 4
        self.learners = limit - self.share  # bytes that loaded ones may take
        self.flight = self.large = self.refused = 0

    def admits(self, size: int, own: int = 0) -> bool:
        """Whether there is room for a lease of `size` bytes, which has `own` of them already."""
        others = self.flight - own
        if size <= SMALL:
            return others + size <= self.share or not others
        alone = self.large == (own if own > SMALL else 0)
        return size <= self.limit if alone else others + size <= self.share * 3 // 4

    def check(self, size: int) -> None:
        """MemoryFull if there is no room for so many bytes."""
        HEADROOM.admit()
        if not self.admits(size):
            raise self.full()

    def full(self) -> MemoryFull:
        """The refusal, counted."""
        self.refused += 1
        return MemoryFull("what is on its way takes all memory of the service: send it again later")

    @contextlib.contextmanager
    def lease(self) -> Iterator[Lease]:
        """What one call takes, given back at its end."""
        lease = Lease(self)
        try:
            yield lease
        finally:
            lease.resize(0)


class Lease:
    """Bytes that one call has taken of a budget."""

    __slots__ = ("_budget", "size")

    def __init__(self, budget: Budget) -> None:
        self._budget, self.size = budget, 0

    def resize(self, size: int) -> None:
        """Take so many bytes from now on; MemoryFull, and nothing has changed, if there is no room for more."""
        budget, own = self._budget, self.size
        if size > own and not budget.admits(size, own):
            raise budget.full()
        budget.flight += size - own
        budget.large += (size if size > SMALL else 0) - (own if own > SMALL else 0)
        self.size = size


def available_memory() -> int:
    """Bytes that this process may use: four fifths of its container's limit, else of the machine's memory."""
    return min(machine_memory(), container_memory()) * 4 // 5


def machine_memory() -> int:
    """Bytes of the machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return FALLBACK


def container_memory(groups: Path = GROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """The lowest limit of the control groups, version 1 or 2, that this process is in; `ENDLESS` if there is none.

    In a container the mounted folder is the container's own group, whatever path the kernel says.
    """
    limits = [ENDLESS]
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":
                root, file = groups, "memory.max"
            elif "memory" in controllers.split(","):
                root, file = groups / "memory", "memory.limit_in_bytes"
            else:
                continue
            inner = Path(path.lstrip("/"))
            limits += [limit_in(root / part / file) for part in (inner, *inner.parents)]
    return min(limits)


def limit_in(file: Path) -> int:
    """The limit that a file of a control group says; `ENDLESS` if it says none."""
    try:
        return min(int(file.read_text()), ENDLESS)
    except (OSError, ValueError):  # the word `max`, or another system
        return ENDLESS
