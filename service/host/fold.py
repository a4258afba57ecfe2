"""The fold of a log: a learner, its learning curve, and how often each label was true.

Pure: the same events give the same fold, bit for bit. As a snapshot:

    b"FEEDFOLD" | format u32 | length u32 | {"curve", "skipped", "labels"} as JSON | the learner's own bytes

Its digest is the SHA-256 of the JSON and of the learner's digest, and is checked on loading.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import orjson

from feedrank import learners
from feedrank.learners.errors import SnapshotError
from feedrank.learners.learner import Learner

from .curve import Curve
from .events import Event

log = logging.getLogger(__name__)
MAGIC, FORMAT = b"FEEDFOLD", 1
START = struct.Struct("<8sII")
NOTHING: dict[str, Any] = {"loss": 0.0, "mistake": False, "updated": False, "served_loss": None}


class Fold:
    """A learner at a version of its log. `skipped` counts events that could not be applied.

    `labels` holds for each label [events in which it was true, mistakes among them].
    """

    def __init__(
        self,
        learner: Learner,
        curve: Curve | None = None,
        skipped: int = 0,
        labels: dict[str, list[int]] | None = None,
    ) -> None:
        self.learner = learner
        self.curve = curve or Curve()
        self.skipped = skipped
        self.labels = labels or {}

    @property
    def version(self) -> int:
        return self.learner.version

    def apply(self, version: int, event: Event) -> dict[str, Any]:
        """Learn from the event at `version`; its outcome as in the contract's reply.

        Events are checked before they are logged. Should one fail all the same, it counts as an event without effect, on
        every replica alike: a log that can be written must be one that can be folded.
        """
        learner = self.learner
        try:
            done = learner.learn(event.found or event.instance, event.truth, served=event.served)
        except Exception:
            log.exception("event %d could not be applied and is skipped", version)
            self.skipped += 1
            learner.version = version
            return NOTHING
        learner.version = version
        self.curve.count(learner.progress.rounds, learner.progress.cumulative_loss)
        if learner.kind == "features" and event.truth:
            for name in true_labels(event.truth):
                held = self.labels.setdefault(name, [0, 0])
                held[0] += 1
                held[1] += done.mistake
        return {
            "loss": done.loss,
            "mistake": done.mistake,
            "updated": done.updated,
            "served_loss": done.served_loss,
        }

    def dump(self) -> tuple[str, bytes]:
        """Digest and bytes."""
        told = orjson.dumps({"curve": self.curve.dump(), "skipped": self.skipped, "labels": self.labels})
        learner = learners.dump(self.learner)
        return digest(told, learner), START.pack(MAGIC, FORMAT, len(told)) + told + learner

    @classmethod
    def load(cls, data: bytes, expected: str | None = None) -> Fold:
        """The fold that was dumped; SnapshotError with the reason if the bytes are not one, or another than expected."""
        if len(data) < START.size or data[:8] != MAGIC:
            raise SnapshotError("these bytes are not a snapshot of the service")
        _, version, length = START.unpack_from(data)
        if version > FORMAT:
            raise SnapshotError(f"the snapshot has format {version}, newer than {FORMAT}: upgrade feedrank")
        told, learner = data[START.size : START.size + length], data[START.size + length :]
        if expected is not None and digest(told, learner) != expected:
            raise SnapshotError("the snapshot is damaged: its digest does not fit")
        try:
            rest = orjson.loads(told)
            curve, skipped = Curve.load(rest["curve"]), int(rest["skipped"])
            labels = {str(name): [int(count) for count in held] for name, held in rest["labels"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SnapshotError(f"the snapshot cannot be read: {error}") from error
        return cls(learners.load(learner), curve, skipped, labels)


def true_labels(truth: Mapping[str, Any]) -> Iterable[str]:
    """The labels that a truth calls right, each once."""
    if "label" in truth:
        return (truth["label"],)
    if "labels" in truth:
        return dict.fromkeys(truth["labels"])
    return [name for name, grade in truth.get("relevance", {}).items() if grade > 0]


def digest(told: bytes, learner: bytes) -> str:
    return sha256(told + learner[-32:]).hexdigest()
