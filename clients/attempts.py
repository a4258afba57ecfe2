"""Retries: how often a call is sent, the pauses in between, and how much of a reply is read. No I/O of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import httpx
import msgspec

from .calls import Call
from .exceptions import BadRequest, ClientError, InvalidResponse, NoReply, TimedOut, Unavailable, refusal

__all__ = ["Answer", "Retry"]

T = TypeVar("T")
# Nothing of the request can have arrived.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
# No attempt can succeed: the address or a header is wrong.
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True, slots=True)
class Retry:
    """Wait a random part of first * 2^attempt seconds, at most `most`; or what the service asks for, within `most`."""

    attempts: int = 5
    first: float = 0.2
    most: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first < 0 or self.most < 0:
            raise ValueError("a Retry needs at least one attempt, and pauses of 0 seconds or more")

    def pause(self, attempt: int, headers: Mapping[str, str]) -> float:
        """Seconds to wait after failed attempt number `attempt`, from 1."""
        requested = headers.get("retry-after", "")
        if requested.isascii() and requested.isdigit():
            return float(min(float(requested), self.most))
        longest = min(self.first * 2.0 ** (attempt - 1), self.most)
        return float(longest * (0.5 + random.random() / 2))  # noqa: S311  (spreads retries, keeps no secret)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes


Attempts = Generator[httpx.Request | float, Answer | httpx.RequestError | None, T]


def attempts(call: Call[T], request: Callable[[], httpx.Request], retry: Retry) -> Attempts[T]:
    """Yield a request (and be sent its answer, or why there is none) or the seconds to wait; return the reply."""
    attempt = 0
    while True:
        attempt += 1
        last = attempt >= retry.attempts
        answer = yield _built(request)
        if isinstance(answer, Answer):
            if 200 <= answer.status < 300:
                return call.read(answer.content)
            if answer.status == 404 and call.absent_is_done and attempt > 1:
                return call.read(b"")
            if last or answer.status not in Unavailable.statuses:
                raise refusal(answer.status, _problem(answer))
            yield retry.pause(attempt, answer.headers)
        elif answer is not None:
            again = call.repeatable or isinstance(answer, _NOT_SENT)
            if (
                last
                or not again
                or not isinstance(answer, httpx.TransportError)
                or isinstance(answer, _HOPELESS)
            ):
                raise _failure(call, answer) from answer
            yield retry.pause(attempt, {})


def _built(request: Callable[[], httpx.Request]) -> httpx.Request:
    try:
        return request()
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise BadRequest(f"this cannot be sent: {error}") from error


def _failure(call: Call[T], error: httpx.RequestError) -> ClientError:
    reason = f"{call.method} {call.path}: {error or type(error).__name__}"
    if isinstance(error, _HOPELESS):
        return BadRequest(reason)
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(reason)
    return NoReply(reason) if isinstance(error, httpx.TransportError) else InvalidResponse(reason)


def _problem(answer: Answer) -> object:
    try:
        return msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):  # a proxy's page
        return {"title": httpx.codes.get_reason_phrase(answer.status)}


class Body:
    """The content of a reply as it comes, up to a number of bytes and of seconds: an endless one ends here."""

    def __init__(self, response: httpx.Response, limit: int, seconds: float) -> None:
        self._response, self._limit = response, limit
        self._deadline = time.monotonic() + seconds
        self._chunks: list[bytes] = []
        self._size = 0
        announced = response.headers.get("content-length", "")
        if announced.isascii() and announced.isdigit():
            self._check(int(announced[:20]))

    def add(self, chunk: bytes) -> None:
        """One more piece."""
        self._size += len(chunk)
        self._check(self._size)
        if time.monotonic() > self._deadline:
            raise InvalidResponse("the reply does not end: its time is over")
        self._chunks.append(chunk)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise InvalidResponse(f"the reply is longer than {self._limit} bytes")

    def answer(self) -> Answer:
        """All of it."""
        return Answer(self._response.status_code, self._response.headers, b"".join(self._chunks))
