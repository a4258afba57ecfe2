"""What an experiment has seen: a pure fold over its log. Equal logs give bit-equal states on every replica.

split       a unit u of arm i or j counts once, with the value y of its first feedback (of all, if `count` is `rounds`):
                X = m_i - m_j + 1[u in i] (y - m_i) / p - 1[u in j] (y - m_j) / (1 - p),   p = P(i | i or j)
            where m_i, m_j are the arms' means before it. E[X | past] is the effect at this time, whatever m is, since the
            hash is a fresh coin for every new unit. A unit that comes back is no fresh coin, and its rounds are alike.
interleave  X = the difference of what the two arms earned in this impression; every draft has its own coins. With a loss
            as the measure, all arms are judged on the same instance.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from feedrank.service.experiments.confidence import Sums
from feedrank.service.experiments.plan import Plan
from feedrank.service.experiments.trace import Trace

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
_STATUS = {"pause": PAUSED, "resume": RUNNING, "stop": STOPPED, "promote": STOPPED}


@dataclass(slots=True)
class Tally:
    """One arm: `rounds` with sum `total`, of `units` units; `counted` and `sum` are of those that the verdict uses."""

    units: int = 0
    rounds: int = 0
    total: float = 0.0
    counted: int = 0
    sum: float = 0.0

    def guess(self) -> float:
        """The arm's mean before the next value, drawn to 1/2 by one imagined round."""
        return (self.sum + 0.5) / (self.counted + 1)


def effect(y: Any, in_i: Any, m_i: Any, m_j: Any, p: float) -> tuple[Any, Any]:
    """(X, its guess) of one split round of the arms i and j; numbers, or arrays of them with `in_i` of 0 and 1."""
    guess = m_i - m_j
    return guess + in_i * (y - m_i) / p - (1 - in_i) * (y - m_j) / (1 - p), guess


@dataclass(slots=True)
class State:
    """`events` is the version of the log up to which it is folded."""

    arms: list[Tally]
    shadow: list[Tally]
    pairs: list[Sums]
    events: int = 0
    status: str = RUNNING
    promoted: str | None = None
    seen: set[int] = field(default_factory=set)
    trace: Trace = field(default_factory=Trace)

    @classmethod
    def new(cls, plan: Plan) -> State:
        """Nothing seen yet."""
        count = len(plan.arms)
        pairs = [Sums() for _ in range(count * (count - 1) // 2)]
        return cls([Tally() for _ in plan.arms], [Tally() for _ in plan.shadow], pairs)

    def each_pair(self) -> Iterator[tuple[int, int, Sums]]:
        """(i, j, sums of X for i against j), i before j."""
        for (i, j), sums in zip(combinations(range(len(self.arms)), 2), self.pairs, strict=True):
            yield i, j, sums

    def apply(self, plan: Plan, event: Mapping[str, Any]) -> None:
        """Take in the next event of the log."""
        self.events += 1
        kind = event["kind"]
        if kind != "feedback":
            if self.status != STOPPED or kind == "promote":
                self.status = _STATUS[kind]
            self.promoted = event.get("arm", self.promoted)
            return
        if self.status == STOPPED:
            return
        for tally, value in zip(self.shadow, event.get("shadow", ()), strict=False):
            _credit(tally, value, new=True)
        if "credits" in event:
            self._interleaved(event)
        elif event.get("arm") is not None and event.get("value") is not None:
            self._split(plan, event)
        self.trace.count(self.events, self.pairs)

    def _fresh(self, event: Mapping[str, Any]) -> bool:
        """Whether the event's unit is new; one without a name is a unit of its own."""
        unit = event.get("unit")
        if unit is None:
            return True
        if unit in self.seen:
            return False
        self.seen.add(unit)
        return True

    def _split(self, plan: Plan, event: Mapping[str, Any]) -> None:
        arm, y, new = event["arm"], event["value"], self._fresh(event)
        _credit(self.arms[arm], y, new)
        if not new and plan.count == "units":
            return
        for i, j, sums in self.each_pair():
            if arm in (i, j):
                m_i, m_j = self.arms[i].guess(), self.arms[j].guess()
                sums.add(*effect(y, int(arm == i), m_i, m_j, plan.assignment.propensity(i, j)))
        self.arms[arm].counted += 1
        self.arms[arm].sum += y

    def _interleaved(self, event: Mapping[str, Any]) -> None:
        new = self._fresh(event)
        for tally, credit in zip(self.arms, event["credits"], strict=True):
            _credit(tally, credit, new)
        for sums, difference in zip(self.pairs, event["wins"], strict=True):
            sums.add(difference, 0.0)

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values; floats are written to the last digit."""
        seen = np.array(sorted(self.seen), dtype=">u8")
        return {
            "arms": [asdict(tally) for tally in self.arms],
            "shadow": [asdict(tally) for tally in self.shadow],
            "pairs": [asdict(sums) for sums in self.pairs],
            "events": self.events,
            "status": self.status,
            "promoted": self.promoted,
            "seen": b64encode(seen.tobytes()).decode(),
            "trace": self.trace.dump(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> State:
        """The inverse of `to_json`."""
        return cls(
            [Tally(**tally) for tally in data["arms"]],
            [Tally(**tally) for tally in data["shadow"]],
            [Sums(**sums) for sums in data["pairs"]],
            data["events"],
            data["status"],
            data["promoted"],
            set(np.frombuffer(b64decode(data["seen"]), dtype=">u8").tolist()),
            Trace.load(data["trace"]),
        )


def _credit(tally: Tally, value: float | None, new: bool) -> None:
    if value is not None:
        tally.units += new
        tally.rounds += 1
        tally.total += value
