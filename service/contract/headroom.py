"""Room in memory that is kept free, so that what cannot be done is refused and the process lives.

Without any memory left, no Python program goes on: a reply cannot be made, exceptions cannot be raised, and some libraries
write through the null pointer that they were given (orjson ends the process by SIGSEGV). So nothing new is begun while less
than `FLOOR` bytes can be had. `RESERVE` bytes are held back for what was begun before, and are given up when those are all
that is left: the replies that say so are made of them.

Asking costs as much as mapping pages that nobody touches, a few microseconds, and is done once in `EVERY` seconds at most.
"""

from __future__ import annotations

import json
import mmap
from time import monotonic
from typing import Any

import orjson

from .faults import NO_MEMORY, MemoryFull

FLOOR, LEAST, RESERVE = 64 * 2**20, 8 * 2**20, 16 * 2**20
EVERY = 0.001

dumps = orjson.dumps


class Headroom:
    """Of this process."""

    def __init__(self) -> None:
        self._checked, self._scarce = 0.0, False
        self._reserve: mmap.mmap | None = None

    def scarce(self) -> bool:
        """Whether less than `FLOOR` is left, as of a moment ago."""
        now = monotonic()
        if now - self._checked >= EVERY:
            self._checked = now
            self._scarce = not can_have(FLOOR)
            if self._reserve is None and not self._scarce:
                self._reserve = mmap.mmap(-1, RESERVE)
        return self._scarce

    def admit(self) -> None:
        """Refuse to begin anything while memory is scarce."""
        if self.scarce():
            raise MemoryFull(NO_MEMORY)

    def dumps(self, value: Any, default: Any = None, option: int | None = None) -> bytes:
        """`orjson.dumps`, or MemoryError where it might find none."""
        if self.scarce() and not can_have(LEAST):
            if self._reserve is None:
                raise MemoryError
            self._reserve.close()
            self._reserve = None
        return dumps(value, default, option)


def dumps_small(value: Any) -> bytes:
    """JSON of a problem or a line of the log, which must be written whatever is left: Python's own needs least."""
    try:
        return orjson.dumps(value, str, orjson.OPT_NON_STR_KEYS)
    except MemoryError:
        return json.dumps(value, default=str, ensure_ascii=False).encode(errors="replace")


def can_have(size: int) -> bool:
    """Whether so many bytes can be had."""
    try:
        mmap.mmap(-1, size).close()
    except (OSError, MemoryError):
        return False
    return True


HEADROOM = Headroom()


def protect() -> None:
    """Let orjson be asked for nothing that it might find no memory for, in all of this process."""
    orjson.dumps = HEADROOM.dumps
