"""Records of served predictions, and how feedback turns them into events: pure functions.

record  {"instance", "counted", "unit"?, "arm"? (split), "drafted"? (interleave), "served", "known", "shadow"?}
event   {"kind": "feedback", "truth", "record", "unit"?, and "arm", "value" or "credits"} if it counts

A unit is known by a hash; with `per` by its name, since units are listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from feedrank.learners import forms, reading
from feedrank.learners.errors import pointer
from feedrank.service.contract import messages
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.runtime.subjects import SubjectHash, ids_of
from feedrank.service.store import Draft

from . import behaviour, examination, interleave, measures
from .handover import Handover
from .loaded import LoadedExperiment
from .measures import Measure
from .per import LONGEST_VALUE, Rule, number
from .state import defaulted


def lesson_id(live: LoadedExperiment, version: int) -> str:
    """The id under which arms learn the event at `version`: the same from every replica, so no arm learns it twice."""
    return f"{live.log}/{version}"


def lessons(live: LoadedExperiment, version: int, event: JSON) -> list[tuple[str, JSON]]:
    """Who learns what from an event."""
    plan, record = live.plan, event["record"]
    if record.get("beyond_cap"):
        return []
    arms = (plan.arms[record["arm"]],) if plan.learn == "served" else plan.arms
    if not isinstance(plan.learn, str):
        arms = plan.learn
    truth = event["truth"]
    if plan.handover and "clicks" in truth:
        # The record holds the page and nothing else: clicked against the rest of it. Reading only what stands above a
        # click, on pages of one engine, teaches to turn its order round.
        truth = {"relevance": event.get("grades") or dict.fromkeys(truth["clicks"], 1)}
    lesson = {
        **record["instance"],
        **truth,
        "served": record["served"],
        "feedback_id": lesson_id(live, version),
    }
    if "weight" in event:
        lesson["weight"] = event["weight"]
    if subject := event.get("subject") or record.get("subject"):
        lesson["subject"] = SubjectHash(subject)
    return [(name, lesson) for name in (*arms, *plan.shadow)]


def event(
    live: LoadedExperiment, record: JSON, body: JSON, feedback: JSON, now: float, judged: JSON | None = None
) -> JSON:
    """The whole event of an answer: what the log keeps, with its record, which is judged as `judged` where that differs."""
    timed: JSON = {"at": now}
    if "at" in record:
        timed |= {"served_at": record["at"], "delay": max(0.0, now - record["at"])}
    whole = {**body, "record": record, **timed, **measured(live, judged or record, feedback)}
    wait = live.plan.wait
    late = wait is not None and "at" in record and now >= record["at"] + wait
    return defaulted(live.plan, whole) if late else whole


def unanswered(live: LoadedExperiment, record: JSON, now: float) -> JSON:
    """The event of a round whose time to answer is over without one: it counts the default, and teaches nothing."""
    judged: JSON = {name: record[name] for name in ("unit", "before") if name in record}
    if record["counted"] and live.plan.default is not None:
        judged |= {"credits": ()} if "drafted" in record else {"arm": record["arm"]}
        judged = defaulted(live.plan, judged)
    timed = {"at": now, "served_at": record["at"]}
    return {"kind": "unanswered", "truth": {}, "record": record, **timed, **judged}


def exposure(live: LoadedExperiment, record: JSON, now: float, id: str | None = None) -> Draft | None:
    """The event of a unit that was served, or assigned, its arm; None where no units are listed, or it takes no part."""
    if live.plan.per is None or not record["counted"]:
        return None
    body: JSON = {"kind": "exposed", "at": now}
    body |= {name: record[name] for name in ("unit", "arm", "before", "segments") if name in record}
    # A prediction under an id of the caller's own that is asked for again is the same exposure.
    ids = () if id is None else (f"x:{id}",)
    return Draft(messages.encode(body), (*ids, *ids_of(record.get("subject", ""))))


def top_of(request: Body) -> int | None:
    """How many places of the list are shown; None for all of them."""
    return None if request.get("top") is None else messages.whole(request, "top", 1)


def truth_of(live: LoadedExperiment, request: Body) -> JSON:
    """What the arms learn from: a reward is that only where they choose, elsewhere it is the experiment's own."""
    accepted = forms.of(live.specs[0]["task"]).truths
    return {
        name: value
        for name, value in messages.truth_of(request).items()
        if name != "reward" or name in accepted
    }


def page_of(instance: JSON, shown: Sequence[str]) -> JSON:
    """The instance with only the items of the page, in their order: nobody can have clicked or skipped others."""
    items, wanted = instance.get("items"), set(shown)
    if isinstance(items, Mapping):
        kept = [place for place, id in enumerate(items["ids"]) if id in wanted]
        table = {**items, "ids": [items["ids"][i] for i in kept], "rows": [items["rows"][i] for i in kept]}
        return {**instance, "items": table}
    return {**instance, "items": [item for item in items or () if item["id"] in wanted]}


def reward_of(live: LoadedExperiment, request: Body) -> float | None:
    reward = request.get("reward")
    if reward is None:
        return None
    measured = [*live.plan.measures.values(), *(each.measure for each in live.plan.guardrails)]
    if all(measure.name != measures.REWARD for measure in measured):
        raise Unprocessable.at("/reward", f"this experiment measures {measured[0].text}")
    rules = [live.plan.rules[0]] * len(live.plan.measures) + [each.rule for each in live.plan.guardrails]
    return bounded(
        reward,
        "/reward",
        [rule for measure, rule in zip(measured, rules, strict=True) if measure.name == measures.REWARD],
    )


def bounded(value: object, place: str, rules: Sequence[Rule]) -> float:
    """A value of a unit; within [0, 1] unless all rules by which it counts bound it themselves."""
    finite = number(value, place)
    if any(rule.bounded for rule in rules) and not 0 <= finite <= 1:
        raise Unprocessable.at(
            place,
            "must be a number from 0 to 1: only bounded values can be compared. "
            "For others, define `per` with the value `total` and a `cap`",
        )
    return finite


def segments_of(live: LoadedExperiment, request: Body) -> list[str | None] | None:
    """The segments of the request's unit, in the order of the definition; None if it states none."""
    segments = request.get("segments")
    if segments is None:
        return None
    if not isinstance(segments, Mapping):
        raise Unprocessable.at("/segments", "must be an object of texts")
    for name, value in segments.items():
        if name not in live.plan.segments:
            known = ", ".join(live.plan.segments) or "none"
            raise Unprocessable.at(pointer("segments", name), f"the definition names other segments: {known}")
        if not isinstance(value, str) or len(value) > LONGEST_VALUE:
            raise Unprocessable.at(
                pointer("segments", name), f"must be text of at most {LONGEST_VALUE} characters"
            )
    return [segments.get(name) for name in live.plan.segments]


def before_of(request: Body) -> float | None:
    """What was known of the unit before the experiment, such as its mean value in the weeks before."""
    before = request.get("before")
    if before is None:
        return None
    if isinstance(before, bool) or not isinstance(before, int | float) or not 0 <= before <= 1:
        raise Unprocessable.at("/before", "must be a number from 0 to 1")
    return float(before)


def served_in(live: LoadedExperiment, reply: JSON) -> JSON:
    """What the user saw, as a learner takes it back."""
    form = forms.of(live.specs[0]["task"])
    if "choice" in reply:
        return {"id": reply["choice"], "probability": reply["probability"]}
    field = form.decision.field
    if field == "ranking":
        key = "id" if form.items else "label"
        return {field: [entry[key] for entry in reply["ranking"]]}
    return {field: reply[field]}


def check(live: LoadedExperiment, instance: JSON, truth: JSON) -> None:
    """Refuse now what any arm would refuse later: it depends on the specs alone."""
    for spec in live.specs:
        reading.event(spec, instance, truth)


def measured(live: LoadedExperiment, record: JSON, feedback: JSON) -> JSON:
    """What the fold needs to know of a round: the values, and whose they are. Refuses what a measure cannot judge."""
    plan, kind = live.plan, measures.kind_of(feedback)
    measure = live.measure or plan.measures[kind]
    for each in (measure, *(guardrail.measure for guardrail in plan.guardrails)):
        measures.check_fit(each, feedback, complete=plan.per is None)
    judged: JSON = {"feedback": kind}
    judged.update({name: record[name] for name in ("unit", "before", "coins", "segments") if name in record})
    if plan.behaviour and (seen := behaviour.looked(record, feedback)):
        judged["seen"] = seen
    if live.figures.handover is not None:
        judged |= _evidence(live.figures.handover, record, feedback)
    if "shadow" in record and measure.is_loss:
        judged["shadow"] = [_value(measure, record, served, feedback) for served in record["shadow"]]
    if not record["counted"]:
        return judged
    guards = [_values(guardrail.measure, record, feedback) for guardrail in plan.guardrails]
    if guards:
        judged["guards"] = guards
    own = _values(measure, record, feedback)
    if "drafted" not in record:
        return {**judged, "arm": record["arm"], "value": own[0] if own else None}
    return judged if own is None else {**judged, "credits": own}


def _evidence(handover: Handover, record: JSON, feedback: JSON) -> JSON:
    """What a page says of the two orders, of how far down visitors look, and what each click counts as a lesson."""
    evidence: JSON = {}
    shown, clicks = record["served"]["ranking"], feedback.get("clicks", ())
    if clicks:
        # Into the log, so that every replica teaches the same, however much it has seen of the curve meanwhile.
        evidence["grades"] = handover.examination.grades(shown, clicks)
    wanted = measures.clicked(feedback)
    if wanted and record["counted"] and "orders" in record:
        Q = interleave.chances(record["orders"], len(shown))
        evidence["gain"] = interleave.gain(record["orders"], Q, shown, wanted)
        if clicks:
            evidence["moves"] = examination.moves(Q, shown, clicks)
    return evidence


def _values(measure: Measure, record: JSON, feedback: JSON) -> list[float] | None:
    """The value of the arm that served; of a drafted list, those of all arms. None if the feedback says nothing of it."""
    if "drafted" not in record:
        value = _value(measure, record, record["served"], feedback)
        return None if value is None else [value]
    if measure.is_loss:
        losses = [_value(measure, record, served, feedback) for served in record["arms"]]
        judged = [loss for loss in losses if loss is not None]
        return judged if len(judged) == len(losses) else None
    drafted = interleave.restored(record["drafted"])
    places = measures.credited(measure, drafted.names, feedback)
    return None if places is None else interleave.credit(drafted, len(drafted.credits[0]), places)


def _value(measure: Measure, record: JSON, served: JSON | None, feedback: JSON) -> float | None:
    if served is None:
        return None
    items = record["instance"].get("items", ())
    ids = items["ids"] if isinstance(items, Mapping) else [item["id"] for item in items]
    if "arms" in record:
        # An arm that knows fewer labels is judged over all that any arm knows: a short list is no better place.
        ids = [*ids, *(name for one in record["arms"] for name in one["ranking"])]
    return measures.value(measure, {**served, "items": ids, "known": record.get("known", 0)}, feedback)


def reply(live: LoadedExperiment, event: JSON, arms: dict[str, JSON]) -> JSON:
    """A learner's fields, of the arm that served (of the first one, for a drafted list), and every arm's own reply."""
    record = event.get("record", {})
    server = arms.get(live.plan.arms[record.get("arm") or 0], {})
    return {
        "loss": server.get("loss"),
        "mistake": server.get("mistake"),
        "updated": any(done.get("updated", False) for done in arms.values()),
        "served_loss": server.get("served_loss"),
        "value": event.get("value"),
        "credits": dict(zip(live.plan.arms, event["credits"], strict=True)) if "credits" in event else None,
        "arms": arms,
    }
