"""Validates what is sent to a learner: requests, ids, truths, and their digests.

A field that a body may not hold is refused with a pointer to it. What a log holds is in events.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from feedrank.learners import kernel, truths, vectors
from feedrank.learners.errors import InputError, pointer
from feedrank.learners.forms import Form
from feedrank.learners.instances import FeatureVector

from .faults import Unprocessable
from .json_types import JSON, Body, View
from .logged_vectors import pack
from .name_lengths import check_instance, check_truth
from .settings import Settings

Line = tuple[str, JSON]  # of a stream: ("predict" or "feedback", its body)

INSTANCE = ("features", "items", "slots", "text", "vector", "row", "unknown_columns")
OPTIONS = ("top", "explain", "loss", "min_margin")
SHARED = frozenset({*OPTIONS, "coverage", "remember", "min_version", "min_precision", "promise", "subject"})
PREDICT = SHARED.union(INSTANCE, ("prediction_id", "exclude"))
CLICKS = frozenset({"prediction_id", "clicks"})
REWARD_PART = frozenset({"prediction_id", "part", "reward"})
FEEDBACK = frozenset(
    {*INSTANCE, *truths.FIELDS, "served", "weight", "prediction_id", "feedback_id", "subject"}
)
ERASE = frozenset({"feedback_id", "prediction_id", "subject"})
RETRACT = frozenset({"feedback_id", "prediction_id"})
RENAME = frozenset({"rename"})
COUNTED = (FeatureVector, list, dict, Mapping)
LONGEST_ID = 512
MOST_ERRORS = 100  # places that one refusal names
LONGEST_PREDICTION_ID = 200  # of one that the caller chose
DEFERRED = "deferred:"  # begins the id of a choice that is kept aside: nothing becomes of it by itself


class ErrorScope:
    """Errors of the core, and our own, with the pointer that leads to them from the whole body."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError) or (self._prefix and isinstance(error, Unprocessable)):
            raise placed(error, self._prefix) from None


def placed(error: InputError | Unprocessable, prefix: str = "") -> Unprocessable:
    """What the core, or we, refuse in a part of a body, seen from the whole; the part is at `prefix`."""
    if isinstance(error, InputError):
        return Unprocessable.at(prefix + error.pointer, error.detail)
    return error.under(prefix) if prefix else error


def no_object() -> Unprocessable:
    """A body that is something else."""
    return Unprocessable.at("", "must be an object")


def only(request: object, fields: frozenset[str]) -> View:
    """An object with no other fields than these."""
    # A plain dict is seen at once; asking an abstract class takes longer than all else here.
    if type(request) is not dict and not isinstance(request, Mapping):
        raise no_object()
    if request.keys() <= fields:
        return request
    strange = [name for name in request if name not in fields]
    raise Unprocessable(
        f"unknown field: {strange[0]}",
        errors=[{"pointer": pointer(name), "detail": "unknown field"} for name in strange[:MOST_ERRORS]],
    )


def instance_of(request: Body, settings: Settings, roles: Mapping[str, str] | None = None) -> JSON:
    """The instance of a request, within the limits of size, vectors as the log keeps them; the core reads the rest."""
    # A plain dict is seen at once; asking an abstract class takes longer than all else here.
    if type(request) is not dict and not isinstance(request, Mapping):
        raise no_object()
    instance: JSON = {}
    for name in INSTANCE:
        if name in request:
            instance[name] = request[name]
    features = instance.get("features")
    if features is not None and (
        type(features) is not FeatureVector or len(features) > settings.max_features
    ):
        _limit(features, settings.max_features, "/features", "features an instance")
    if "row" in instance:
        _limit(instance["row"], settings.max_features, "/row", "columns a row")
    if isinstance(slots := instance.get("slots"), list):
        for i, slot in enumerate(slots):
            if isinstance(slot, Mapping):
                place = f"/slots/{i}/features"
                _limit(slot.get("features"), settings.max_features, place, "features a slot")
    check_instance(instance)
    if roles is not None or "vector" in instance or "items" in instance:
        pack(instance, roles)
    items = instance.get("items")
    if items is None:
        return instance
    if isinstance(items, Mapping):
        _limit(items.get("ids"), settings.max_items, "/items/ids", "items a list")
        _limit(items.get("columns"), settings.max_features, "/items/columns", "features an item")
    elif isinstance(items, list):
        _limit(items, settings.max_items, "/items", "items a list")
        for i, item in enumerate(items):
            if isinstance(item, Mapping):
                place = f"/items/{i}/features"
                _limit(item.get("features"), settings.max_features, place, "features an item")
    return instance


def _limit(value: Any, most: int, place: str, what: str) -> None:
    if isinstance(value, COUNTED) and len(value) > most:
        raise Unprocessable.at(place, f"at most {most} {what}")


def truth_of(request: Body) -> JSON:
    """The fields of a request that are its truth."""
    truth: JSON = {}
    for name in truths.FIELDS:
        if name in request:
            truth[name] = request[name]
    check_truth(truth)
    return truth


def served_of(request: Body, form: Form) -> JSON | None:
    """The decision that was shown, if the request says so: `{"label"}`, `{"labels"}` or `{"ranking"}`, by the task."""
    served = request.get("served")
    if served is not None:
        check_truth(served if isinstance(served, Mapping) else {})
        form.decision.check(served)
    return dict(served) if isinstance(served, Mapping) else None


def flag(request: Body, name: str, default: bool) -> bool:
    """A field that is true or false."""
    value = request.get(name, default)
    if not isinstance(value, bool):
        raise Unprocessable.at(pointer(name), "must be true or false")
    return value


def excluded(request: Body, form: Form) -> list[str]:
    """The ids that must not be chosen."""
    value = request.get("exclude", [])
    if "exclude" in request and not form.chooses:
        raise Unprocessable.at("/exclude", f"is only for the task choice, not for {form.name}")
    if not isinstance(value, list) or not all(isinstance(id, str) for id in value):
        raise Unprocessable.at("/exclude", "must be a list of ids")
    return value


def whole(request: Body, name: str, least: int = 0) -> int:
    """A field that counts something; `least` if it is missing."""
    value = request.get(name, least)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Unprocessable.at(pointer(name), f"must be a whole number of at least {least}")
    return value


def id_of(request: Body, name: str, longest: int = LONGEST_ID) -> str | None:
    """An id that the caller chose: text, not empty, not too long, that can be printed."""
    if request.get(name) is None:
        return None
    value = text_of(request, name, longest)
    if value is not None and not value.isprintable():
        raise Unprocessable.at(pointer(name), "must contain printable characters only")
    return value


def text_of(request: Body, name: str, longest: int) -> str | None:
    """A field that is text, not empty, not too long."""
    value = request.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise Unprocessable.at(pointer(name), f"must be text of 1 to {longest} characters")
    return value


def batch_of(request: Body, name: str, most: int, shared: frozenset[str] = frozenset()) -> list[Any]:
    """The list of a batch; fields of `shared` beside it hold for each of its objects that does not say otherwise."""
    only(request, frozenset({name}) | shared)
    values = request[name]
    if not isinstance(values, list) or not values:
        raise Unprocessable.at(pointer(name), "must be a list of at least one")
    if len(values) > most:
        raise Unprocessable.at(pointer(name), f"at most {most} in a batch")
    common = {field: value for field, value in request.items() if field != name}
    if not common:
        return values
    return [{**common, **value} if isinstance(value, Mapping) else value for value in values]


def loads(data: bytes) -> Any:
    """What `orjson.loads` reads; the kernel reads "features", where it can, and `encode` writes them as they came."""
    value = kernel.loads(data)
    return orjson.loads(data) if value is None else value


def _as_written(value: object) -> object:
    if isinstance(value, FeatureVector) and value.json is not None:
        return orjson.Fragment(value.json)
    if isinstance(value, FeatureVector) and value.width:  # a vector that came as numbers
        return vectors.packed(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def _as_objects(value: object) -> object:
    if not isinstance(value, FeatureVector):
        raise TypeError(f"{type(value).__name__} has no JSON")
    if value.width:
        return vectors.packed(value)
    return orjson.loads(value.json or b"null")


def encode(
    value: object, default: Callable[[object], object] = _as_written, option: int | None = None
) -> bytes:
    """JSON, or Unprocessable where a value has no JSON that every reader understands alike."""
    try:
        return orjson.dumps(value, default, option)
    except TypeError as error:  # whole numbers beyond 64 bits, text that is not Unicode
        raise Unprocessable.at("", f"cannot be stored as JSON: {error}") from None


def truth_digest(truth: JSON, weight: float = 1.0) -> str:
    """Equal for truths that say the same."""
    try:
        plain = truths.canonical(truth) if weight == 1.0 else {**truths.canonical(truth), "weight": weight}
        data = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, AttributeError):
        raise Unprocessable.at("", "is not a truth") from None
    return blake2b(data, digest_size=16).hexdigest()


def request_digest(request: Body) -> str:
    """Equal for equal requests."""
    if type(request.get("vector")) is list:  # as the kernel would have read it
        request = {**request, "vector": vectors.packed(request["vector"])}
    data = encode(request, _as_objects, orjson.OPT_SORT_KEYS)
    return blake2b(data, digest_size=16).hexdigest()
