"""What a store says of itself when it fails: one line when it begins, one when it works again, and a count of all calls."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)


class Outage:
    """The lines are "`begun`: REASON" and `over`; it is over when a call succeeds `calm` seconds after the last failure."""

    def __init__(self, begun: str, over: str, calm: float = 0.0) -> None:
        self.failures = 0
        self._begun, self._over, self._calm = begun, over, calm
        self._failed = 0.0  # when, while it lasts

    def failed(self, reason: object) -> None:
        """A call did."""
        self.failures += 1
        if not self._failed:
            log.error("%s: %s", self._begun, reason)
        self._failed = time.monotonic()

    def worked(self) -> None:
        """A call did."""
        if self._failed and time.monotonic() - self._failed >= self._calm:
            self._failed = 0.0
            log.warning(self._over)
