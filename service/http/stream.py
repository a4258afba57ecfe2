"""The NDJSON stream: each line is a call, each reply line its body or its problem document, in order.

What has arrived is worked off in chunks, so that the host can commit a chunk's events together; the slower the lines,
the smaller the chunks. A few chunks are on their way at a time: the next one is read while this one is written. No more
are taken before the replies of the oldest have been handed to the socket: a client that does not read is not read from.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

import orjson
from starlette.datastructures import State
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from feedrank.learners.instances import FeatureVector
from feedrank.learners.kernel.body_cost import most_bytes
from feedrank.service.contract.budget import PARSED, Budget, Lease
from feedrank.service.contract.faults import MemoryFull, ServiceError, Unauthorized, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import Line
from feedrank.service.runtime.streams import Stream, alone

from .bodies import LARGE, authorize, read_round, too_large
from .keyring import Key
from .problems import describe
from .shares import Use

NDJSON = "application/x-ndjson"
FIRST, MOST = 8, 256  # lines of a chunk: of the first one, and of any
HEAVIEST = 2**18  # bytes of a chunk, but for its last line: what is made of them is counted
AHEAD = 2**20  # bytes read and not yet worked off
MANY = 4096  # lines that are cut off at once
AT_ONCE = 3  # chunks on their way
TRIES, PAUSE = 50, 0.02  # how often, and after how many seconds, memory is asked for
LONG = 0.1  # seconds that a chunk may take before the next one is made smaller
CALLS = ("predict", "feedback")


class Lines:
    """Whole lines out of arbitrary chunks of bytes; a line above the limit becomes TooLarge and is not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    @property
    def pending(self) -> int:
        """Bytes of a line that has not ended."""
        return len(self._rest)

    def skip(self) -> None:
        """Keep nothing of the line that has not ended."""
        self._rest.clear()
        self._skipping = True

    def feed(self, data: bytes, *, last: bool = False) -> Iterator[bytes | ServiceError]:
        """The lines that `data` completes; with `last`, also the line that no newline ends."""
        pieces = data.split(b"\n")
        if last or self._skipping or len(self._rest) + len(data) > self._limit:
            return self._bounded(pieces, last)
        if self._rest and len(pieces) > 1:
            pieces[0] = bytes(self._rest) + pieces[0]
            self._rest.clear()
        self._rest += pieces.pop()
        return filter(bytes.strip, pieces)

    def _bounded(self, pieces: list[bytes], last: bool) -> Iterator[bytes | ServiceError]:
        """The same where a line may be too long."""
        for number, piece in enumerate(pieces):
            ended = number < len(pieces) - 1 or last
            if self._skipping:
                self._skipping = not ended
                continue
            if len(self._rest) + len(piece) > self._limit:
                self._rest.clear()
                self._skipping = not ended
                yield too_large(self._limit)
                continue
            if ended:
                line = bytes(self._rest) + piece if self._rest else piece
                self._rest.clear()
                if line.strip():
                    yield line
            else:
                self._rest += piece


def weight(lines: Sequence[bytes | ServiceError]) -> int:
    """Bytes of lines."""
    return sum([len(line) for line in lines if type(line) is bytes])


def cost(lines: Sequence[bytes | ServiceError]) -> int:
    """Bytes of memory that reading them may take."""
    sizes = [len(line) for line in lines if type(line) is bytes]
    long = [most_bytes(line) for line in lines if type(line) is bytes and len(line) >= LARGE]
    return PARSED * sum([size for size in sizes if size < LARGE]) + sum(long)


def read_line(line: bytes, key: Key | None, last: FeatureVector | None = None) -> Line:
    """The call in a line: `{"predict": {...}}` or `{"feedback": {...}}`; feedback mostly repeats the `last` features."""
    value = read_round(line, last)
    if len(value) != 1 or next(iter(value)) not in CALLS:
        raise Unprocessable.at("", 'a line must be {"predict": {...}} or {"feedback": {...}}')
    ((name, body),) = value.items()
    if type(body) is not dict:
        raise Unprocessable.at("", f"the value of {name!r} must be a JSON object")
    if key is not None:
        authorize(key, name)
    return name, body


@dataclass(slots=True)
class PendingChunk:
    """A chunk on its way since `at`: why lines of it were refused (None: they were not), and what befell the others."""

    at: float
    refusals: list[ServiceError | None]
    calls: int
    lease: Lease
    failed: ServiceError | None = None


class StreamReply(Response):
    """The reply of the stream call; it reads the request while it writes."""

    media_type = NDJSON

    def __init__(
        self, state: State, stream: Stream, key: Key | None, budget: Budget, use: Use | None = None
    ) -> None:
        super().__init__(status_code=200)
        self._state, self._stream, self._key, self._use = state, stream, key, use
        self._chunks: deque[PendingChunk] = deque()
        self._answered = 0.0
        self._size = FIRST
        self._waiting: deque[bytes | ServiceError] = deque()
        self._ahead = 0
        self._over = self._crowded = False
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._budget, self._read_lease = budget, Lease(budget)
        self._lines = Lines(state.settings.max_body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", NDJSON.encode()), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        reading = asyncio.create_task(self._read(receive))
        stopping = asyncio.create_task(self._state.stopping.wait())
        stopping.add_done_callback(lambda _: self._news.set())
        try:
            while self._waiting or self._chunks or not (self._over or stopping.done()):
                if stopping.done():
                    reading.cancel()  # What has arrived is answered, and no more is taken.
                if self._waiting and len(self._chunks) < AT_ONCE:
                    await self._ask(self._take(), send)
                elif self._chunks:
                    await self._reply(send)
                else:
                    self._news.clear()
                    await self._news.wait()
        finally:
            self._stream.close()
            for lease in (self._read_lease, *(chunk.lease for chunk in self._chunks)):
                lease.resize(0)
            reading.cancel()
            stopping.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read(self, receive: Receive) -> None:
        """Read ahead of the work, so that a chunk holds what has arrived meanwhile, but no more than AHEAD bytes."""
        lines = self._lines
        try:
            while not self._over:
                message = await receive()
                self._over = not message.get("more_body", False)
                coming = lines.feed(message.get("body", b""), last=self._over)
                while arrived := list(islice(coming, MANY)):
                    self._waiting.extend(arrived)
                    self._ahead += weight(arrived)
                    self._news.set()
                    if len(arrived) == MANY:
                        await asyncio.sleep(0)
                self._count()
                while self._ahead > AHEAD or self._crowded:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._over = True
            self._news.set()

    def _count(self, working: bool = False) -> None:
        """Count what was read and not worked off; a line that there is no memory for is refused, as a long one is.

        While work of this stream is under way (or `working`), it waits for the memory that this will give back.
        """
        try:
            self._read_lease.resize(self._ahead + self._lines.pending)
            self._crowded = False
        except MemoryFull as error:
            self._crowded = working or bool(self._waiting or self._chunks)
            if self._lines.pending and not self._crowded:
                self._lines.skip()
                self._read_lease.resize(min(self._read_lease.size, self._ahead))
                self._waiting.append(error)
                self._news.set()

    def _take(self) -> list[bytes | ServiceError]:
        """The next chunk."""
        chunk: list[bytes | ServiceError] = []
        heavy = 0
        while self._waiting and len(chunk) < self._size and heavy < HEAVIEST:
            chunk.append(line := self._waiting.popleft())
            if type(line) is bytes:
                heavy += len(line)
        self._ahead -= heavy
        self._count(working=True)
        self._room.set()
        return chunk

    def _adapt(self, took: float) -> None:
        if took > LONG:
            self._size = max(1, self._size // 2)
        elif took < LONG / 2:
            self._size = min(MOST, self._size * 2)

    async def _ask(self, arrived: Sequence[bytes | ServiceError], send: Send) -> None:
        """Hand a chunk to the host. Lines that cannot be read are answered here; the host answers the others."""
        lease = Lease(self._budget)
        short = await self._has_no_room(lease, cost(arrived), send)
        chunk = PendingChunk(perf_counter(), [], 0, lease)
        revoked = self._key is not None and not self._state.keyring.holds(self._key)
        calls: list[Line] = []
        last: FeatureVector | None = None
        for line in arrived:
            try:
                if isinstance(line, ServiceError):
                    raise line
                if revoked:
                    raise Unauthorized
                if short is not None:
                    raise short
                call = read_line(line, self._key, last)
                last = call[1].get("features")
                if self._use is not None:
                    await self._use.line(*call, len(line))
                calls.append(call)
                chunk.refusals.append(None)
            except ServiceError as error:
                # Tracebacks know this frame, and so the chunk: such circles are collected in one long pause.
                error.__traceback__ = error.__context__ = None
                chunk.refusals.append(error)
        chunk.calls = len(calls)
        if single := alone(calls):
            # It waits for all that is on its way, and maybe long: who sent that must not wait with it.
            while self._chunks:
                await self._reply(send)
        try:
            async with self._limit(len(calls)):
                await self._stream.put(calls, single)
        except Exception as error:
            # The stream outlives whatever befell this chunk; `describe` logs what nobody foresaw.
            chunk.failed = describe(error)
        self._chunks.append(chunk)

    async def _has_no_room(self, lease: Lease, size: int, send: Send) -> MemoryFull | None:
        """Take memory for a chunk; while there is none, what is on its way is answered, and others get time to finish."""
        for _ in range(TRIES):
            if self._budget.admits(size):
                lease.resize(size)
                return None
            if self._chunks:
                await self._reply(send)
            else:
                await asyncio.sleep(PAUSE)
        return self._budget.full()

    async def _reply(self, send: Send) -> None:
        body = await self._answer()
        await send({"type": "http.response.body", "body": body, "more_body": True})
        # Other requests get their turn between chunks.
        await asyncio.sleep(0)

    async def _answer(self) -> bytes:
        """The reply lines of the oldest chunk."""
        chunk = self._chunks.popleft()
        answers: Sequence[JSON | Exception]
        if chunk.failed is not None:
            answers = [chunk.failed] * chunk.calls
        else:
            try:
                async with self._limit(chunk.calls):
                    answers = await self._stream.get()
            except Exception as error:
                answers = [describe(error)] * chunk.calls
        chunk.lease.resize(0)
        if self._crowded:
            self._count()
            self._room.set()
        each = iter(answers)
        lines = [next(each) if refusal is None else refusal for refusal in chunk.refusals]
        now = perf_counter()
        self._adapt(now - max(chunk.at, self._answered))
        self._answered = now
        return b"".join(map(as_line, lines))

    def _limit(self, calls: int) -> asyncio.Timeout:
        return asyncio.timeout(self._state.settings.request_timeout * max(1, calls))


def as_line(reply: JSON | Exception) -> bytes:
    value = describe(reply).problem() if isinstance(reply, Exception) else reply
    return orjson.dumps(value, None, orjson.OPT_APPEND_NEWLINE)
