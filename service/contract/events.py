"""What the log of a learner holds. One entry is one event:

feedback     body {"truth", "instance"?, "served"?, "weight"?, "feedback_id"?, "prediction_id"?, "subject"?}; the record
             taken {"instance", "served", "version", "subject"?} if it answers a prediction, whose `served` the body may
             overrule
retraction   body {"retracts": version, "feedback_id" or "prediction_id"}
rename       body {"rename": {old: new}}: labels are read by their new names, in all entries
erased       no body: checksums are all that is left
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import orjson

from feedrank.learners.instances import FeatureVector, ItemList

from .json_types import JSON, View
from .logged_vectors import size_of_part
from .messages import encode, loads


class Logged(Protocol):
    """What an entry of any store has."""

    @property
    def body(self) -> bytes: ...
    @property
    def taken(self) -> bytes | None: ...
    @property
    def at(self) -> float: ...
    @property
    def retracts(self) -> int: ...
    @property
    def erased(self) -> str: ...


@dataclass(slots=True)
class Event:
    """One entry of a learner's log.

    `parsed` is the instance as the core has read it, where that was already done; `outcome` what applying it gave here;
    `at` the time that the log gave it, 0 before it is there.
    """

    truth: JSON | None = None
    instance: JSON | None = None
    served: JSON | None = None
    retracts: int = 0
    feedback_id: str | None = None
    prediction_id: str | None = None
    weight: float = 1.0
    parsed: FeatureVector | ItemList | None = None
    outcome: JSON | None = None
    corrected: bool = False
    """`served` is what its user was shown in the end, not what was predicted: the log must keep it."""
    at: float = 0.0
    expected: float = 0.0
    """Seconds that applying it takes by the estimate of the core, 0 where it was not asked."""
    rename: dict[str, str] | None = None
    revises: bool = False
    """Whether it changes how other entries are read."""
    subject: str = ""
    """The hash of whom it is about."""
    assured: JSON | None = None
    """What its prediction was under `min_precision`: see runtime/assuring.py."""
    erased: str = ""
    """Of an entry that was erased, the checksum of what it held."""

    def show(self, served: JSON | None) -> None:
        """What was shown instead of the prediction, if anything: a page that was cut, mixed or put in order again."""
        if served is not None:
            self.served, self.corrected = served, True

    @property
    def has_id(self) -> bool:
        """Whether it can be sent again under an id, so that its outcome must be kept."""
        return not self.retracts and (self.feedback_id is not None or self.prediction_id is not None)

    @property
    def size(self) -> int:
        """What the cost of applying it grows with."""
        if self.parsed is not None:
            return len(self.parsed) if type(self.parsed) is FeatureVector else size_of(self.parsed)
        instance = self.instance or {}
        items = instance.get("items", ())
        if isinstance(items, Mapping):
            return len(items["ids"]) * len(items["columns"])
        return size_of_part(instance) + sum([size_of_part(item) for item in items])

    def body(self) -> bytes:
        """As the log keeps it; the instance of a remembered prediction is in the record that the entry takes."""
        if self.rename is not None:
            return encode({"rename": self.rename})
        body: JSON = {"retracts": self.retracts} if self.retracts else {"truth": self.truth}
        if self.instance is not None and self.prediction_id is None:
            body["instance"] = self.instance
        if self.served is not None and (self.corrected or "instance" in body):
            body["served"] = self.served
        if self.weight != 1.0:
            body["weight"] = self.weight
        if self.feedback_id is not None:
            body["feedback_id"] = self.feedback_id
        if self.prediction_id is not None:
            body["prediction_id"] = self.prediction_id
        if self.subject:
            body["subject"] = self.subject
        return encode(body)

    @classmethod
    def read(cls, entry: Logged) -> Event:
        """The event of an entry, as plain JSON."""
        if entry.erased:
            return cls._without_body(entry)
        return cls._of(orjson.loads(entry.body), orjson.loads(entry.taken or b"{}"))

    @classmethod
    def fold(cls, entry: Logged) -> Event:
        """The event of an entry, its features as the kernel reads them: to be applied, not to be shown."""
        if entry.erased:
            return cls._without_body(entry)
        body, taken = loads(entry.body), entry.taken
        plain = taken is None and len(body) == 2 and "truth" in body and "instance" in body  # as most are
        event = cls(body["truth"], body["instance"]) if plain else cls._of(body, loads(taken or b"{}"))
        event.at = entry.at
        return event

    @classmethod
    def _without_body(cls, entry: Logged) -> Event:
        return cls(retracts=entry.retracts, at=entry.at, erased=entry.erased.partition(" ")[0])

    @classmethod
    def _of(cls, body: View, record: View) -> Event:
        return cls(
            body.get("truth"),
            body.get("instance", record.get("instance")),
            body.get("served", record.get("served")),
            body.get("retracts", body.get("withdraws", 0)),  # `withdraws`: logs of release 0.1
            body.get("feedback_id"),
            body.get("prediction_id"),
            body.get("weight", 1.0),
            rename=body.get("rename"),
            revises="rename" in body,
            assured=record.get("assured"),
            subject=body.get("subject") or record.get("subject", ""),
        )


def size_of(instance: FeatureVector | ItemList) -> int:
    """Numbers in an instance."""
    return instance.features * len(instance.ids) if isinstance(instance, ItemList) else len(instance)
