"""The state of an experiment, computed from its log alone. Equal logs give bit-equal states on every replica.

feedback     {"kind", "arm", "value" | "credits", "unit"?, "before"?, "guards"?, "at", "served_at"?, "served"?}
unanswered   the same, with the default as its value: nobody answered in time. The log takes one of the two for a
             prediction; feedback that comes after its window and before this event counts like it
pause, resume, stop, promote, tick

`levels` says how units are counted. Without `wait` a round counts when its answer is in the log. With it, rounds wait
until the log is complete up to their time, and then count in the order in which they were served: so the time that
answers take cannot decide which rounds are seen. It is complete up to the round that an `unanswered` event is about, since
these are written in order, and up to a `tick`, whose writer has seen that nothing older is due. Times are what the events
say, no clock is read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush

from feedrank.service.contract.json_types import JSON, View

from .arrivals import Arrivals
from .behaviour import Behaviour
from .bounds import moments
from .handover import Handover
from .levels import NO_COVARIATE, UnitLevels
from .plan import Plan
from .trace import Trace

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
_STATUS = {"pause": PAUSED, "resume": RUNNING, "stop": STOPPED, "promote": STOPPED}
BEHIND = 60.0  # seconds
_COUNTED = ("unit", "arm", "value", "credits", "guards", "before", "kind", "delay")


def due_at(served_at: float, wait: float) -> float:
    """When it is written down that a round had no answer: after an answer in the last moment has been written."""
    return served_at + wait + min(2.5, wait / 4)


def defaulted(plan: Plan, event: JSON) -> JSON:
    """The event of a round without an answer in time: if it counts at all, it counts the default."""
    counted = {name: value for name, value in event.items() if name not in ("value", "credits", "guards")}
    if plan.default is None:
        return counted
    if "credits" in event:
        return {**counted, "credits": [plan.default] * len(plan.arms)}
    return {**counted, "value": plan.default} if event.get("arm") is not None else counted


@dataclass(slots=True)
class Tally:
    """One arm: `rounds` with sum `total`."""

    rounds: int = 0
    total: float = 0.0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.rounds += 1
            self.total += value


@dataclass(slots=True)
class State:
    """`events` is the version of the log up to which it is folded.

    `figures` has the levels of the measure and then of each guardrail. `feedback` is the kind of feedback that came first.
    """

    arms: list[Tally]
    shadow: list[Tally]
    figures: list[UnitLevels]
    arrivals: Arrivals
    events: int = 0
    status: str = RUNNING
    promoted: str | None = None
    feedback: str | None = None
    now: float = 0.0
    waiting: list[tuple[float, int, JSON]] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
    handover: Handover | None = None
    behaviour: Behaviour | None = None

    @classmethod
    def new(cls, plan: Plan) -> State:
        """Nothing seen yet."""
        arms = len(plan.arms)
        shares = plan.shares if plan.split else None
        return cls(
            [Tally() for _ in plan.arms],
            [Tally() for _ in plan.shadow],
            [UnitLevels(arms, shares) for _ in range(1 + len(plan.guardrails))],
            Arrivals.new(arms),
            handover=Handover(1 - plan.confidence) if plan.handover else None,
            behaviour=Behaviour() if plan.behaviour else None,
        )

    @property
    def main(self) -> UnitLevels:
        """The levels of the measure that decides."""
        return self.figures[0]

    def apply(self, plan: Plan, event: View) -> None:
        """Take in the next event of the log."""
        self.events += 1
        kind = event["kind"]
        if kind in _STATUS:
            if self.status != STOPPED or kind == "promote":
                self.status = _STATUS[kind]
            self.promoted = event.get("arm", self.promoted)
        if self.status == STOPPED:
            return
        self.arrivals.serve(event.get("served", [0] * len(self.arms)))
        self._pass_time(plan, self._complete_until(plan, event))
        if kind in ("feedback", "unanswered"):
            self._take(plan, event)
        self.trace.count(self.events, lambda: moments(plan, self.main))

    def _take(self, plan: Plan, event: View) -> None:
        if event["kind"] == "feedback":
            self.feedback = self.feedback or event.get("feedback")
            for tally, value in zip(self.shadow, event.get("shadow", ()), strict=False):
                tally.add(value)
            counts = self.handover is None or self.handover.take(event)
            if self.behaviour is not None and "seen" in event:
                self.behaviour.take(event["seen"], event.get("unit"), rates=counts)
        served_at = event.get("served_at")
        if plan.wait is None or served_at is None:
            self._count(plan, event)
            return
        kept = {name: event[name] for name in _COUNTED if name in event}
        if event["kind"] == "feedback" and event.get("at", 0.0) >= served_at + plan.wait:
            # It has taken the place of the event that would say that nobody answered, and counts as that one.
            kept = defaulted(plan, {**kept, "kind": "unanswered"})
        heappush(self.waiting, (due_at(served_at, plan.wait), self.events, kept))

    def _complete_until(self, plan: Plan, event: View) -> float:
        """The log has every round that was due by then."""
        if event["kind"] == "unanswered" and plan.wait is not None:
            return due_at(event["served_at"], plan.wait)
        # An answer says nothing of rounds without one; but nobody is that long in writing them down.
        at: float = event.get("at", 0.0)
        return at if event["kind"] == "tick" else at - BEHIND

    def _pass_time(self, plan: Plan, at: float) -> None:
        """Count the rounds that were due by `at`, in the order in which they were served."""
        self.now = max(self.now, at)
        while self.waiting and self.waiting[0][0] <= self.now:
            self._count(plan, heappop(self.waiting)[2])

    def _count(self, plan: Plan, event: View) -> None:
        """One round into the figures."""
        arm, unit = event.get("arm") or 0, event.get("unit") if plan.count == "units" else None
        own = event.get("credits") if "credits" in event else _one(event.get("value"))
        if event["kind"] == "feedback" and plan.split and event.get("arm") is not None:
            self.arrivals.answer(arm, event.get("delay"))
        if own is None or (plan.split and event.get("arm") is None):
            return
        before = event.get("before")
        x = NO_COVARIATE if before is None else before
        if plan.split:
            self.arms[arm].add(own[0])
        else:
            for tally, value in zip(self.arms, own, strict=True):
                tally.add(value)
        self.main.add(unit, arm, own, x)
        for levels, guard in zip(self.figures[1:], event.get("guards", ()), strict=False):
            values = guard if isinstance(guard, list) else _one(guard)
            if values is not None:
                # What was known before tells of the measure it is of; of another measure it need not.
                levels.add(unit, arm, values)

    def to_json(self) -> JSON:
        """All of it, as JSON values; floats are written to the last digit."""
        return {
            "arms": [asdict(tally) for tally in self.arms],
            "shadow": [asdict(tally) for tally in self.shadow],
            "figures": [levels.to_json() for levels in self.figures],
            "arrivals": self.arrivals.to_json(),
            "events": self.events,
            "status": self.status,
            "promoted": self.promoted,
            "feedback": self.feedback,
            "now": self.now,
            "waiting": sorted(self.waiting, key=lambda each: each[:2]),
            "trace": self.trace.dump(),
            "handover": None if self.handover is None else self.handover.to_json(),
            "behaviour": None if self.behaviour is None else self.behaviour.to_json(),
        }

    @classmethod
    def from_json(cls, plan: Plan, data: View) -> State:
        """The inverse of `to_json`."""
        state = cls.new(plan)
        state.arms = [Tally(**tally) for tally in data["arms"]]
        state.shadow = [Tally(**tally) for tally in data["shadow"]]
        for levels, own in zip(state.figures, data["figures"], strict=True):
            levels.load(own)
        state.arrivals = Arrivals.from_json(data["arrivals"])
        state.events, state.status, state.promoted = data["events"], data["status"], data["promoted"]
        state.feedback, state.now = data["feedback"], data["now"]
        state.waiting = [(due, version, event) for due, version, event in data["waiting"]]
        state.trace = Trace.load(data["trace"])
        if data.get("handover"):
            state.handover = Handover.from_json(1 - plan.confidence, data["handover"])
        if data.get("behaviour"):
            state.behaviour = Behaviour.from_json(data["behaviour"])
        return state


def _one(value: float | None) -> list[float] | None:
    return None if value is None else [value]
