"""What the Host needs to be told; every value has a default that is safe to run with."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """Memory, snapshots, retention, waiting and limits of one Host."""

    memory: int = 1024 * MIB  # bytes of learners kept loaded; the least recently used leave
    snapshot_every: int = 1000  # events between two snapshots of a learner (more for very large learners)
    snapshots_kept: int = 2  # older ones are bases for retract; at least 1
    retention_events: int | None = None  # entries kept behind the newest snapshot; None: all
    retention_age: float | None = None  # seconds entries are kept behind the newest snapshot; None: all
    prediction_ttl: float = 7 * 86_400.0  # seconds a remembered prediction waits for feedback
    wait: float = 5.0  # seconds a request waits for `min_version`
    max_features: int = 100_000  # of one instance (of one item, in a list)
    max_items: int = 10_000
    max_labels: int = 100_000  # of one learner
    max_batch: int = 10_000
    max_learner_bytes: int = 1024 * MIB  # feedback that would grow a learner beyond it is refused: 507
    max_learners: int = 1_000_000
