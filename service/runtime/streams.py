"""The lines of a stream: in order, each as its single call, those of a chunk written together.

While a chunk is on its way to the disk, the next one is read: `put` hands it to the writer, which keeps the order, and
`get` waits for the oldest. Two kinds of lines are done as single calls, between what stands before and behind them: those
that need more than one step, and a prediction whose id the next line may name.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import Line
from feedrank.service.contract.settings import Settings

from .memory import Memory
from .predictor import Predictor
from .questions import read_question
from .steps import Step
from .writer import Writer

ALONE = frozenset({"instances", "events", "min_version"})
Reply = JSON | Exception
Part = asyncio.Future[Sequence[Step]] | list[Reply]


def alone(lines: Sequence[Line]) -> list[int]:
    """Which lines are done as single calls."""
    return [
        at
        for at, (kind, request) in enumerate(lines)
        if not ALONE.isdisjoint(request) or (kind == "predict" and "prediction_id" in request)
    ]


class Stream:
    """Chunks of one stream to the learner of a name or alias."""

    def __init__(
        self, name: str, memory: Memory, predictor: Predictor, writer: Writer, settings: Settings
    ) -> None:
        self._name, self._memory, self._settings = name, memory, settings
        self._predictor, self._writer = predictor, writer
        self._chunks: deque[list[Part]] = deque()

    def __len__(self) -> int:
        """Chunks on their way."""
        return len(self._chunks)

    async def put(self, lines: Sequence[Line], single: Sequence[int] | None = None) -> None:
        """Read a chunk of `("predict" | "feedback", request)` and have it written; `single` is what `alone` says of it."""
        chunk: list[Part] = []
        self._chunks.append(chunk)
        try:
            await self._hand_over(chunk, lines, alone(lines) if single is None else single)
        except BaseException:
            self._chunks.pop()  # the newest; by value, another empty one might go
            raise

    async def _hand_over(self, chunk: list[Part], lines: Sequence[Line], single: Sequence[int]) -> None:
        start = 0
        for stop in (*single, len(lines)):
            if stop > start:
                chunk.append(await self._together(lines[start:stop]))
            if stop < len(lines):
                await self._settle()
                chunk.append([await self._single(*lines[stop])])
            start = stop + 1

    async def get(self) -> list[Reply]:
        """The replies to the oldest chunk, those of the single calls; errors in place."""
        replies: list[Reply] = []
        for part in self._chunks.popleft():
            if isinstance(part, asyncio.Future):
                for step in await part:
                    replies.append(step.error or step.replies[0])
            else:
                replies += part
        return replies

    def close(self) -> None:
        """Wait for nothing more: what was handed to the writer is finished all the same."""
        for chunk in self._chunks:
            for part in chunk:
                if isinstance(part, asyncio.Future):
                    part.cancel()

    async def _settle(self) -> None:
        """Until all that was handed over is done."""
        on_their_way = [part for chunk in self._chunks for part in chunk if isinstance(part, asyncio.Future)]
        if on_their_way:
            await asyncio.wait(on_their_way)

    async def _single(self, kind: str, request: JSON) -> Reply:
        call = self._predictor if kind == "predict" else self._writer
        try:
            reply: Awaitable[JSON] = call(self._name, request)
            return await reply
        except ServiceError as error:
            return error

    async def _together(self, lines: Sequence[Line]) -> Part:
        """Lines that are written together."""
        try:
            learner = await self._memory.take(self._name)
        except ServiceError as error:
            return [error] * len(lines)
        try:
            steps = []
            for kind, request in lines:
                try:
                    if kind == "predict":
                        steps.append(Step(await read_question(learner, request, self._settings)))
                    else:
                        event, draft = await self._writer.read(learner, request)
                        steps.append(Step(events=(event,), drafts=(draft,)))
                except ServiceError as error:
                    steps.append(Step(error=error))
        except BaseException:
            self._memory.leave(learner)
            raise
        return self._writer.submit(learner, steps)
