"""The Host: every call of the contract on learners, on plain JSON values, over any Store.

All methods raise `service.errors` and nothing else on purpose. A name may be an alias wherever a learner is read,
asked or taught; the reply carries the learner's own name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from .settings import HostSettings

JSON = dict[str, Any]


class Host:
    """Learners by name. Open with `async with Host.open(url, settings) as host`."""

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, settings: HostSettings | None = None) -> AsyncIterator[Host]:
        """Open the store at `url` and host its learners; on leaving, snapshots are written and the store is closed.

        Raises StoreRefused when the store cannot be used at all; its `detail` is the one line to print.
        """
        ...
        yield cls()

    async def create(self, name: str, spec: Mapping[str, Any]) -> tuple[JSON, bool]:
        """Make a learner: (info, True); (info, False) if it is there with an equal spec; Conflict if with another."""
        ...

    async def info(self, name: str) -> JSON:
        """Spec, version, labels, features, bytes, progress, certificate."""
        ...

    async def list(self, limit: int = 100, cursor: str | None = None) -> JSON:
        """`{"learners": [{"name", "task", "algorithm", "version"}], "next"}` in order of name."""
        ...

    async def delete(self, name: str) -> None:
        """Remove a learner (or only the alias, if `name` is one) and all that belongs to it."""
        ...

    async def predict(self, name: str, request: Mapping[str, Any]) -> JSON:
        """Decide on one instance, or on each of `{"instances": [...]}`."""
        ...

    async def feedback(self, name: str, request: Mapping[str, Any], key: str | None = None) -> JSON:
        """Learn from one event, or from all of `{"events": [...]}` or none; `key` is another name for `feedback_id`.

        In a batch, `key` stands for the whole batch: event i takes the id `key/i` if it has no id of its own.
        """
        ...

    async def retract(self, name: str, request: Mapping[str, Any]) -> JSON:
        """Withdraw the event of `{"feedback_id"}` or `{"prediction_id"}`: `{"version", "withdrawn", "duplicate"}`.

        `version` is that of the withdrawal, `withdrawn` that of the event.
        """
        ...

    async def events(self, name: str, after: int = 0, limit: int = 100) -> JSON:
        """`{"events": [...], "next": version to read after, or null}`; Gone if the log no longer reaches back."""
        ...

    async def history(self, name: str) -> JSON:
        """`{"version", "points": [{"rounds", "cumulative_loss", "mean_loss", "window_loss"}, ...]}`, at most 512."""
        ...

    async def export(self, name: str) -> bytes:
        """The whole learner as one portable file."""
        ...

    async def restore(self, name: str, data: bytes) -> JSON:
        """Make a learner of such a file: its info; Conflict if the name is taken, Unprocessable if damaged."""
        ...

    async def alias(self, name: str, learner: str) -> JSON:
        """Let `name` stand for `learner` from now on: `{"name", "learner"}`; Conflict if `name` is a learner."""
        ...

    async def ready(self) -> None:
        """Return if the store takes writes now, else raise StoreUnavailable."""
        ...

    def stats(self) -> dict[str, float]:
        """For metrics: loaded_learners, loaded_bytes, log_lag, store_errors, divergences, skipped_events, feedback,
        duplicates, mistakes, loss_total, predictions, snapshots."""
        ...
