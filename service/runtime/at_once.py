"""Work runs in the callback that brings it, as far as it goes without waiting; only then does it become a task.

All that a call does is written once, as coroutines. Most never have to wait: a task, and the turn of the loop that wakes
it, would cost them more than the work. `begin` runs one by hand; `waits` says, and says why, that what follows may wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any

STORE = "store"  # the reason of who waits for something and has not said why


@coroutine
def waits(reason: str) -> Generator[str, None, None]:
    """What follows may have to wait, for this reason. Does nothing in a task."""
    if asyncio.current_task() is None:
        yield reason


def begin(work: Coroutine[Any, Any, None], counts: dict[str, int]) -> asyncio.Task[None] | None:
    """Run `work`: None if it is done, else the task that goes on with it, counted by why. Raises what it raises."""
    try:
        first = work.send(None)
    except StopIteration:
        return None
    reason = first if isinstance(first, str) else STORE
    counts[reason] = counts.get(reason, 0) + 1
    return asyncio.get_running_loop().create_task(_rest(work, None if isinstance(first, str) else first))


async def _rest(work: Coroutine[Any, Any, None], first: Any) -> None:
    await _resumed(work, first)


@coroutine
def _resumed(work: Coroutine[Any, Any, None], waited_for: Any) -> Generator[Any, Any, None]:
    """The rest of a coroutine that has begun: what it waits for is passed on, and what comes of it passed back."""
    try:
        while True:
            try:
                sent = yield waited_for
            except BaseException as error:
                waited_for = work.throw(error)
            else:
                waited_for = work.send(sent)
    except StopIteration:
        return
