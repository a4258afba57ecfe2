"""The content of `/openapi.json`: how a route declares its scope, reply and errors, and what FastAPI cannot derive.

Bodies and replies are named, `"Prediction | Predictions"`: the models are made when the document is first asked for, since
making them takes a fifth of a start and no request needs them.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import CoreSchema

from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.naming import NAME

from .problems import MEDIA_TYPE

Name = Annotated[
    str,
    Path(pattern=f"^{NAME}$", description="letters, digits, `.`, `_`, `-`; at most 128", examples=["mail"]),
]
Cursor = Annotated[str | None, Query(description="`next` of the page before")]

TITLES = {
    401: "no valid key",
    403: "the key lacks the scope or the name",
    404: "unknown",
    409: "in conflict with what is there",
    410: "expired, or erased",
    413: "above a size limit",
    429: "a share of the key is used up",
    422: "not valid; `errors` points to the places",
    503: "the store does not answer, or it took too long",
    507: "a storage limit is reached",
}
ALWAYS = (401, 403, 422, 429, 503)
REFERENCE = "#/components/schemas/"


def call(
    scope: str,
    *errors: int,
    reply: str = "",
    status: int = 200,
    also: dict[int | str, Any] | None = None,
    **more: Any,
) -> JSON:
    """The keywords of a route: the scope a key needs (`any` for none in particular), errors and reply for OpenAPI."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{REFERENCE}Problem"}}}
    responses: dict[int | str, Any] = {
        code: {"description": TITLES[code], "content": content} for code in sorted({*errors, *ALWAYS})
    }
    if reply:
        responses[status] = described(reply)
    responses.update(also or {})
    extra = {"x-scope": scope, **more.pop("openapi_extra", {})}
    return {
        "responses": responses,
        "status_code": status,
        "response_model": None,
        "openapi_extra": extra,
        **more,
    }


def described(reply: str, description: str = "Successful Response") -> JSON:
    """A reply of one of these models."""
    schemas = [{"$ref": REFERENCE + name} for name in reply.split(" | ")]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def models() -> dict[str, type[BaseModel]]:
    """The models of the contract by name."""
    from feedrank.service.contract import (  # noqa: PLC0415
        experiment_bodies,
        experiment_models,
        log_models,
        reply_models,
        request_models,
        sureness_models,
    )

    modules = (
        experiment_bodies,
        experiment_models,
        log_models,
        reply_models,
        request_models,
        sureness_models,
    )
    return {name: value for module in modules for name, value in vars(module).items() if is_model(value)}


def is_model(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


class Documented:
    """`Annotated[JSON, Documented("PredictBody")]`: a plain dict at run time, described by the model in OpenAPI."""

    def __init__(self, model: str) -> None:
        self.model = model

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(models()[self.model].__pydantic_core_schema__)


def replies(paths: JSON) -> set[str]:
    """The models that replies name."""
    contents = [
        content
        for calls in paths.values()
        for call in calls.values()
        for response in call["responses"].values()
        for content in response.get("content", {}).values()
    ]
    schemas = [content.get("schema", {}) for content in contents]
    refs = [one.get("$ref", "") for schema in schemas for one in schema.get("anyOf", [schema])]
    return {ref.removeprefix(REFERENCE) for ref in refs if ref}


def document(app: FastAPI) -> JSON:
    """OpenAPI with what FastAPI cannot know: the problem document and, where keys are configured, their scheme."""
    if app.openapi_schema is None:
        described = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = described.setdefault("components", {})
        named = replies(described["paths"])
        wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [
            (model, "serialization" if name in named else "validation")
            for name, model in models().items()
            if name in named or name == "StreamLine"
        ]
        _, definitions = models_json_schema(wanted, ref_template=f"{REFERENCE}{{model}}")
        parts["schemas"].update(definitions["$defs"])
        if app.state.settings.keys_file:
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            for calls in described["paths"].values():
                for call in calls.values():
                    if "x-scope" in call:
                        call["security"] = [{"key": []}]
        app.openapi_schema = described
    return app.openapi_schema
