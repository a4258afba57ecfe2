"""How a call is declared: a FastAPI route that knows its scope, its reply and its errors, and costs little.

FastAPI documents the endpoint from its signature. A call with a `body` (a JSON object) or `data` (raw bytes) is then
run directly: the bytes are read within the limit, parsed once by orjson and handed to the host, which validates them;
measured, that is about a third of the time of a validated model. Other calls run as FastAPI runs them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Annotated, Any

import orjson
from fastapi import Path, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from starlette.responses import Response

from .bodies import read_body, read_object
from .errors import Forbidden, Unprocessable
from .keys import Key
from .problems import MEDIA_TYPE

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
Name = Annotated[
    str,
    Path(pattern=f"^{NAME}$", description="letters, digits, `.`, `_`, `-`; at most 128", examples=["mail"]),
]
SHAPE = re.compile(NAME)

TITLES = {
    401: "no valid key",
    403: "the key lacks the scope or the name",
    404: "unknown",
    409: "in conflict with what is there",
    410: "expired",
    413: "above a size limit",
    422: "not valid; `errors` points to the places",
    503: "the store does not answer, or it took too long",
    507: "a storage limit is reached",
}
ALWAYS = (401, 403, 422, 503)


def call(
    scope: str,
    *errors: int,
    reply: Any = None,
    status: int = 200,
    also: dict[int | str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The keywords of a route: the scope a key needs (`any` for none in particular), errors and reply for OpenAPI."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[int | str, Any] = {
        code: {"description": TITLES[code], "content": content} for code in sorted({*errors, *ALWAYS})
    }
    responses.update(also or {})
    extra = {"x-scope": scope, **more.pop("openapi_extra", {})}
    return {
        "responses": responses,
        "status_code": status,
        "response_model": reply,
        "openapi_extra": extra,
        **more,
    }


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Call(APIRoute):
    """A route that asks for its scope first and skips FastAPI's own parsing where there is a body."""

    def get_route_handler(self) -> Handler:
        scope = (self.openapi_extra or {}).get("x-scope", "any")
        taken = inspect.signature(self.endpoint).parameters
        inner = super().get_route_handler()
        if "body" in taken:
            inner = _with_json(self.endpoint)
        elif "data" in taken:
            inner = _with_bytes(self.endpoint)

        async def handler(request: Request) -> Response:
            key: Key | None = request.scope.get("feedrank.key")
            if key is not None:
                authorize(key, scope, request.path_params.get("name"))
            return await inner(request)

        return handler


def _with_json(endpoint: Callable[..., Any]) -> Handler:
    async def handler(request: Request) -> Response:
        names = checked(request.path_params)
        data = await read_body(request.scope, request.receive, request.app.state.settings.max_body)
        response: Response = await endpoint(request, body=read_object(data), **names)
        return response

    return handler


def _with_bytes(endpoint: Callable[..., Any]) -> Handler:
    async def handler(request: Request) -> Response:
        names = checked(request.path_params)
        data = await read_body(request.scope, request.receive, request.app.state.settings.max_snapshot)
        response: Response = await endpoint(request, data=data, **names)
        return response

    return handler


def checked(names: dict[str, str]) -> dict[str, str]:
    """The path parameters, each a valid name."""
    for field, name in names.items():
        if SHAPE.fullmatch(name) is None:
            raise Unprocessable.at(f"/{field}", f"a name must match {NAME}")
    return names


def authorize(key: Key, scope: str, *names: str | None) -> None:
    """Refuse a key without the scope or outside its prefixes."""
    if not key.may(scope):
        raise Forbidden(f"this key has not the scope {scope!r}")
    for name in names:
        if name is not None and not key.reaches(name):
            raise Forbidden(f"this key is bound to names that start with {' or '.join(key.prefixes)}")


def reached(request: Request, names: Iterable[str]) -> None:
    """Refuse names in a body that the request's key does not reach."""
    key: Key | None = request.scope.get("feedrank.key")
    if key is not None:
        authorize(key, "any", *names)


def reply(value: Any, status: int = 200) -> Response:
    """A JSON reply."""
    return JsonReply(orjson.dumps(value), status)


class JsonReply(Response):
    """A response that knows its headers; the general one spends more time on them than on the reply."""

    def __init__(self, body: bytes, status: int) -> None:
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]


class Documented:
    """`Annotated[JSON, Documented(Model)]`: a plain dict at run time, described by `Model` in OpenAPI."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self.model.__pydantic_core_schema__)
