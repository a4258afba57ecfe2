"""Records of what was served, and what feedback makes of them: pure functions between requests, events and lessons.

record  {"instance", "counted", "unit"?, "arm"? (split), "drafted"? (interleave), "served", "known", "shadow"?}
event   {"kind": "feedback", "truth", "record", "unit"?, and "arm", "value" or "credits", "wins"} if it counts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from feedrank.learners import instances, truths
from feedrank.service.errors import Unprocessable
from feedrank.service.experiments import interleave, measures
from feedrank.service.experiments.live import Event, Live

JSON = dict[str, Any]
_DECISION = {"multilabel": "labels", "label-ranking": "ranking", "subset-ranking": "ranking"}


def lessons(live: Live, version: int, event: Event) -> list[tuple[str, JSON]]:
    """Who learns what from an event. The id is that of the event, so no arm learns it twice."""
    plan, record = live.plan, event["record"]
    arms = (plan.arms[record["arm"]],) if plan.learn == "served" else plan.arms
    if not isinstance(plan.learn, str):
        arms = plan.learn
    lesson = {
        **record["instance"],
        **event["truth"],
        "served": record["served"],
        "feedback_id": f"{live.key}/{version}",
    }
    return [(name, lesson) for name in (*arms, *plan.shadow)]


def top_of(request: Mapping[str, Any]) -> int | None:
    top = request.get("top")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise Unprocessable.at("/top", "must be a whole number of at least 1")
    return top


def reward_of(live: Live, request: Mapping[str, Any]) -> float | None:
    reward = request.get("reward")
    if reward is None:
        return None
    if live.plan.measure.name != measures.REWARD:
        raise Unprocessable.at("/reward", f"this experiment measures {live.plan.measure.text}")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not 0 <= reward <= 1:
        raise Unprocessable.at(
            "/reward", "must be a number from 0 to 1: only bounded rewards can be compared"
        )
    return float(reward)


def served_in(live: Live, reply: JSON) -> JSON:
    """What the user saw, as a learner takes it back."""
    task = live.specs[0]["task"]
    field = _DECISION.get(task, "label")
    if field == "ranking":
        key = "id" if task == "subset-ranking" else "label"
        return {field: [entry[key] for entry in reply["ranking"]]}
    return {field: reply[field]}


def check(live: Live, instance: JSON, truth: JSON) -> None:
    """Refuse now what any arm would refuse later: it depends on the specs alone."""
    for spec in live.specs:
        found = instances.read(instance, "items" if spec["task"] == "subset-ranking" else "features")
        if isinstance(found, instances.Words) and spec.get("complexity") == "entropy":
            instances.not_negative(found)
        closed = spec["labels"] if spec["task"] in truths.CLOSED else None
        truths.read(truth, spec["task"], found.ids if isinstance(found, instances.Listing) else closed)


def measured(live: Live, record: JSON, feedback: JSON) -> JSON:
    """What the fold needs to know of a round: the values, and whose they are."""
    plan, instance = live.plan, record["instance"]
    items = [item["id"] for item in instance.get("items", ())]

    def value(served: JSON | None) -> float | None:
        if served is None:
            return None
        return measures.value(
            plan.measure, {**served, "items": items, "known": record.get("known", 0)}, feedback
        )

    found: JSON = {"unit": record["unit"]} if "unit" in record else {}
    if "shadow" in record and plan.measure.is_loss:
        found["shadow"] = [value(served) for served in record["shadow"]]
    if not record["counted"]:
        return found
    if "drafted" not in record:
        return {**found, "arm": record["arm"], "value": value(record["served"])}
    arms = len(plan.arms)
    if plan.measure.is_loss:
        losses = [value(served) for served in record["arms"]]
        known_losses = [loss for loss in losses if loss is not None]
        if len(known_losses) < arms:
            return found
        wins = [known_losses[i] - known_losses[j] for i in range(arms) for j in range(i + 1, arms)]
        return {**found, "credits": known_losses, "wins": wins}
    drafted = interleave.Drafted(**record["drafted"])
    places = measures.credited(plan.measure, drafted.names, feedback)
    if places is None:
        return found
    credits, wins = interleave.credit(drafted, arms, places)
    return {**found, "credits": credits, "wins": wins}


def told(live: Live, event: Event, arms: dict[str, JSON]) -> JSON:
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
