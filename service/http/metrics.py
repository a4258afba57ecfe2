"""Prometheus metrics. Their labels are operations, methods and statuses only, never names or words of users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from feedrank import __version__
from feedrank.learners import kernel

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BOUNDS = (*map(str, BUCKETS), "+Inf")

# What the host counts: its key, the metric, what it means.
COUNTERS = {
    "mistakes": ("feedrank_mistakes", "Applied events that were mistakes"),
    "loss_total": ("feedrank_loss", "Sum of the losses of applied events"),
    "predictions": ("feedrank_predictions", "Predictions made"),
    "snapshots": ("feedrank_snapshots", "Snapshots written"),
    "store_errors": ("feedrank_store_errors", "Failed calls of the store"),
    "divergences": ("feedrank_divergences", "States that disagreed with the log or a snapshot"),
    "accidents": ("feedrank_accidents", "States dropped by an accident, and folded again from the log"),
    "restarts": ("feedrank_restarts", "Tasks of the service that ended by a failure and were started again"),
    "memory_refusals": ("feedrank_memory_refusals", "Bodies refused because the memory budget was spent"),
    "skipped_events": ("feedrank_skipped_events", "Log entries that could not be applied"),
}
GAUGES = {
    "loaded_learners": ("feedrank_loaded_learners", "Learners in memory"),
    "loaded_bytes": ("feedrank_loaded_bytes", "Bytes of learners in memory"),
    "flight_bytes": ("feedrank_flight_bytes", "Bytes of memory of calls on their way"),
    "memory_limit": ("feedrank_memory_limit_bytes", "The memory budget, FEEDRANK_MEMORY"),
    "log_faults": ("feedrank_log_faults", "Logs that went back or are damaged: an operator must look"),
    "log_lag": ("feedrank_log_lag", "Events known to be in the logs and not applied yet"),
}
# Of a store whose files this process can see.
FILES = {
    "store_bytes": ("feedrank_store_bytes", "Bytes of the store's file"),
    "wal_bytes": ("feedrank_store_wal_bytes", "Bytes of its write-ahead log"),
    "free_bytes": ("feedrank_store_free_bytes", "Bytes that are free on its disk"),
}
READY = "ready:"  # begins the keys of checks


class Times:
    """The times of one operation: how many fell below each bound and not below the one before, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts, self.total = [0] * len(BOUNDS), 0.0


class Metrics:
    """The metrics of one app, in a registry of its own, so that two apps in a process do not add up.

    The edge counts its replies in plain numbers, made into metrics when they are asked for: the library's own counters
    lock for threads that the event loop does not have.
    """

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.replies: dict[tuple[str, str, int], int] = defaultdict(int)  # by operation, method and status
        self.times: dict[str, Times] = defaultdict(Times)  # by operation
        self._stats: Mapping[str, float] = {}
        self._waits: Mapping[str, int] = {}
        self._shares: Mapping[str, int] = {}
        Info(
            "feedrank_build", "The version, and the kernel that the learners run on", registry=registry
        ).info({"version": __version__, "kernel": kernel.NAME})
        registry.register(self)

    def page(self, stats: Mapping[str, float], waits: Mapping[str, int], shares: Mapping[str, int]) -> bytes:
        """The metrics in text form: those of the host from its `stats` and `waits`, and refusals by shares of keys."""
        self._stats, self._waits, self._shares = stats, waits, shares
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """What was counted here, and the host's share, asked for by the registry."""
        labels = ["operation", "method", "status"]
        requests = CounterMetricFamily("feedrank_requests", "Replies sent", labels=labels)
        for (operation, method, status), count in self.replies.items():
            requests.add_metric([operation, method, str(status)], count)
        yield requests
        seconds = HistogramMetricFamily("feedrank_request_seconds", "Time to reply", labels=["operation"])
        for operation, times in self.times.items():
            buckets = list(zip(BOUNDS, accumulate(times.counts), strict=True))
            seconds.add_metric([operation], buckets, times.total)
        yield seconds
        waits = CounterMetricFamily(
            "feedrank_waits", "Predict and feedback calls that had to wait, by reason", labels=["reason"]
        )
        for reason, count in self._waits.items():
            waits.add_metric([reason], count)
        yield waits
        shares = CounterMetricFamily(
            "feedrank_share_refusals",
            "Requests refused because a share of a key was used up",
            labels=["share"],
        )
        for share, count in self._shares.items():
            shares.add_metric([share], count)
        yield shares
        stats = self._stats
        if not stats:
            return
        events = CounterMetricFamily("feedrank_feedback", "Feedback events by result", labels=["result"])
        events.add_metric(["applied"], stats["feedback"])
        events.add_metric(["duplicate"], stats["duplicates"])
        yield events
        mean = stats["loss_total"] / stats["feedback"] if stats["feedback"] else 0.0
        yield GaugeMetricFamily("feedrank_mean_loss", "Mean loss of applied events", mean)
        ready = GaugeMetricFamily("feedrank_ready", "1 where a check of /readyz passes", labels=["check"])
        for key in stats:
            if key.startswith(READY):
                ready.add_metric([key.removeprefix(READY)], stats[key])
        yield ready
        for key, (name, text) in COUNTERS.items():
            yield CounterMetricFamily(name, text, stats[key])
        for key, (name, text) in GAUGES.items():
            yield GaugeMetricFamily(name, text, stats[key])
        for key, (name, text) in FILES.items():
            if key in stats:
                yield GaugeMetricFamily(name, text, stats[key])
