"""The state of an experiment, computed from its log alone. Equal logs give bit-equal states on every replica.

feedback     {"kind", "arm", "value" | "credits", "unit"?, "before"?, "guards"?, "at", "served_at"?, "served"?}
unanswered   the same, with the default as its value: nobody answered in time. The log takes one of the two for a
             prediction; feedback that comes after its window and before this event counts like it
exposed      {"unit", "arm", "before"?, "segments"?, "at"}: with `per`, a unit was served its arm, or assigned it
value        {"unit", "arm", "measure", "value", "at"}: a value of the unit, of a measure by its number
ramp         {"share"}
pause, resume, stop, promote, tick

`levels` says how units are counted. Without `wait` a round counts when its answer is in the log. With it, rounds wait
until the log is complete up to their time, and then count in the order in which they were served: so the time that
answers take cannot decide which rounds are seen. It is complete up to the round that an `unanswered` event is about, since
these are written in order, and up to a `tick`, whose writer has seen that nothing older is due. Times are what the events
say, no clock is read.

With `per` a unit counts when its window is over, by the time of the log, which never goes back (see `unit_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush

from feedrank.service.contract.json_types import JSON, View

from .arrivals import Arrivals
from .behaviour import Behaviour
from .bounds import moments
from .first_outcomes import FirstOutcomes
from .handover import Handover
from .levels import NO_COVARIATE, UnitLevels
from .per import RETURNS
from .plan import Plan
from .ratios import RatioArms
from .trace import Trace
from .unit_table import UnitTable

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
_STATUS = {"pause": PAUSED, "resume": RUNNING, "stop": STOPPED, "promote": STOPPED}
BEHIND = 60.0  # seconds
Segment = tuple[str, str]  # (name, value)
_COUNTED = ("unit", "arm", "value", "credits", "guards", "before", "kind", "delay", "served_at")


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
    """`events` is the version of the log up to which it is folded; `now` the time up to which it is complete.

    `figures` has the levels of the measure and then of each guardrail, `segments` those of the measure by segment, `firsts`
    what a list of the units of a split without `per` says, for each of `figures`.
    `feedback` is the kind of feedback that came first.
    """

    arms: list[Tally]
    shadow: list[Tally]
    figures: list[UnitLevels]
    arrivals: Arrivals
    share: float
    events: int = 0
    status: str = RUNNING
    promoted: str | None = None
    feedback: str | None = None
    now: float = 0.0
    waiting: list[tuple[float, int, JSON]] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
    handover: Handover | None = None
    behaviour: Behaviour | None = None
    units: UnitTable | None = None
    segments: dict[Segment, UnitLevels] = field(default_factory=dict)
    promotion: JSON | None = None
    firsts: list[FirstOutcomes] = field(default_factory=list)
    ratios: RatioArms | None = None

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
            plan.share,
            handover=Handover(1 - plan.confidence) if plan.handover else None,
            behaviour=Behaviour() if plan.behaviour else None,
            units=None
            if plan.per is None
            else UnitTable(len(plan.rules), arms, plan.per.rule.value == RETURNS),
            segments={
                (name, value): UnitLevels(arms, shares)
                for name, values in plan.segments.items()
                for value in values
            },
            firsts=[FirstOutcomes() for _ in range(1 + len(plan.guardrails))] if plan.lists_firsts else [],
            ratios=None if plan.over is None else RatioArms.new(arms),
        )

    @property
    def main(self) -> UnitLevels:
        """The levels of the measure that decides."""
        return self.figures[0]

    def apply(self, plan: Plan, event: View, at: float = 0.0) -> None:
        """Take in the next event of the log, which was written at `at`."""
        self.events += 1
        kind = event["kind"]
        if self.units is not None and self.status != STOPPED:
            self.now = max(self.now, at)
            self._close(plan, self.units)
        if kind in _STATUS:
            if self.status != STOPPED or kind == "promote":
                self.status = _STATUS[kind]
            if kind == "promote":
                self.promoted = event["arm"]
                self.promotion = {name: event.get(name) for name in ("arm", "alias", "replaced")}
        if self.status == STOPPED:
            return
        self.arrivals.serve(event.get("served", [0] * len(self.arms)))
        if self.units is None:
            self._pass_time(plan, self._complete_until(plan, event))
        match kind:
            case "feedback" | "unanswered":
                self._take(plan, event)
            case "exposed":
                self._expose(plan, event)
            case "value" if event["arm"] is not None:
                self._add(plan, event["measure"], event)
            case "ramp":
                self.share = max(self.share, event["share"])
        self.trace.count(self.events, lambda: moments(plan, self.main, self.ratios))

    def _expose(self, plan: Plan, event: View) -> None:
        assert self.units is not None
        assert plan.per is not None
        before, group = event.get("before"), event.get("segments")
        self.units.expose(
            event["unit"],
            event["arm"],
            self.now,
            plan.per.window,
            NO_COVARIATE if before is None else before,
            tuple(group or [None] * len(plan.segments)),
        )

    def _add(self, plan: Plan, measure: int, event: View) -> None:
        """A value of a unit: into its window, or by itself where units count by their first outcome."""
        if self.units is None or plan.per is None:
            self._enter(measure, event["unit"], event["arm"], [event["value"]], event.get("at", 0.0))
        else:
            self.units.add(event["unit"], measure, event["value"], self.now, plan.per.window)

    def _close(self, plan: Plan, units: UnitTable) -> None:
        """Count the units whose windows are over."""
        assert plan.per is not None
        for row in units.close(self.now, plan.per.window):
            arm, x, group = units.arms[row], units.before[row], units.group(row)
            values = [units.value(row, number, rule) for number, rule in enumerate(plan.rules)]
            units.count_day(row, values[0], 1.0 if self.ratios is None else values[-1])
            self.main.add(None, arm, values[:1], x)
            if self.ratios is not None:
                self.ratios.arms[arm].add(values[0], values[-1])
            for levels, value in zip(self.figures[1:], values[1:], strict=False):
                levels.add(None, arm, [value])
            for segment in zip(plan.segments, group, strict=True):
                if segment in self.segments:
                    self.segments[segment].add(None, arm, values[:1], x)

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
        if self.units is not None and event.get("arm") is not None:
            self._count_within(plan, self.units, event)
            return
        if own is None or (plan.split and event.get("arm") is None):
            return
        before = event.get("before")
        x = NO_COVARIATE if before is None else before
        if plan.split:
            self.arms[arm].add(own[0])
        else:
            for tally, value in zip(self.arms, own, strict=True):
                tally.add(value)
        at = event.get("served_at") or event.get("at", 0.0)
        self._enter(0, unit, arm, own, at, x)
        for number, guard in zip(range(1, len(self.figures)), event.get("guards", ()), strict=False):
            values = guard if isinstance(guard, list) else _one(guard)
            if values is not None:
                # What was known before tells of the measure it is of; of another measure it need not.
                self._enter(number, unit, arm, values, at)

    def _enter(
        self,
        number: int,
        unit: int | None,
        arm: int,
        values: Sequence[float],
        at: float,
        x: float = NO_COVARIATE,
    ) -> None:
        """An outcome of a unit, in this measure."""
        levels = self.figures[number]
        known = len(levels.slots)
        levels.add(unit, arm, values, x)
        if self.firsts and len(levels.slots) > known:
            self.firsts[number].add(arm, values[0], at, x)

    def _count_within(self, plan: Plan, units: UnitTable, event: View) -> None:
        """A round of a unit whose window decides what counts; what was served to it was an exposure."""
        if event["unit"] not in units.rows:
            self._expose(plan, event)
        self.arms[event["arm"]].add(event.get("value"))
        for number, value in enumerate([event.get("value"), *event.get("guards", ())]):
            own = value[0] if isinstance(value, list) else value
            if own is not None:
                self._add(plan, number, {"unit": event["unit"], "value": own})

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
            "share": self.share,
            "units": None if self.units is None else self.units.to_json(),
            "segments": [levels.to_json() for levels in self.segments.values()],
            "promotion": self.promotion,
            "ratios": None if self.ratios is None else self.ratios.to_json(),
            "firsts": [each.to_json() for each in self.firsts],
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
        state.share, state.promotion = data.get("share", plan.share), data.get("promotion")
        if state.units is not None:
            state.units.load(data["units"])
        for levels, own in zip(state.segments.values(), data.get("segments", ()), strict=True):
            levels.load(own)
        if state.ratios is not None:
            state.ratios = RatioArms.from_json(data["ratios"])
        saved = data.get("firsts") or [None] * len(state.firsts)
        for first, levels, own in zip(state.firsts, state.figures, saved, strict=False):
            first.load(own, levels)
        return state


def _one(value: float | None) -> list[float] | None:
    return None if value is None else [value]
