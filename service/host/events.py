"""Events: what a log entry says, as bytes and back.

feedback     body {"truth", "instance"?, "served"?, "feedback_id"?, "prediction_id"?}; the record taken {"instance",
             "served", "version"} if it answers a prediction, whose `served` the body may overrule
withdrawal   body {"withdraws": version, "feedback_id" or "prediction_id"}
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from ..errors import Unprocessable
from ..store import Entry


@dataclass(slots=True)
class Event:
    """One entry of a learner's log.

    `found` is the instance as the core has read it, where that was already done; `outcome` what applying it gave here.
    """

    truth: dict[str, Any] | None = None
    instance: dict[str, Any] | None = None
    served: dict[str, Any] | None = None
    withdraws: int = 0
    feedback_id: str | None = None
    prediction_id: str | None = None
    found: Any = None
    outcome: dict[str, Any] | None = None
    corrected: bool = False
    """`served` is what its user was shown in the end, not what was predicted: the log must keep it."""

    def show(self, served: dict[str, Any] | None) -> None:
        """What was shown instead of the prediction, if anything: a page that was cut, mixed or put in order again."""
        if served is not None:
            self.served, self.corrected = served, True

    @property
    def named(self) -> bool:
        """Whether it can be sent again under an id, so that its outcome must be kept."""
        return not self.withdraws and (self.feedback_id is not None or self.prediction_id is not None)

    def body(self) -> bytes:
        """As the log keeps it; the instance of a remembered prediction is in the record that the entry takes."""
        told: dict[str, Any] = {"withdraws": self.withdraws} if self.withdraws else {"truth": self.truth}
        if self.instance is not None and self.prediction_id is None:
            told["instance"] = self.instance
        if self.served is not None and (self.corrected or "instance" in told):
            told["served"] = self.served
        for name in ("feedback_id", "prediction_id"):
            if (value := getattr(self, name)) is not None:
                told[name] = value
        return encode(told)

    @classmethod
    def read(cls, entry: Entry) -> Event:
        told = orjson.loads(entry.body)
        taken = orjson.loads(entry.taken) if entry.taken is not None else {}
        return cls(
            told.get("truth"),
            told.get("instance", taken.get("instance")),
            told.get("served", taken.get("served")),
            told.get("withdraws", 0),
            told.get("feedback_id"),
            told.get("prediction_id"),
        )


def encode(value: Any) -> bytes:
    """JSON, or Unprocessable where a value has no JSON that every reader understands alike."""
    try:
        return orjson.dumps(value)
    except TypeError as error:  # whole numbers beyond 64 bits, text that is not Unicode
        raise Unprocessable.at("", f"cannot be kept as JSON: {error}") from None


def audit(entry: Entry) -> dict[str, Any]:
    """An entry as `GET .../events` shows it."""
    event = Event.read(entry)
    told: dict[str, Any] = {
        "version": entry.version,
        "at": entry.at,
        "kind": "withdrawal" if event.withdraws else "feedback",
    }
    for name in ("feedback_id", "prediction_id", "instance", "truth", "served"):
        if (value := getattr(event, name)) is not None:
            told[name] = value
    if event.withdraws:
        told["withdraws"] = event.withdraws
    else:
        told["withdrawn"] = entry.mark > 0
    return told


def digest(truth: dict[str, Any]) -> str:
    """Equal for truths that say the same: sets in any order, grades as numbers, a grade of 0 like none."""
    plain = dict(truth)
    try:
        for name in ("labels", "clicks"):
            if name in plain:
                plain[name] = sorted(set(plain[name]))
        if "relevance" in plain:
            plain["relevance"] = {name: float(grade) for name, grade in plain["relevance"].items() if grade}
        data = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, AttributeError):
        raise Unprocessable.at("", "is not a truth") from None
    return blake2b(data, digest_size=16).hexdigest()
