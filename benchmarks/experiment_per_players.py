"""One experiment with `per` over HTTP: units are exposed, valued, exposed again, some too late, and some events retracted.

The player keeps what it sent, and when by its own clock; nothing is sent near the end of a window, where the server's
clock and this one may differ. Units enter the book in the order of their first exposures, as GET lists them.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Any

from experiment_brute import Book, Round, differing
from experiment_cells import KINDS, PerCell
from experiment_players import JSON, Caller, Outcome

WINDOW, MARGIN = 3.0, 1.0


@dataclass
class Person:
    """A unit: when it was first exposed, at the latest; values by the id of their event; whether it was exposed again."""

    first: float
    values: dict[str, float] = field(default_factory=dict)
    again: bool = False
    before: float | None = None


class PerRun:
    """From the learners to the last look."""

    def __init__(self, cell: PerCell, number: int, caller: Caller, events: int) -> None:
        self.cell, self.caller, self.events = cell, caller, events
        self.chance = random.Random(f"{cell.name}/{number}")
        self.name = f"{cell.name}-{number}"
        self.arms = [f"{self.name}-{arm}" for arm in range(cell.arms)]
        self.people: dict[str, Person] = {}
        self.answers = [0] * cell.arms
        self.done = Outcome()

    async def play(self) -> Outcome:
        for arm in self.arms:
            await self.caller("PUT", f"learners/{arm}", dict(KINDS["labels"]))
        per: JSON = {"window": WINDOW, "value": self.cell.value}
        per |= {} if self.cell.cap is None else {"cap": self.cell.cap}
        definition = {"arms": self.arms, "measure": "reward", "per": per, "learn": []}
        await self.caller("PUT", f"experiments/{self.name}", definition)
        for event in range(self.events):
            await self._visit(event)
            if event % 20 == 19:
                await self._look()
        while (await self.caller("GET", f"experiments/{self.name}"))["waiting"]:
            await asyncio.sleep(0.2)
        for unit in self.chance.sample(sorted(self.people), min(5, len(self.people))):
            await self._value(unit, "late")
        await self._look(last=True)
        await self._retract()
        self.done.events, self.done.calls = self.events, self.caller.calls
        return self.done

    async def _visit(self, event: int) -> None:
        """Somebody new, or who came before, is shown an arm, and does something or nothing."""
        unit = f"u{event}" if self.chance.random() < 0.5 else f"u{self.chance.randrange(event + 1)}"
        person = self.people.get(unit)
        if person is not None:
            age = time.monotonic() - person.first
            if WINDOW - MARGIN < age < WINDOW + MARGIN:
                return  # nobody could say on which side of the end it falls
            person.again = person.again or age < WINDOW
        before = self.chance.random() if self.chance.random() < 0.5 else None
        known: JSON = {"unit": unit} | ({} if before is None else {"before": before})
        served: JSON | None = None
        if self.chance.random() < 0.5:
            await self.caller("POST", f"experiments/{self.name}/assign", known)
        else:
            served = await self.caller(
                "POST", f"experiments/{self.name}/predict", {"features": ["w"], **known}
            )
        if person is None:
            self.people[unit] = Person(time.monotonic(), before=before)
        for number in range(self.chance.choice((0, 0, 1, 3))):
            await self._value(unit, f"{event}-{number}")
        if served is not None and self.chance.random() < 0.5:
            await self._answer(unit, served)

    def _inside(self, unit: str) -> bool:
        return time.monotonic() - self.people[unit].first < WINDOW

    async def _value(self, unit: str, id: str) -> None:
        value = self.chance.choice((0.0, 0.25, 1.0)) * (3 if self.cell.cap else 1)
        body: JSON = {"unit": unit, "metric": "reward", "value": value, "feedback_id": f"{unit}/{id}"}
        inside = self._inside(unit)
        for _ in range(self.chance.choice((1, 1, 2))):  # some are sent twice
            await self.caller("POST", f"experiments/{self.name}/events", body)
        if inside:
            self.people[unit].values[body["feedback_id"]] = value

    async def _answer(self, unit: str, served: JSON) -> None:
        reward = round(self.chance.random(), 2)
        body = {
            "prediction_id": served["prediction_id"],
            "reward": reward,
            "feedback_id": f"a/{served['prediction_id']}",
        }
        inside = self._inside(unit)
        await self.caller("POST", f"experiments/{self.name}/feedback", body)
        self.answers[self.arms.index(served["learner"])] += 1
        if inside:
            self.people[unit].values[body["feedback_id"]] = reward

    def _worth(self, person: Person) -> float:
        """By what a unit counts, from 0 to 1."""
        values = list(person.values.values())
        if self.cell.value == "mean":
            return sum(values) / len(values) if values else 0.0
        if self.cell.value == "total":
            return min(sum(values), self.cell.cap or 1.0) / (self.cell.cap or 1.0)
        return float(person.again if self.cell.value == "returns" else any(value > 0 for value in values))

    async def _look(self, last: bool = False) -> None:
        """All figures against the units that have counted; only if nothing counted between the calls."""
        shown = await self.caller("GET", f"experiments/{self.name}")
        listed: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = await self.caller("GET", f"experiments/{self.name}/units?limit=50{cursor}")
            listed += page["units"]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        if (await self.caller("GET", f"experiments/{self.name}"))["version"] != shown["version"] and not last:
            return
        self.done.looks += 1
        book = Book(self.cell.arms, False, answers=self.answers, scale=self.cell.cap or 1.0)
        if [one["unit"] for one in listed] != list(self.people):
            self.done.wrong.append(f"{self.name}: other units are listed, or in another order")
        for one in listed:
            person = self.people[one["unit"]]
            if one["counted"]:
                worth = self._worth(person)
                if abs(one["values"]["reward"] - worth * book.scale) > 1e-9:
                    self.done.wrong.append(f"{self.name}: {one}, worth {worth * book.scale}")
                book.rounds.append(Round(one["unit"], self.arms.index(one["arm"]), [worth], person.before))
        if book.rounds:
            self.done.deep += 1
            self.done.winner = self.done.winner or (
                None if shown["verdict"] == "undecided" else shown["verdict"]
            )
            self.done.wrong += [f"{self.name}: {text}" for text in differing(book, self.arms, shown, True)]

    async def _retract(self) -> None:
        """Take some values back: all figures must be as if they had never come."""
        ids = sorted((id, unit) for unit, person in self.people.items() for id in person.values)
        for id, unit in self.chance.sample(ids, min(5, len(ids))):
            await self.caller("POST", f"experiments/{self.name}/retract", {"feedback_id": id})
            del self.people[unit].values[id]
            if id.startswith("a/"):
                self.answers = [-1] * self.cell.arms  # answered rounds are not followed beyond a retraction
        await self._look(last=True)
