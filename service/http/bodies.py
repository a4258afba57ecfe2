"""Reads and writes bodies: at most the limit is read, and only valid JSON is accepted (no NaN, Infinity or 1e999).

FastAPI documents an endpoint from its signature. A call with a `body` (a JSON object) or `data` (a file) is run
directly: the bytes are read within the limit, parsed once by orjson and handed to the host, which validates them;
measured, that is about a third of the time of a validated model. Other calls run as FastAPI runs them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, BinaryIO

import orjson
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from feedrank.learners import kernel
from feedrank.learners.errors import pointer
from feedrank.learners.instances import FeatureVector
from feedrank.learners.kernel.body_cost import most_bytes
from feedrank.service.contract.budget import PARSED, Budget, Lease
from feedrank.service.contract.faults import Forbidden, MemoryFull, TooLarge, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.naming import NAME, SHAPE, every_name
from feedrank.service.runtime.checkpoints import no_room
from feedrank.service.store.shared import spool

from .keyring import Key
from .problems import MalformedJson
from .shares import Use

LARGE = 2**17  # bytes of JSON from which it is parsed in a thread


@contextlib.contextmanager
def body_lease(request: Request) -> Iterator[Lease]:
    """What the body of a request takes; where it is refused, the connection closes, since the rest is still on it."""
    budget: Budget = request.app.state.host.budget
    try:
        with budget.lease() as lease:
            yield lease
    except MemoryFull as error:
        error.headers["Connection"] = "close"
        raise


async def read_json(request: Request, lease: Lease, scope: str, read: Callable[[bytes], JSON]) -> JSON:
    """The body, as `read` reads it: what its values take is counted before they are made, and what is stored of it."""
    settings, budget = request.app.state.settings, request.app.state.host.budget
    use: Use | None = request.scope.get("feedrank.use")
    name = request.path_params.get("name", "")
    if use is not None and request.method == "PUT" and request.scope["path"] == f"/v1/learners/{name}":
        await use.make(name)
    data = await read_body(request.scope, request.receive, settings.max_body, budget, lease)
    # A thread that parses lets go of nothing but the loop's own time: what is short is parsed here.
    if len(data) < LARGE:
        lease.resize(PARSED * len(data))
        value = read(data)
    else:
        lease.resize(len(data) + await asyncio.to_thread(most_bytes, data))
        value = await asyncio.to_thread(read, data)
    if use is not None:
        await use.store(name, scope, len(data), remember=value.get("remember") is not False)
    return value


async def read_body(scope: Scope, receive: Receive, limit: int, budget: Budget, lease: Lease) -> bytes:
    """The body, or TooLarge as soon as its length is announced or seen to pass `limit`; the rest is not read."""
    check_length(scope, limit, budget)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise too_large(limit)
        return body
    pieces = []
    async for piece in chunks(message, receive, limit):
        lease.resize(lease.size + len(piece))
        pieces.append(piece)
    return b"".join(pieces)


async def save_body(
    scope: Scope, receive: Receive, limit: int, budget: Budget, lease: Lease, out: BinaryIO
) -> int:
    """The same, into a file that is then read from its start: its bytes. What is made of a snapshot takes twice as many."""
    check_length(scope, limit, budget)
    waiting, size = [], 0
    with no_room():
        async for chunk in chunks(await receive(), receive, limit):
            lease.resize(lease.size + 2 * len(chunk))
            waiting.append(chunk)
            size += len(chunk)
            if size > LARGE:
                await asyncio.to_thread(out.writelines, waiting)
                waiting, size = [], 0
        out.writelines(waiting)
        size = out.tell()
        out.seek(0)
    return size


def check_length(scope: Scope, limit: int, budget: Budget) -> None:
    """Refuse a body by the length that its head announces, before any of it is read."""
    length = int(scope["feedrank.headers"].get(b"content-length", 0))
    if length > limit:
        raise too_large(limit)
    budget.check(length)


async def chunks(message: Message, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body that a message begins, as it comes."""
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        yield chunk
        if not message.get("more_body", False):
            return
        message = await receive()


def too_large(limit: int) -> TooLarge:
    """The refusal; the connection closes, since the rest of the body is still on it."""
    return TooLarge(f"the server takes at most {limit} bytes here", headers={"Connection": "close"})


def read_round(data: bytes, last: FeatureVector | None = None) -> JSON:
    """The JSON object in `data`, a round of a learner: the kernel reads its features, where it can.

    Where their JSON is that of `last` again, they are `last`.
    """
    value = kernel.loads(data, last)
    return read_object(data) if value is None else value


def read_object(data: bytes) -> JSON:
    """The JSON object in `data`."""
    kernel.check_body(data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise refusal(data, str(error)) from None
    if not isinstance(value, dict):
        raise Unprocessable.at("", "must be a JSON object")
    return value


def refusal(data: bytes, reason: str) -> Unprocessable:
    """Why `data` is not JSON: the standard library also reads NaN and 1e999, so it can say where they stand."""
    place = None
    with contextlib.suppress(ValueError, RecursionError):
        place = non_finite(json.loads(data))
    if place is not None:
        return Unprocessable.at(pointer(*place), "must be a finite number")
    return MalformedJson.at("", reason)


def non_finite(value: object) -> tuple[str | int, ...] | None:
    """The way to the first number that no double can hold."""
    match value:
        case dict() | list():
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                if (place := non_finite(part)) is not None:
                    return (key, *place)
            return None
        case int() | float():
            try:
                return None if math.isfinite(float(value)) else ()
            except OverflowError:
                return ()
        case _:
            return None


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Call(APIRoute):
    """A route that asks for its scope first and skips FastAPI's own parsing where there is a body."""

    def get_route_handler(self) -> Handler:
        scope = (self.openapi_extra or {}).get("x-scope", "any")
        taken = inspect.signature(self.endpoint).parameters
        if "body" in taken:
            of_learner = self.path.startswith("/v1/learners/{name}/")
            return _with_json(self.endpoint, scope, read_round if of_learner else read_object)
        inner = _with_file(self.endpoint) if "data" in taken else super().get_route_handler()

        async def handler(request: Request) -> Response:
            admit(request, scope)
            return await inner(request)

        return handler


def admit(request: Request, scope: str) -> None:
    """Refuse a request whose key lacks the scope, or is not valid for the name in its path."""
    key: Key | None = request.scope.get("feedrank.key")
    if key is not None:
        authorize(key, scope, request.path_params.get("name"))


def _with_json(endpoint: Callable[..., Any], scope: str, read: Callable[[bytes], JSON]) -> Handler:
    async def handler(request: Request) -> Response:
        admit(request, scope)
        names = checked(request.path_params)
        with body_lease(request) as lease:
            # Nothing here keeps the body while the call waits.
            called = endpoint(request, body=await read_json(request, lease, scope, read), **names)
            response: Response = await called
            return response

    return handler


def _with_file(endpoint: Callable[..., Any]) -> Handler:
    async def handler(request: Request) -> Response:
        names = checked(request.path_params)
        state = request.app.state
        with body_lease(request) as lease, spool() as data:
            most, budget = state.settings.max_snapshot, state.host.budget
            use: Use | None = request.scope.get("feedrank.use")
            if use is not None:
                await use.make(names["name"])
            size = await save_body(request.scope, request.receive, most, budget, lease, data)
            if use is not None:
                await use.store(names["name"], "admin", size)
            response: Response = await endpoint(request, data=data, **names)
            return response

    return handler


def checked(names: dict[str, str]) -> dict[str, str]:
    """The path parameters, each a valid name."""
    for field, name in names.items():
        if SHAPE.fullmatch(name) is None:
            raise Unprocessable.at(f"/{field}", f"a name must match the pattern {NAME}")
    return names


def authorize(key: Key, scope: str, *names: str | None) -> None:
    """Refuse a key without the scope or outside its prefixes."""
    if not key.may(scope):
        raise Forbidden(f"this key does not have the scope {scope!r}")
    for name in names:
        if name is not None and not key.reaches(name):
            raise Forbidden(f"this key is bound to names that start with {' or '.join(key.prefixes)}")


def reach(request: Request) -> Callable[[str], bool]:
    """Which names the request's key may see."""
    key: Key | None = request.scope.get("feedrank.key")
    return every_name if key is None else key.reaches


def reached(request: Request, names: Iterable[str]) -> None:
    """Refuse names in a body that the request's key does not reach."""
    key: Key | None = request.scope.get("feedrank.key")
    if key is not None:
        authorize(key, "any", *names)


def reply(value: object, status: int = 200) -> Response:
    """A JSON reply; it ends with a newline, as those of predict and feedback do."""
    return JsonReply(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE), status)


class JsonReply(Response):
    """A response that knows its headers; the general one spends more time on them than on the reply."""

    def __init__(self, body: bytes, status: int) -> None:
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})
