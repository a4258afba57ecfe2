"""`Client` and `AsyncClient`: the calls of `requests` and `experiment_requests`, sent over httpx, with retries.

The calls are listed once, in `Calls`; the two clients below it differ in how they wait.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from types import MethodType
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, get_args, overload

import httpx

from feedrank import __version__

from . import experiment_requests, requests
from .attempts import Answer, Body, Retry, attempts
from .calls import Call
from .exceptions import BadRequest
from .payloads import JSON, Payload
from .replies import Unit
from .requests import Pieces, StreamReply

__all__ = ["AsyncClient", "Client", "Retry"]

P = ParamSpec("P")
T = TypeVar("T")
MOST_UNITS = 1000  # of a page
REPLY_SECONDS = 600.0
"""A reply that takes longer is given up, however steadily it drips. `timeout` bounds the silence between two pieces."""


class Method(Generic[P, T]):
    """A call as a method: `Client` gives its reply, `AsyncClient` something to await. It has the call's signature."""

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        def method(self: Client | AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return self.send(describe(*args, **kwargs))

        signature = inspect.signature(describe, eval_str=True)
        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        (reply,) = get_args(signature.return_annotation)
        method.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[this, *signature.parameters.values()], return_annotation=reply
        )
        method.__name__, method.__qualname__ = describe.__name__, f"Client.{describe.__name__}"
        method.__doc__ = describe.__doc__
        self._method = method

    @overload
    def __get__(self, instance: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, instance: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...
    def __get__(self, instance: Client | AsyncClient | None, owner: type) -> Callable[..., Any]:
        return self._method if instance is None else MethodType(self._method, instance)


class Calls:
    """Every call of the service."""

    create: Final = Method(requests.create)
    learners: Final = Method(requests.learners)
    learner: Final = Method(requests.learner)
    delete: Final = Method(requests.delete)
    predict: Final = Method(requests.predict)
    predict_many: Final = Method(requests.predict_many)
    feedback: Final = Method(requests.feedback)
    feedback_many: Final = Method(requests.feedback_many)
    clicks: Final = Method(requests.clicks)
    rewards: Final = Method(requests.rewards)
    retract: Final = Method(requests.retract)
    retract_many: Final = Method(requests.retract_many)
    rename_label: Final = Method(requests.rename_label)
    queue: Final = Method(requests.queue)
    erase: Final = Method(requests.erase)
    erase_subject: Final = Method(requests.erase_subject)
    evaluate: Final = Method(requests.evaluate)
    events: Final = Method(requests.events)
    history: Final = Method(requests.history)
    labels: Final = Method(requests.labels)
    reliability: Final = Method(requests.reliability)
    weights: Final = Method(requests.weights)
    snapshot: Final = Method(requests.snapshot)
    restore: Final = Method(requests.restore)
    alias: Final = Method(requests.alias)
    aliases: Final = Method(requests.aliases)
    create_experiment: Final = Method(experiment_requests.create_experiment)
    experiment: Final = Method(experiment_requests.experiment)
    experiments: Final = Method(experiment_requests.experiments)
    experiment_predict: Final = Method(experiment_requests.experiment_predict)
    experiment_feedback: Final = Method(experiment_requests.experiment_feedback)
    experiment_clicks: Final = Method(experiment_requests.experiment_clicks)
    experiment_retract: Final = Method(experiment_requests.experiment_retract)
    experiment_retract_many: Final = Method(experiment_requests.experiment_retract_many)
    experiment_history: Final = Method(experiment_requests.experiment_history)
    assign: Final = Method(experiment_requests.assign)
    unit_event: Final = Method(experiment_requests.unit_event)
    units_page: Final = Method(experiment_requests.units_page)
    ramp: Final = Method(experiment_requests.ramp)
    delete_experiment: Final = Method(experiment_requests.delete_experiment)
    pause_experiment: Final = Method(experiment_requests.pause_experiment)
    resume_experiment: Final = Method(experiment_requests.resume_experiment)
    stop_experiment: Final = Method(experiment_requests.stop_experiment)
    promote: Final = Method(experiment_requests.promote)
    live: Final = Method(requests.live)
    ready: Final = Method(requests.ready)
    metrics: Final = Method(requests.metrics)


class Client(Calls):
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
        self._http = httpx.Client(**_options(base_url, key, timeout), transport=transport)
        self._retry = retry or Retry()

    def send(self, call: Call[T]) -> T:
        """Send a call of `feedrank.clients.requests`."""
        steps = attempts(call, lambda: _request(self._http, call), self._retry)
        try:
            step = next(steps)
            while True:
                if isinstance(step, httpx.Request):
                    step = steps.send(self._fetch(step, call.limit))
                else:
                    time.sleep(step)
                    step = next(steps)
        except StopIteration as done:
            reply: T = done.value
            return reply

    def _fetch(self, request: httpx.Request, limit: int) -> Answer | httpx.RequestError:
        try:
            response = self._http.send(request, stream=True)
            try:
                body = Body(response, limit, REPLY_SECONDS)
                for chunk in response.iter_bytes():
                    body.add(chunk)
                return body.answer()
            finally:
                response.close()
        except httpx.RequestError as error:
            return error

    def stream(self, name: str, entries: Iterable[Payload]) -> Iterator[StreamReply]:
        """Send `{"predict": {...}}` and `{"feedback": {...}}`, in order; a refused one comes back as a `Refused`."""
        pieces = Pieces()
        for entry in entries:
            if full := pieces.add(requests.line(entry)):
                yield from self.send(requests.piece(name, full))
        if rest := pieces.rest():
            yield from self.send(requests.piece(name, rest))

    def units(self, name: str) -> Iterator[Unit]:
        """Every unit of an experiment with `per`, in the order of first exposures: what its verdict is computed from."""
        page = self.units_page(name, MOST_UNITS)
        while True:
            yield from page.units
            if page.next is None:
                return
            page = self.units_page(name, MOST_UNITS, page.next)

    def close(self) -> None:
        """Close the connections and the transport."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Calls):
    """The same calls to `await`; use it in `async with`, or `await aclose()`."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float | httpx.Timeout = 30.0,
        retry: Retry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**_options(base_url, key, timeout), transport=transport)
        self._retry = retry or Retry()

    async def send(self, call: Call[T]) -> T:
        """Send a call of `feedrank.clients.requests`."""
        steps = attempts(call, lambda: _request(self._http, call), self._retry)
        try:
            step = next(steps)
            while True:
                if isinstance(step, httpx.Request):
                    step = steps.send(await self._fetch(step, call.limit))
                else:
                    await asyncio.sleep(step)
                    step = next(steps)
        except StopIteration as done:
            reply: T = done.value
            return reply

    async def _fetch(self, request: httpx.Request, limit: int) -> Answer | httpx.RequestError:
        try:
            response = await self._http.send(request, stream=True)
            try:
                body = Body(response, limit, REPLY_SECONDS)
                async for chunk in response.aiter_bytes():
                    body.add(chunk)
                return body.answer()
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            return error

    async def stream(
        self, name: str, entries: Iterable[Payload] | AsyncIterable[Payload]
    ) -> AsyncIterator[StreamReply]:
        """Send `{"predict": {...}}` and `{"feedback": {...}}`, in order; a refused one comes back as a `Refused`."""
        pieces = Pieces()
        async for entry in entries if isinstance(entries, AsyncIterable) else _each(entries):
            if full := pieces.add(requests.line(entry)):
                for reply in await self.send(requests.piece(name, full)):
                    yield reply
        if rest := pieces.rest():
            for reply in await self.send(requests.piece(name, rest)):
                yield reply

    async def units(self, name: str) -> AsyncIterator[Unit]:
        """Every unit of an experiment with `per`, in the order of first exposures: what its verdict is computed from."""
        page = await self.units_page(name, MOST_UNITS)
        while True:
            for unit in page.units:
                yield unit
            if page.next is None:
                return
            page = await self.units_page(name, MOST_UNITS, page.next)

    async def aclose(self) -> None:
        """Close the connections and the transport."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _each(entries: Iterable[Payload]) -> AsyncIterator[Payload]:
    for entry in entries:
        yield entry


def _request(client: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    headers = {"content-type": call.media_type} if call.content is not None else {}
    if "opentelemetry" in sys.modules:  # the app traces itself: its trace goes on in the service
        from opentelemetry.propagate import inject  # noqa: PLC0415

        inject(headers)
    return client.build_request(
        call.method, call.path, content=call.content, params=call.params, headers=headers
    )


def _options(base_url: str, key: str | None, timeout: float | httpx.Timeout) -> JSON:
    headers = {"user-agent": f"feedrank/{__version__}"}
    if key:
        if not (key.isascii() and key.isprintable()):
            raise BadRequest("a key is plain ASCII: this one has other characters or a line end")
        headers["authorization"] = f"Bearer {key}"
    try:
        return {"base_url": httpx.URL(base_url), "headers": headers, "timeout": timeout}
    except httpx.InvalidURL as error:
        raise BadRequest(f"{base_url!r} is not the address of a service: {error}") from error
