# ruff: noqa: N818  (a name says what happened; that it is an error, the base says)
"""What a store says instead of a result; the caller knows what it means for the request.

StoreSignal
  Clash     an id or a key again, with other content      Missing   the record to take is not there
  Stale     what is to be changed has changed             Trimmed   the log no longer reaches back so far
  Closed    the log was dropped                           Diverged  the log has another history than the caller's
  Damaged   what is stored is not what was written
"""

from __future__ import annotations

__all__ = ["Clash", "Closed", "Damaged", "Diverged", "Missing", "Stale", "StoreSignal", "Trimmed"]


class StoreSignal(Exception):
    """The base of all."""


class Clash(StoreSignal):
    """Draft or record `index` repeats an id or key with another digest; nothing was written."""

    def __init__(self, index: int) -> None:
        super().__init__(f"number {index} repeats an id with other content")
        self.index = index


class Missing(StoreSignal):
    """The record that draft `index` wants to take is not there; nothing was appended."""

    def __init__(self, index: int) -> None:
        super().__init__(f"number {index} needs a record that is not there")
        self.index = index


class Closed(StoreSignal):
    """The log was dropped."""


class Trimmed(StoreSignal):
    """The log no longer reaches back to what was asked for."""


class Stale(StoreSignal):
    """The document is not at the expected revision, or the record has not the expected value."""


class Diverged(StoreSignal):
    """The log has another history than the caller's: it was restored, flushed, or failed over to a replica that lagged.

    `version` is the log's own last version. The caller drops its state and folds again; nothing was written.
    """

    def __init__(self, log: str, expected: int, version: int) -> None:
        where = "has another history at" if expected <= version else f"ends at version {version}, before"
        super().__init__(f"the log {log} {where} version {expected}")
        self.log, self.expected, self.version = log, expected, version


class Damaged(StoreSignal):
    """What is stored is not what was written. `version` is that of the entry, 0 where it is no entry."""

    def __init__(self, version: int, reason: str) -> None:
        super().__init__(reason)
        self.version, self.reason = version, reason
