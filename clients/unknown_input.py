"""Predictions for inputs that a learner has never met: a warning, once for each learner, or an error if asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache, partial

from .calls import reply_of
from .exceptions import BadRequest, UnknownInput
from .replies import Prediction

log = logging.getLogger("feedrank.clients")
ACTIONS = ("warn", "raise", "ignore")
_prediction = reply_of(Prediction)


def reader(name: str, action: str) -> Callable[[bytes], Prediction]:
    """How the reply of `predict` is read.

    warn     nothing of the input is known: one line of the log for each learner
    raise    something of it is not known: UnknownInput
    ignore   neither
    """
    if action not in ACTIONS:
        raise BadRequest(f"unknown is one of {', '.join(ACTIONS)}, not {action!r}")
    return _prediction if action == "ignore" else partial(_judged, name, action)


def _judged(name: str, action: str, content: bytes) -> Prediction:
    one = _prediction(content)
    if one.unknown:
        if action == "raise":
            raise UnknownInput(
                f"{one.unknown} of {one.unknown + (one.known or 0)} features are unknown to {name}"
            )
        if not one.known and one.version:
            _warn(name)
    return one


@lru_cache(maxsize=1000)
def _warn(name: str) -> None:
    log.warning(
        "%s has learned from nothing in this input, and predicts the same for every such one:"
        " are its columns, words and fields those that it was taught?",
        name,
    )
