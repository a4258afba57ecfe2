"""The reply to a call, in the form in which whoever made the call wants it: plain objects, or the bytes of a body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import orjson

from feedrank.learners import kernel
from feedrank.learners.results import Prediction
from feedrank.service.contract.json_types import JSON

T = TypeVar("T")


class ReplyForm(NamedTuple, Generic[T]):
    """`one` makes a single reply; `part` one of a batch, which `many` joins; `ranking` the entries of a prediction."""

    one: Callable[[JSON], T]
    part: Callable[[JSON], T]
    many: Callable[[str, Sequence[T]], T]
    ranking: Callable[[Prediction], object] | None = None


def ranking_json(prediction: Prediction) -> orjson.Fragment | None:
    """The ranking as the kernel writes it; None leaves it to orjson."""
    if kernel.ranking_json is None or prediction.contributions:
        return None
    written = kernel.ranking_json(prediction.form.entry, prediction.ranking, prediction.probabilities)
    return None if written is None else orjson.Fragment(written)


def body(reply: JSON) -> bytes:
    """The bytes of a reply; it ends with a newline, so that the replies to curl lines in a row read well."""
    return orjson.dumps(reply, option=orjson.OPT_APPEND_NEWLINE)


def part(reply: JSON) -> bytes:
    """Those of one in a batch."""
    return orjson.dumps(reply)


def _same(reply: JSON) -> JSON:
    return reply


def _joined(name: str, parts: Sequence[bytes]) -> bytes:
    return b'{"%b":[%b]}\n' % (name.encode(), b",".join(parts))


OBJECTS: ReplyForm[JSON] = ReplyForm(_same, _same, lambda name, parts: {name: parts})
BODY: ReplyForm[bytes] = ReplyForm(body, part, _joined, ranking_json)
