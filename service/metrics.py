"""Prometheus metrics. Labels are operations, methods and statuses only: never a name, label or word of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of one app, in a registry of its own, so that two apps in a process do not add up."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "feedrank_requests", "Replies sent", ["operation", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "feedrank_request_seconds",
            "Time to reply",
            ["operation"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.feedback = Counter(
            "feedrank_feedback", "Feedback events by result", ["result"], registry=self.registry
        )
        self.mistakes = Counter(
            "feedrank_mistakes", "Applied events that were mistakes", registry=self.registry
        )
        self.loss = Counter("feedrank_loss", "Sum of the losses of applied events", registry=self.registry)
        self.mean_loss = Gauge("feedrank_mean_loss", "Mean loss of applied events", registry=self.registry)
        self._applied = self.feedback.labels("applied")
        self._duplicate = self.feedback.labels("duplicate")
        self._refused = self.feedback.labels("refused")
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._gauges: dict[str, Gauge] = {}
        self._events = 0
        self._losses = 0.0

    def replied(self, operation: str, method: str, status: int, seconds: float) -> None:
        """Count one reply."""
        pair = self._children.get((operation, method, status))
        if pair is None:
            pair = self.requests.labels(operation, method, str(status)), self.seconds.labels(operation)
            self._children[operation, method, status] = pair
        pair[0].inc()
        pair[1].observe(seconds)

    def learned(self, result: Mapping[str, Any]) -> None:
        """Count one reply to feedback."""
        if result["duplicate"]:
            self._duplicate.inc()
            return
        self._applied.inc()
        self._events += 1
        if result["mistake"]:
            self.mistakes.inc()
        loss = max(0.0, float(result["loss"]))
        self.loss.inc(loss)
        self._losses += loss

    def refused(self) -> None:
        """Count feedback that was not taken."""
        self._refused.inc()

    def page(self, stats: Mapping[str, float]) -> bytes:
        """The metrics in text form; `stats` of the host become gauges named after their keys."""
        for name, value in stats.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"feedrank_{name}", name.replace("_", " "), registry=self.registry)
            self._gauges[name].set(value)
        self.mean_loss.set(self._losses / self._events if self._events else 0.0)
        return generate_latest(self.registry)
