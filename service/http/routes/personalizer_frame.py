"""What all calls of Azure Personalizer share: their addresses, the key in its header, errors as the SDKs read them.

Under `/at/{name}` a call is for the learner of that name; at the root for the one that `FEEDRANK_PERSONALIZER` names, else
for the one that the only prefix of the key names: one of the SDKs drops the path of its endpoint.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from starlette.responses import Response

from feedrank.service.contract.faults import NotFound, Unauthorized, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.naming import SHAPE
from feedrank.service.http.bodies import authorize, body_lease, read_json, read_object, reply
from feedrank.service.http.keyring import Key
from feedrank.service.http.problems import describe

KEY = "ocp-apim-subscription-key"
CODES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "ResourceNotFound",
    409: "RankDuplicatedEventId",
}
VERSIONS = ("/v1.0", "/v1.1-preview.1", "/v1.1-preview.2", "/v1.1-preview.3", "")
PATHS = tuple(f"{start}/personalizer{version}" for version in VERSIONS for start in ("/at/{name}", ""))
Work = Callable[[Request, str], Awaitable[Response]]


async def answer(request: Request, scope: str, work: Work) -> Response:
    """Check the key and the learner's name, and put what goes wrong in Personalizer's words."""
    try:
        state = request.app.state
        key: Key | None = None
        if state.keyring is not None:
            key = state.keyring.find(request.headers.get(KEY, ""))
            if key is None:
                raise Unauthorized(f"send `{KEY}` with a valid key")
        name = request.path_params.get("name") or state.settings.personalizer or _of_key(key)
        if not name or SHAPE.fullmatch(name) is None:
            raise NotFound(
                "no learner is at this address: use /at/{learner}, or set FEEDRANK_PERSONALIZER, or use a key with the "
                "learner's name as its only prefix"
            )
        if key is not None:
            authorize(key, scope, name)
            request.scope["feedrank.use"] = state.shares.begin(key)
        with body_lease(request) as request.scope["feedrank.lease"]:
            return await work(request, name)
    except Exception as error:
        return refuse(error)


def _of_key(key: Key | None) -> str:
    return key.prefixes[0] if key is not None and len(key.prefixes) == 1 else ""


def refuse(error: Exception) -> Response:
    """An error as the SDKs read it."""
    problem = describe(error)
    status = 400 if problem.status == 422 else problem.status
    code = CODES.get(status, "InternalServerError" if status >= 500 else "BadRequest")
    return reply({"error": {"code": code, "message": problem.detail}}, status)


async def body_of(request: Request, scope: str) -> JSON:
    """The JSON object that was sent."""
    return await read_json(request, request.scope["feedrank.lease"], scope, read_object)


def route(router: APIRouter, method: str, tail: str, scope: str) -> Callable[[Work], Work]:
    """Route one call of all SDKs, with and without a learner in the path, to its work."""

    def register(work: Work) -> Work:
        async def endpoint(request: Request) -> Response:
            return await answer(request, scope, work)

        for start in PATHS:
            router.add_api_route(start + tail, endpoint, methods=[method])
        return work

    return register


def text_of(body: JSON, field: str) -> str | None:
    """A field that is text, if it is there."""
    value = body.get(field)
    if value is not None and not isinstance(value, str):
        raise Unprocessable.at(f"/{field}", "must be text")
    return value or None
