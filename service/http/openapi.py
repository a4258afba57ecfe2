"""What `/openapi.json` says: how a route declares its scope, its reply and its errors, and what FastAPI cannot know."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Path
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import CoreSchema

from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.naming import NAME
from feedrank.service.contract.reply_models import Problem
from feedrank.service.contract.request_models import StreamLine

from .problems import MEDIA_TYPE

Name = Annotated[
    str,
    Path(pattern=f"^{NAME}$", description="letters, digits, `.`, `_`, `-`; at most 128", examples=["mail"]),
]

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
) -> JSON:
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


class Documented:
    """`Annotated[JSON, Documented(Model)]`: a plain dict at run time, described by `Model` in OpenAPI."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self.model.__pydantic_core_schema__)


def document(app: FastAPI) -> JSON:
    """OpenAPI with what FastAPI cannot know: the problem document and, where keys are configured, their scheme."""
    if app.openapi_schema is None:
        described = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = described.setdefault("components", {})
        named: list[tuple[type[BaseModel], JsonSchemaMode]] = [
            (Problem, "validation"),
            (StreamLine, "validation"),
        ]
        _, definitions = models_json_schema(named, ref_template="#/components/schemas/{model}")
        parts["schemas"].update(definitions["$defs"])
        if app.state.settings.keys_file:
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            for calls in described["paths"].values():
                for call in calls.values():
                    if "x-scope" in call:
                        call["security"] = [{"key": []}]
        app.openapi_schema = described
    return app.openapi_schema
