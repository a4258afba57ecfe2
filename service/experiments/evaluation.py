"""Estimates what another learner would have lost or earned on a log, if the log contains enough to tell.

replay       labels and grades do not depend on what was shown: the other learner predicts and learns every event in
             order, beside one of the log's own spec, both from nothing, and both are judged on the same truths. The
             means are exact; the interval of their difference is about the traffic that the events come from.
off-policy   a reward, or a click, is there only for what was shown: rounds logged with the probability of every choice
             are weighed (`choice_trial.py`). `learner` means its spec replayed: weights that have seen a round would
             void its interval.
refused      clicks on lists that one learner ranked alone: what it never showed could not be clicked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import orjson

from feedrank import learners
from feedrank.learners import renaming
from feedrank.learners.errors import InputError
from feedrank.learners.inference.confidence import Capital, lower_bounds
from feedrank.learners.learner import Learner
from feedrank.service.contract.faults import Conflict, ServiceError, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import ErrorScope, only, whole
from feedrank.service.runtime import Host

from . import measures
from .choice_trial import ChoiceTrial, LoggedDraw, RewardedRound, item_ids, round_of, segments_of
from .measures import Measure

FIELDS = frozenset({"spec", "learner", "policy", "measure", "confidence", "until", "segments"})
POLICIES = ("uniform", "first", "logged")
LONGEST = 20_000  # events that one request may replay
PAGE = 500


@dataclass(slots=True)
class ReplayTrial:
    """Two learners on the same events: values of both, and the capital of their difference."""

    own: Learner
    other: Learner
    measure: Measure
    rounds: int = 0
    left_out: int = 0
    totals: list[float] = field(default_factory=lambda: [0.0, 0.0])
    capital: Capital = field(default_factory=lambda: Capital.new(2))

    def apply(self, event: JSON) -> None:
        """Judge both on an event, then let both learn it."""
        instance, truth = event["instance"], event["truth"]
        try:
            values = [self._value(learner, instance, truth) for learner in (self.own, self.other)]
            for learner in (self.own, self.other):
                learner.learn(instance, truth, weight=event.get("weight", 1.0))
        except InputError:
            self.left_out += 1
            return
        one, other = values
        if one is None or other is None:
            self.left_out += 1
            return
        self.rounds += 1
        self.totals = [self.totals[0] + one, self.totals[1] + other]
        self.capital.add([0, 1], [other - one, one - other])

    def _value(self, learner: Learner, instance: JSON, truth: JSON) -> float | None:
        served = learner.predict(instance).served()
        shown = {**served, "items": item_ids(instance), "known": len(learner.labels)}
        return measures.value(self.measure, shown, truth)

    def report(self, alpha: float) -> JSON:
        n = self.rounds
        low = [-1.0, -1.0]
        if n:
            low = lower_bounds(self.capital.logs(), 0.0, n, 1.0, alpha / 2)
        means = [total / n if n else None for total in self.totals]
        return {
            "method": "replay",
            "measure": self.measure.text,
            "measure_in_words": self.measure.in_words,
            "better": "lower" if self.measure.is_loss else "higher",
            "rounds": n,
            "left_out": self.left_out,
            "own": {"mean": means[0], "total": self.totals[0]},
            "other": {"mean": means[1], "total": self.totals[1]},
            "difference": (self.totals[1] - self.totals[0]) / n if n else None,
            "lower": max(-1.0, low[0]),
            "upper": min(1.0, -low[1]),
        }


LogTrial = ReplayTrial | ChoiceTrial


class Evaluation:
    """Called with a learner's name and `{"spec" | "learner" | "policy", "measure"?, "confidence"?, "until"?}`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def __call__(self, name: str, request: Body) -> JSON:
        """The trial's report, or Conflict where the log cannot tell."""
        only(request, FIELDS)
        info = await self._host.info(name)
        renames: dict[str, str] = info.get("renames", {})
        own = learners.build(info["spec"], renames).spec
        candidate, alpha = await self.candidate(request, own, renames), confidence_of(request)
        until = whole(request, "until") or info["version"]
        if until > LONGEST:
            raise Unprocessable.at(
                "/until", f"at most {LONGEST} events in one request; `feedrank evaluate` has no limit"
            )
        trial: LogTrial | None = None
        async for event in self._events(info["name"], until):
            renamed = by_new_names(event, renames)
            trial = await asyncio.to_thread(_step, trial, own, candidate, request, renamed)
        return _answer(info["name"], trial, alpha)

    async def candidate(self, request: Body, own: JSON, renames: JSON | None = None) -> Learner | str:
        """A fresh learner of the spec that was named, by the names that the log's labels have now, or the policy."""
        stated = [name for name in ("spec", "learner", "policy") if request.get(name) is not None]
        if len(stated) != 1:
            raise Unprocessable.at("", "one of `spec`, `learner` and `policy` is required")
        value = request[stated[0]]
        if stated[0] == "policy":
            if value not in POLICIES:
                raise Unprocessable.at("/policy", f"must be one of {', '.join(POLICIES)}")
            return str(value)
        if stated[0] == "learner":
            if not isinstance(value, str):
                raise Unprocessable.at("/learner", "must be a learner's name")
            value = (await self._host.info(value))["spec"]
        with ErrorScope(f"/{stated[0]}"):
            built = await self._host.build(value)
            return _comparable(learners.build(built.spec, renames) if renames else built, own)

    async def first_places(self, request: Body, own: JSON) -> ChoiceTrial:
        """A trial of what the candidate would put first, for the rounds that `first_place` gives."""
        return ChoiceTrial(await self.candidate(request, own), "clicks@1")

    async def _events(self, name: str, until: int) -> AsyncIterator[JSON]:
        after: int | None = 0
        while after is not None:
            page = await self._host.events(name, after, PAGE)
            for event in page["events"]:
                if event["version"] > until:
                    return
                if teaches(event):
                    yield event
            after = page["next"]


def evaluate(name: str, own: JSON, renames: Mapping[str, str], request: Body, lines: bytes) -> JSON:
    """The same reply for `{"spec", "measure"?, "confidence"?}` from events as JSON lines: pure, for any worker.

    What the log cannot tell is the detail of the refusal: `{"learner", "problem"}`.
    """
    try:
        with ErrorScope("/spec"):
            candidate = _comparable(learners.build(request["spec"], renames), own)
        alpha = confidence_of(request)
        trial: LogTrial | None = None
        for line in lines.splitlines():
            trial = _step(trial, own, candidate, request, orjson.loads(line))
        return _answer(name, trial, alpha)
    except (ServiceError, InputError) as error:
        return {"learner": name, "problem": error.detail}


def by_new_names(event: JSON, renames: Mapping[str, str]) -> JSON:
    """An event of a log as `GET .../events` shows it, with the names that labels have now."""
    return {**event, "truth": renaming.in_answer(event["truth"], renames)} if renames else event


def teaches(event: JSON) -> bool:
    """Whether an event of the log is part of a trial: retracted ones are not."""
    return event["kind"] == "feedback" and not event["retracted"]


def _step(
    trial: LogTrial | None, own: JSON, candidate: Learner | str, request: Body, event: JSON
) -> LogTrial:
    """The trial after one more event; the first says which kind it is."""
    trial = trial or _trial(own, candidate, request, event)
    if isinstance(trial, ReplayTrial):
        trial.apply(_judged(event))
    elif (round := round_of(_drawn(event), own)) is not None:
        trial.apply(round)
    return trial


def _answer(name: str, trial: LogTrial | None, alpha: float) -> JSON:
    if trial is None:
        raise Conflict("the log is empty: there is nothing to evaluate")
    return {"learner": name, "confidence": 1 - alpha, **trial.report(alpha)}


def _comparable(learner: Learner, own: JSON) -> Learner:
    """The fresh learner, if it can be judged on this log."""
    if learner.spec["task"] != own["task"]:
        raise Unprocessable.at(
            "", f"has the task {learner.spec['task']}, but the log has the task {own['task']}"
        )
    if learner.form.closed and learner.spec["labels"] != own["labels"]:
        raise Unprocessable.at("", "has other labels than the log")
    return learner


def _trial(spec: JSON, candidate: Learner | str, request: Body, event: JSON) -> LogTrial:
    """What this kind of log allows."""
    if "reward" in event["truth"]:
        low, high = spec.get("range", (0.0, 1.0))
        return ChoiceTrial(candidate, measures.REWARD, (low, high), segments_of(request))
    if "segments" in request:
        raise Unprocessable.at("/segments", "is only for logs with rewards of choices")
    if "clicks" in event["truth"]:
        raise Conflict(
            "the log has clicks on the lists of one learner: items that it did not show could not be clicked. Compare the "
            "learners in an experiment with the method `interleave`"
        )
    if isinstance(candidate, str):
        raise Conflict(
            "a policy can be evaluated only on choices with logged probabilities; this log has labels or grades: send "
            "`spec` or `learner`"
        )
    named = request.get("measure", "loss")
    measure = measures.read(named, [spec], "split")
    if measure.name == measures.REWARD:
        raise Unprocessable.at("/measure", "the log has no rewards")
    return ReplayTrial(learners.build(spec), candidate, measure)


def _judged(event: JSON) -> JSON:
    """An event with labels or grades; Conflict where the kind of truth changes in the log."""
    if "clicks" in event["truth"] or "reward" in event["truth"]:
        raise Conflict(
            f"event {event['version']} has clicks or a reward among labels and grades: set an earlier `until`"
        )
    return event


def _drawn(event: JSON) -> JSON:
    """An event with a reward and the probability of what earned it; Conflict without."""
    served = event.get("served") or {}
    if "reward" not in event["truth"] or not ("probability" in served or "slots" in served):
        raise Conflict(f"event {event['version']} has no probability of its choice")
    return event


def confidence_of(request: Body) -> float:
    """alpha of a request."""
    value = request.get("confidence", 0.95)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.5 < value < 1:
        raise Unprocessable.at("/confidence", "must be a number above 0.5 and below 1")
    return 1 - float(value)


def first_place(entry_body: bytes, taken: bytes | None) -> RewardedRound | None:
    """An interleaved round as a choice of what stands first: by as many of the arms as rank it best."""
    event = orjson.loads(entry_body)
    record = event.get("record") or (orjson.loads(taken) if taken is not None else {})
    tops = record.get("tops")
    clicked = measures.clicked(event.get("truth", {}))
    if not tops or clicked is None or not record["served"]["ranking"]:
        return None
    instance = record["instance"]
    names = list(dict.fromkeys([*tops, *item_ids(instance)]))
    probabilities = [tops.count(name) / len(tops) for name in names]
    chosen = record["served"]["ranking"][0]
    p = probabilities[names.index(chosen)]
    draw = LoggedDraw(names, chosen, float(chosen in clicked), p, probabilities, asked=instance)
    return RewardedRound([draw], {"instance": instance, "truth": event["truth"], "served": record["served"]})
