"""`feedrank personalizer`: learn from a log that Azure Personalizer mirrored to a storage account.

One JSON object a line, as its trainer read it:

    {"EventId", "_label_cost": -reward, "_label_probability", "_labelIndex": from 0, "c": {"FromUrl": [context features],
     "_multi": [{"_tag": action id, "j": [action features]}, ...]}, "_skipLearn"?: true}

A line becomes feedback with what was served, under its event's id, so that it counts once however often it is sent.
Features are made as the call `rank` makes them. What is no such line (events that were never activated or rewarded, several
slots) is counted and passed over.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from feedrank.clients.client import Client
from feedrank.clients.connection import LearnerName, with_client
from feedrank.clients.exceptions import NotFound
from feedrank.clients.payloads import JSON
from feedrank.service.http.routes.personalizer_calls import flat

app = typer.Typer(add_completion=False)
BATCH = 200


@app.command()
@with_client("personalizer")
def replay(
    client: Client,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="the log, plain or gzip")],
    learner: LearnerName,
) -> None:
    """Learn from a log that Azure Personalizer wrote. Each event counts once, so the same file can be sent again."""
    try:
        spec = client.learner(learner).spec
    except NotFound:
        spec = client.create(learner, {"task": "choice"}).spec
    sent = fresh = passed = 0
    with opened(file) as lines:
        events = (event_of(line, spec["range"]) for line in lines if line.strip())
        while batch := list(islice(events, BATCH)):
            known = [event for event in batch if event is not None]
            passed += len(batch) - len(known)
            if known:
                outcomes = client.feedback_many(learner, known)
                sent += len(known)
                fresh += sum(not outcome.duplicate for outcome in outcomes)
    print(f"{learner}: {fresh} events learned, {sent - fresh} known before, {passed} lines passed over")


def opened(file: Path) -> Any:
    """The lines of a file."""
    with file.open("rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    return gzip.open(file, "rt", encoding="utf-8") if packed else file.open(encoding="utf-8")


def event_of(line: str, bounds: Sequence[float]) -> JSON | None:
    """The feedback of a line; None if it is not one choice that was rewarded."""
    try:
        logged = json.loads(line)
        context, actions = logged["c"], logged["c"]["_multi"]
        place = int(logged.get("_labelIndex", int(logged.get("_label_Action", 0)) - 1))
        reward, probability = -float(logged["_label_cost"]), float(logged["_label_probability"])
        items = list(items_of(actions))
        if logged.get("_skipLearn") or not 0 <= place < len(items) or not 0.0 < probability <= 1.0:
            return None
        own = {name: part for name, part in context.items() if name[:1] != "_"}
        event: JSON = {
            "items": items,
            "features": flat(own.get("FromUrl", own)),
            "served": {"id": items[place]["id"], "probability": probability},
            "reward": min(max(reward, bounds[0]), bounds[1]),
        }
        return event | ({"feedback_id": logged["EventId"]} if logged.get("EventId") else {})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def items_of(actions: Iterable[Any]) -> Iterator[JSON]:
    """The items of a line's actions: what is under `j` are the features that the call sent."""
    for number, action in enumerate(actions):
        id = action.get("_tag") or action.get("i", {}).get("id") or str(number)
        own = {name: part for name, part in action.items() if name[:1] != "_" and name != "i"}
        yield {"id": str(id), "features": flat(own.get("j", own))}
