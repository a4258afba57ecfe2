"""Results of a search engine and pages shown to users, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..payloads import JSON, Payload

__all__ = ["Reranked", "Result", "Shown"]


@dataclass(frozen=True, slots=True)
class Result:
    """One result of an engine: `score` as it gave it, higher is better; `fields` by name: text, numbers, dates."""

    id: str
    score: float
    fields: Payload = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """One page of results, as much of it as feedback needs: the ids as shown, and in the engine's order.

    It is plain data, so a page, a session or a cache can keep it until the click comes: `Shown(**json)`.
    """

    prediction_id: str | None
    shown: Sequence[str]
    engine: Sequence[str]

    def to_json(self) -> JSON:
        """As `Shown(**json)` takes it back."""
        return {
            "prediction_id": self.prediction_id,
            "shown": list(self.shown),
            "engine": list(self.engine),
        }


@dataclass(frozen=True, slots=True)
class Reranked:
    """The results to show, in order, and `page`, what `clicked`, `closed` and `judged` want.

    `by` is `learned`, `engine` (the evidence for the learned order is not there yet), `mixed` (drafted from both), an arm
    of another experiment, or `fallback` (the service was slow or down: the engine's order).
    """

    results: list[Result]
    page: Shown
    by: str
    version: int | None = None

    @property
    def prediction_id(self) -> str | None:
        """None if the service was not reached."""
        return self.page.prediction_id
