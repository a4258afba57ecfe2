"""`Client` and `AsyncClient`: the calls of `requests`, sent over httpx, with retries.

The attempts are one generator that does no I/O: it yields what to send or how long to wait. The clients only obey.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from feedrank import __version__

from . import experiments, requests
from .calls import JSON, Call
from .errors import NoReply, TimedOut, Unavailable, refusal
from .requests import Line

__all__ = ["AsyncClient", "Client", "Retry"]

P = ParamSpec("P")
T = TypeVar("T")
Reply = httpx.Response | httpx.TransportError | None
Attempts = Generator[httpx.Request | float, Reply, T]
# Nothing of the request can have arrived.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Retry:
    """Wait a random part of first * 2^attempt seconds, at most `most`; or what the service asks for, within `most`."""

    attempts: int = 5
    first: float = 0.2
    most: float = 10.0

    def pause(self, attempt: int, response: httpx.Response | None) -> float:
        """Seconds to wait after failed attempt number `attempt`, from 1."""
        asked = response.headers.get("retry-after", "") if response is not None else ""
        if asked.isdigit():
            return min(float(asked), self.most)
        longest = min(self.first * 2.0 ** (attempt - 1), self.most)
        return longest * (0.5 + random.random() / 2)  # noqa: S311  (spreads retries, keeps no secret)


def attempts(call: Call[T], request: Callable[[], httpx.Request], retry: Retry) -> Attempts[T]:
    """Yield a request (and be sent its response, or why there is none) or the seconds to wait; return the reply."""
    attempt = 0
    while True:
        attempt += 1
        got = yield request()
        if isinstance(got, httpx.Response):
            if got.is_success:
                return call.read(got.content)
            if got.status_code == 404 and call.absent_is_done and attempt > 1:
                return call.read(b"")
            if attempt == retry.attempts or got.status_code not in Unavailable.statuses:
                raise refusal(got.status_code, _problem(got))
            yield retry.pause(attempt, got)
        elif got is not None:
            if attempt == retry.attempts or not (call.repeatable or isinstance(got, _NOT_SENT)):
                kind = TimedOut if isinstance(got, httpx.TimeoutException) else NoReply
                raise kind(f"{call.method} {call.path}: {got or type(got).__name__}") from got
            yield retry.pause(attempt, None)


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        data = response.json()
    except ValueError:  # a proxy's page
        data = None
    return data if isinstance(data, dict) else {"title": response.reason_phrase}


def _request(client: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> Callable[[], httpx.Request]:
    headers = {"content-type": call.media_type} if call.content is not None else {}
    return lambda: client.build_request(
        call.method, call.path, content=call.content, params=call.params, headers=headers
    )


def _settings(base_url: str, key: str | None, timeout: float | httpx.Timeout) -> dict[str, Any]:
    headers = {"user-agent": f"feedrank/{__version__}"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    return {"base_url": base_url, "headers": headers, "timeout": timeout}


def _waits(describe: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(describe(*args, **kwargs))

    method.__doc__, method.__name__ = describe.__doc__, describe.__name__
    return method


def _awaits(describe: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(describe(*args, **kwargs))

    method.__doc__, method.__name__ = describe.__doc__, describe.__name__
    return method


class Client:
    """The service, one call after the other. Use it in `with`, or close it; it may be shared by threads.

    `transport` replaces the network: `httpx.MockTransport` in tests, `feedrank.embedded.Embedded` for no server at all.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float | httpx.Timeout = 30.0,
        retry: Retry | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**_settings(base_url, key, timeout), transport=transport)
        self._retry = retry or Retry()

    def send(self, call: Call[T]) -> T:
        """Send a call of `feedrank.clients.requests`."""
        steps = attempts(call, _request(self._http, call), self._retry)
        step = next(steps)
        try:
            while True:
                if isinstance(step, float):
                    time.sleep(step)
                    step = next(steps)
                else:
                    step = steps.send(self._fetch(step))
        except StopIteration as done:
            reply: T = done.value
            return reply

    def _fetch(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            return self._http.send(request)
        except httpx.TransportError as error:
            return error

    def stream(self, name: str, entries: Iterable[JSON]) -> Iterator[Line]:
        """Send `{"predict": {...}}` and `{"feedback": {...}}`, in order; a refused one comes back as a `Refused`."""
        for lines in requests.pieces(map(requests.line, entries)):
            yield from self.send(requests.piece(name, lines))

    create = _waits(requests.create)
    learners = _waits(requests.learners)
    learner = _waits(requests.learner)
    delete = _waits(requests.delete)
    predict = _waits(requests.predict)
    predict_many = _waits(requests.predict_many)
    feedback = _waits(requests.feedback)
    feedback_many = _waits(requests.feedback_many)
    retract = _waits(requests.retract)
    events = _waits(requests.events)
    history = _waits(requests.history)
    snapshot = _waits(requests.snapshot)
    restore = _waits(requests.restore)
    alias = _waits(requests.alias)
    create_experiment = _waits(experiments.create_experiment)
    experiment = _waits(experiments.experiment)
    experiment_predict = _waits(experiments.experiment_predict)
    experiment_feedback = _waits(experiments.experiment_feedback)
    experiment_history = _waits(experiments.experiment_history)
    delete_experiment = _waits(experiments.delete_experiment)
    pause_experiment = _waits(experiments.pause_experiment)
    resume_experiment = _waits(experiments.resume_experiment)
    stop_experiment = _waits(experiments.stop_experiment)
    promote = _waits(experiments.promote)
    experiments = _waits(experiments.experiments)
    live = _waits(requests.live)
    ready = _waits(requests.ready)
    metrics = _waits(requests.metrics)

    def close(self) -> None:
        """Close the connections and the transport."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """The same for asyncio; use it in `async with`, or `await aclose()`."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float | httpx.Timeout = 30.0,
        retry: Retry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**_settings(base_url, key, timeout), transport=transport)
        self._retry = retry or Retry()

    async def send(self, call: Call[T]) -> T:
        """Send a call of `feedrank.clients.requests`."""
        steps = attempts(call, _request(self._http, call), self._retry)
        step = next(steps)
        try:
            while True:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    step = next(steps)
                else:
                    step = steps.send(await self._fetch(step))
        except StopIteration as done:
            reply: T = done.value
            return reply

    async def _fetch(self, request: httpx.Request) -> httpx.Response | httpx.TransportError:
        try:
            return await self._http.send(request)
        except httpx.TransportError as error:
            return error

    async def stream(self, name: str, entries: Iterable[JSON] | AsyncIterable[JSON]) -> AsyncIterator[Line]:
        """Send `{"predict": {...}}` and `{"feedback": {...}}`, in order; a refused one comes back as a `Refused`."""
        if isinstance(entries, AsyncIterable):
            entries = [entry async for entry in entries]
        for lines in requests.pieces(map(requests.line, entries)):
            for reply in await self.send(requests.piece(name, lines)):
                yield reply

    create = _awaits(requests.create)
    learners = _awaits(requests.learners)
    learner = _awaits(requests.learner)
    delete = _awaits(requests.delete)
    predict = _awaits(requests.predict)
    predict_many = _awaits(requests.predict_many)
    feedback = _awaits(requests.feedback)
    feedback_many = _awaits(requests.feedback_many)
    retract = _awaits(requests.retract)
    events = _awaits(requests.events)
    history = _awaits(requests.history)
    snapshot = _awaits(requests.snapshot)
    restore = _awaits(requests.restore)
    alias = _awaits(requests.alias)
    create_experiment = _awaits(experiments.create_experiment)
    experiment = _awaits(experiments.experiment)
    experiment_predict = _awaits(experiments.experiment_predict)
    experiment_feedback = _awaits(experiments.experiment_feedback)
    experiment_history = _awaits(experiments.experiment_history)
    delete_experiment = _awaits(experiments.delete_experiment)
    pause_experiment = _awaits(experiments.pause_experiment)
    resume_experiment = _awaits(experiments.resume_experiment)
    stop_experiment = _awaits(experiments.stop_experiment)
    promote = _awaits(experiments.promote)
    experiments = _awaits(experiments.experiments)
    live = _awaits(requests.live)
    ready = _awaits(requests.ready)
    metrics = _awaits(requests.metrics)

    async def aclose(self) -> None:
        """Close the connections and the transport."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
