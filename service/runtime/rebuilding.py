"""Rebuilds a state from its log: without retracted events, as entries revise others, or as it was before a retraction.

A retraction folds again from the last snapshot before the retracted entry; a revision from the last that it left. Where
that is short, it is done at once; where it is long, in the background, while the state goes on as it was: all retractions
that wait are left out in one fold, those that come too late for it in the next. A long fold saves snapshots on its way:
whoever is killed begins at the last of them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.store import StoreSignal, Trimmed

from .folding import SMALL, E, S, stopped

if TYPE_CHECKING:
    from .checkpoints import Saver
    from .follower import Follower

log = logging.getLogger(__name__)
LONG = 4_096  # events that are folded again in the background
TURN = 256  # events of a long fold between two looks at how far the log has come


class Rebuilder:
    """Folds one follower again without what was retracted."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._saver: Saver | None = None

    async def now(self, follower: Follower[S, E], version: int) -> bool:
        """Fold again up to the retraction at `version`; False if that would take long."""
        twin = await without_retracted(follower)
        if version - twin.version > LONG:
            return False
        await twin.advance(version)
        await take_over(follower, twin)
        return True

    def later(self, follower: Follower[S, E]) -> None:
        """Do it in the background, unless it is being done."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._rebuild(follower))

    async def close(self) -> None:
        """Give up what is being folded: the log and the last snapshot have all that is needed to go on."""
        if self._task is not None:
            await stopped(self._task)
        if self._saver is not None:
            await self._saver.settle()

    async def _rebuild(self, follower: Follower[S, E]) -> None:
        try:
            while follower.unsettled:
                twin = await without_retracted(follower)
                self._saver = twin.saver
                while twin.version < follower.version - SMALL:
                    await twin.advance(min(follower.version, twin.version + TURN))
                    # Not where a replica saves that has not heard of the retraction: they would seem to disagree.
                    if twin.version - twin.saved >= twin.every and twin.version % twin.every:
                        await twin.saver.checkpoint(twin)
                await twin.saver.settle()
                async with follower.order:
                    await twin.forward(follower.version)
                    await take_over(follower, twin)
        except (ServiceError, StoreSignal) as error:
            log.warning("%s could not be rebuilt and is loaded again: %s", follower.title, error)
            follower.drop()


async def fold_again(follower: Follower[S, E], version: int, event: E) -> None:
    """Become what the state would be without the entry that is retracted at `version`, or as the one there revises it."""
    retracted = (
        event.retracts or version
    )  # of a revision: any snapshot that is left before it has to do with nothing of it
    done = version <= follower.without and (event.revises or retracted <= follower.base)
    if done or version in follower.settled:
        follower.settled.discard(version)
        follower.state.version = version
        return
    follower.unsettled[version] = retracted
    if not follower.saves:  # a twin: the one that it is folded for decides when to fold again
        follower.state.version = version
    elif not await follower.rebuilder.now(follower, version):
        follower.state.version = version
        follower.rebuilder.later(follower)


async def without_retracted(follower: Follower[S, E]) -> Follower[S, E]:
    """A second state of the same log, before everything that is to be left out."""
    twin = follower.twin()
    await twin.start(before=min(follower.unsettled.values()))
    return twin


async def take_over(follower: Follower[S, E], twin: Follower[S, E]) -> None:
    """Let the follower go on with the twin's state; needs its `order`."""
    far = twin.version - twin.saved >= SMALL
    follower.state, follower.chain, follower.unsettled = twin.state, twin.chain, twin.unsettled
    follower.saved, follower.base, follower.without = twin.saved, twin.base, twin.without
    follower.settled |= twin.settled
    follower.signal()
    if far:  # the snapshots since then are gone
        await follower.saver.checkpoint(follower)


async def first_outcome(follower: Follower[S, E], version: int) -> JSON:
    """What no replica has saved, folded as it was the first time: without the retractions that came after it."""
    twin = follower.twin(horizon=version)
    twin.appending = 1
    try:
        await twin.start(before=version)
        await twin.advance(version)
        return twin.outcomes[version]
    except (Trimmed, KeyError):
        raise await follower.lacking(f"the outcome of event {version} is not available") from None
