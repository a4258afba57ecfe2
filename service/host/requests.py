"""Reading requests: what the contract's bodies may hold. Everything else is refused with a pointer to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from feedrank.learners.errors import InputError, pointer

from ..errors import Unprocessable
from .settings import HostSettings

INSTANCE = ("features", "items")
TRUTH = ("label", "labels", "relevance", "clicks")
OPTIONS = ("top", "explain", "loss", "min_margin")
SHARED = frozenset({*OPTIONS, "remember", "min_version"})
PREDICT = SHARED.union(INSTANCE)
FEEDBACK = frozenset({*INSTANCE, *TRUTH, "served", "prediction_id", "feedback_id"})
RETRACT = ("feedback_id", "prediction_id")
LONGEST_ID = 512


@contextmanager
def pointed(prefix: str = "") -> Iterator[None]:
    """Errors of the core, and our own, as seen from the whole body."""
    try:
        yield
    except InputError as error:
        raise Unprocessable.at(prefix + error.pointer, error.detail) from None
    except Unprocessable as error:
        if not prefix:
            raise
        raise error.under(prefix) from None


def known(request: Any, fields: frozenset[str]) -> Mapping[str, Any]:
    """An object with no other fields than these."""
    if not isinstance(request, Mapping):
        raise Unprocessable.at("", "must be an object")
    strange = [name for name in request if name not in fields]
    if strange:
        raise Unprocessable(
            f"unknown field: {strange[0]}",
            errors=[{"pointer": pointer(name), "detail": "unknown field"} for name in strange],
        )
    return request


def instance_of(request: Mapping[str, Any], settings: HostSettings) -> dict[str, Any]:
    """The instance of a request, within the limits of size; the core reads the rest."""
    instance = {name: request[name] for name in INSTANCE if name in request}
    features, items = request.get("features"), request.get("items")
    if isinstance(features, Mapping | list) and len(features) > settings.max_features:
        raise Unprocessable.at("/features", f"at most {settings.max_features} features an instance")
    if isinstance(items, list):
        if len(items) > settings.max_items:
            raise Unprocessable.at("/items", f"at most {settings.max_items} items a list")
        for i, item in enumerate(items):
            features = item.get("features") if isinstance(item, Mapping) else None
            if isinstance(features, Mapping | list) and len(features) > settings.max_features:
                raise Unprocessable.at(
                    f"/items/{i}/features", f"at most {settings.max_features} features an item"
                )
    return instance


def truth_of(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: request[name] for name in TRUTH if name in request}


def served_of(request: Mapping[str, Any], task: str) -> dict[str, Any] | None:
    """The decision that was shown, where an instance is sent again: `{"label"}`, `{"labels"}` or `{"ranking"}`."""
    served = request.get("served")
    if served is None:
        return None
    field = {"multilabel": "labels", "label-ranking": "ranking", "subset-ranking": "ranking"}.get(
        task, "label"
    )
    if not isinstance(served, Mapping) or set(served) != {field}:
        raise Unprocessable.at("/served", f"must be an object with {field!r} only")
    shown = served[field]
    if field != "ranking" and shown is None:
        return dict(served)  # it abstained
    names = [shown] if field == "label" else shown
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unprocessable.at(
            f"/served/{field}", "must be text" if field == "label" else "must be a list of text"
        )
    if len(set(names)) < len(names):
        raise Unprocessable.at(f"/served/{field}", "nothing can be shown twice")
    return dict(served)


def flag(request: Mapping[str, Any], name: str, default: bool) -> bool:
    value = request.get(name, default)
    if not isinstance(value, bool):
        raise Unprocessable.at(pointer(name), "must be true or false")
    return value


def whole(request: Mapping[str, Any], name: str) -> int:
    value = request.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Unprocessable.at(pointer(name), "must be a whole number of at least 0")
    return value


def id_of(request: Mapping[str, Any], name: str) -> str | None:
    """An id the caller gave: text, not empty, not too long."""
    value = request.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID:
        raise Unprocessable.at(pointer(name), f"must be text of 1 to {LONGEST_ID} characters")
    if not value.isprintable():
        raise Unprocessable.at(pointer(name), "must hold printable characters only")
    return value


def many(request: Mapping[str, Any], name: str, most: int, shared: frozenset[str] = frozenset()) -> list[Any]:
    """The list of a batch; fields of `shared` beside it hold for each of its objects that does not say otherwise."""
    known(request, frozenset({name}) | shared)
    values = request[name]
    if not isinstance(values, list) or not values:
        raise Unprocessable.at(pointer(name), "must be a list of at least one")
    if len(values) > most:
        raise Unprocessable.at(pointer(name), f"at most {most} in a batch")
    common = {field: value for field, value in request.items() if field != name}
    if not common:
        return values
    return [{**common, **value} if isinstance(value, Mapping) else value for value in values]
