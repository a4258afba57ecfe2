"""One experiment over HTTP: its learners, its users and its looks, by calls of the public contract alone.

Users do not look at what is shown, or like one arm's choice as often as the other's: all arms are equal, unless a cell
has an `effect`. `experiment_brute.py` says what GET must show.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

from experiment_brute import Book, Round, credited, differing, ndcg_loss, reciprocal_rank
from experiment_cells import KINDS, LABELS, Cell

JSON = dict[str, Any]
WORDS, ITEMS, USERS = 30, 6, 20
LATE = 30  # rounds that failures of the second arm are answered later, where answers are late
IDLE = 2.0  # seconds after which a connection is made anew: the server closes those that are not used
WAIT = 4.0  # seconds to answer, in cells with windows


class Caller:
    """One connection, one call after another; a client library would take longer than the server."""

    def __init__(self, port: int) -> None:
        self._port, self.calls, self._used = port, 0, 0.0

    async def __aenter__(self) -> Caller:
        self._used = time.monotonic()
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._writer.close()

    async def __call__(self, method: str, path: str, body: JSON | None = None) -> JSON:
        self.calls += 1
        if time.monotonic() - self._used > IDLE:
            self._writer.close()
            await self.__aenter__()
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} /v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
        self._writer.write(head.encode() + content)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n", 1)[0])
        reply = json.loads(await self._reader.readexactly(length))
        self._used = time.monotonic()
        if head.split(" ", 2)[1] not in ("200", "201", "202"):
            raise RuntimeError(f"{method} {path}: {reply}")
        return reply  # type: ignore[no-any-return]


@dataclass
class Outcome:
    """What a run came to; `wrong` are the figures that differ from those worked out."""

    events: int = 0
    looks: int = 0
    deep: int = 0
    calls: int = 0
    decided: int | None = None
    winner: str | None = None
    wrong: list[str] = field(default_factory=list)


@dataclass
class Served:
    """A round whose answer is still to come."""

    id: str
    arm: int | None
    shown: list[str]
    label: str | None
    rankings: list[list[str]]
    unit: str
    before: float | None
    truth: JSON = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    counted: list[float] | None = None


class Run:
    """One experiment from its learners to its last look."""

    def __init__(self, cell: Cell, number: int, caller: Caller, events: int, look: int) -> None:
        self.cell, self.caller, self.events, self.look = cell, caller, events, look
        self.chance = random.Random(f"{cell.name}/{number}")
        self.name = "".join(c if c.isalnum() else "-" for c in f"{cell.name}-{number}")
        self.names = [f"{self.name}-{arm}" for arm in range(cell.arms)]
        self.tastes = {f"u{i}": self.chance.betavariate(0.5, 0.5) for i in range(100)}
        self.book, self.done, self.seen = Book(cell.arms, cell.lower), Outcome(), 0
        self.answered: list[tuple[str, Round]] = []

    async def play(self) -> Outcome:
        await self._make()
        waiting: list[tuple[int, Served]] = []
        tasks: list[asyncio.Task[None]] = []
        every: list[Served] = []
        for event in range(self.events):
            one = await self._ask(event)
            every.append(one)
            failed = one.arm == 1 and sum(one.values) > 0
            if self.cell.when == "window":
                tasks.append(asyncio.create_task(self._answer_in_window(one, failed)))
                await asyncio.sleep(0.01)
                if event % self.look == self.look - 1:
                    await self._look()
                continue
            waiting.append((event + (LATE if self.cell.when == "late" and failed else 0), one))
            for due, late in [each for each in waiting if each[0] <= event]:
                waiting.remove((due, late))
                await self._answer(late)
            if event % self.look == self.look - 1 and await self._look() and self.cell.effect:
                break
        for _, late in waiting:
            await self._answer(late)
        await asyncio.gather(*tasks)
        if self.cell.when == "window":
            await self._windows_over(every)
        await self._look(deep=True)
        await self._retract()
        self.done.events, self.done.calls = len(every), self.caller.calls
        return self.done

    async def _make(self) -> None:
        """Learners that differ, by what they learned before, and the experiment."""
        cell = self.cell
        for number, name in enumerate(self.names):
            spec: JSON = dict(KINDS[cell.kind])
            if cell.kind == "label lists":
                spec["labels"] = [f"i{i}" for i in range(ITEMS - 2 * number)]
            await self.caller("PUT", f"learners/{name}", spec)
            for _ in range(3):
                await self.caller("POST", f"learners/{name}/feedback", self._lesson())
        definition: JSON = {"arms": self.names, "method": cell.method, "learn": "all" if cell.learns else []}
        if cell.measure is not None:
            definition["measure"] = cell.measure
        if cell.when == "window":
            definition |= {"wait": WAIT, "default": 1.0 if cell.lower else 0.0}
        await self.caller("PUT", f"experiments/{self.name}", definition)

    def _lesson(self) -> JSON:
        instance = self._instance()
        if self.cell.kind == "labels":
            return {**instance, "label": self.chance.choice(LABELS)}
        if self.cell.kind == "label lists":
            return {**instance, "labels": ["i0", "i1"][: self.chance.randrange(1, 3)]}
        return {**instance, "relevance": {f"i{i}": self.chance.randrange(3) for i in range(ITEMS)}}

    def _instance(self) -> JSON:
        if self.cell.kind == "lists":
            rows = [[self.chance.gauss(0, 1) for _ in range(3)] for _ in range(ITEMS)]
            return {"items": [{"id": f"i{i}", "features": row} for i, row in enumerate(rows)]}
        return {"features": [f"w{self.chance.randrange(WORDS)}" for _ in range(4)]}

    async def _ask(self, event: int) -> Served:
        """One prediction; what the user will say is settled, not sent."""
        cell, chance = self.cell, self.chance
        unit = {
            "new": f"n{event}",
            "heavy": f"u{int(USERS * chance.random() ** 3)}",
            "drift": f"u{chance.randrange(100)}",
        }[cell.units]
        instance, rankings = self._instance(), list[list[str]]()
        if cell.method == "interleave":
            for name in self.names:
                own = await self.caller("POST", f"learners/{name}/predict", {**instance, "remember": False})
                rankings.append([entry.get("id") or entry["label"] for entry in own["ranking"]])
        before = self.tastes[unit] if cell.answers == "reward" else None
        known = {} if before is None else {"before": before}
        reply = await self.caller(
            "POST", f"experiments/{self.name}/predict", {**instance, "unit": unit, **known}
        )
        one = Served(
            reply["prediction_id"],
            None if cell.method == "interleave" else self.names.index(reply["learner"]),
            [entry.get("id") or entry["label"] for entry in reply["ranking"]],
            reply.get("label"),
            rankings,
            unit,
            before,
        )
        self._react(one, event)
        return one

    def _react(self, one: Served, event: int) -> None:
        """What the user does, and what it is worth by the definition of the measure."""
        cell, chance = self.cell, self.chance
        taste = self.tastes.get(one.unit, 0.5)
        if cell.units == "drift":
            taste = 0.1 + 0.8 * (event // 40 % 2)
        if cell.effect:
            taste = 0.9 + cell.effect * (one.arm == 1)
        if cell.answers == "reward":
            reward = min(1.0, max(0.0, taste + chance.gauss(0, 0.1)))
            one.truth, one.values = {"reward": reward}, [reward]
        elif cell.kind == "labels":
            right = chance.random() < taste
            one.truth = {"label": one.label if right else LABELS[one.label == LABELS[0]]}
            one.values = [float(not right)]
        elif cell.answers == "grades":
            grades = {name: chance.choice((0, 0, 1, 2)) for name in sorted(one.shown)}
            one.truth = {"relevance": grades}
            one.values = [
                ndcg_loss([grades[name] for name in order]) for order in one.rankings or [one.shown]
            ]
        else:
            self._click(one, taste)

    def _click(self, one: Served, taste: float) -> None:
        """Users look down the list; where two arms are drafted, each user likes the first choice of one of them."""
        cell, chance = self.cell, self.chance
        clicks = [name for place, name in enumerate(one.shown) if chance.random() < taste * 0.6**place]
        if cell.kind == "lists" and len(one.rankings) == 2 and chance.random() < 0.7:
            clicks = [one.rankings[chance.random() < taste][0]]
        field = "clicks" if cell.kind == "lists" else "labels"
        if field == "labels" and not clicks:
            clicks = [one.shown[0]]
        one.truth = {field: clicks}
        if cell.method == "split":
            one.values = [reciprocal_rank(one.shown, clicks)]
            return
        k = 3 if cell.measure == "clicks@3" else len(one.shown)
        earn = [name for name in one.shown[:k] if name in clicks]
        one.values = credited(
            one.rankings, one.shown, earn[:1] if cell.measure == "reciprocal-rank" else earn
        )

    async def _answer(self, one: Served) -> None:
        body = {"prediction_id": one.id, **one.truth}
        reply = await self.caller("POST", f"experiments/{self.name}/feedback", body)
        credits = reply["credits"]
        one.counted = (
            list(credits.values()) if credits else None if reply["value"] is None else [reply["value"]]
        )
        self._count(one, one.values)

    def _count(self, one: Served, values: list[float]) -> None:
        self.answered.append((one.id, Round(one.unit, one.arm, values, one.before)))
        self.book.rounds.append(self.answered[-1][1])

    async def _answer_in_window(self, one: Served, failed: bool) -> None:
        """Clicks one by one; labels late for failures of the second arm, and for some never."""
        never = self.chance.random() < 0.2
        delay = self.chance.random() * WAIT / 4 + (WAIT / 4 if failed else 0)
        await asyncio.sleep(delay)
        async with Caller(self.caller._port) as caller:
            if "clicks" in one.truth:
                for name in one.truth["clicks"]:
                    body = {"prediction_id": one.id, "clicks": [name]}
                    await caller("POST", f"experiments/{self.name}/clicks", body)
                one.counted = one.values
            elif never:
                one.counted = [1.0]
            else:
                body = {"prediction_id": one.id, **one.truth}
                reply = await caller("POST", f"experiments/{self.name}/feedback", body)
                # Whether it was in time is the server's clock to say; what comes too late counts as no answer.
                one.counted = [1.0 if reply["value"] is None else reply["value"]]
                if reply["value"] not in (None, 1.0, one.values[0]):
                    self.done.wrong.append(f"value {reply['value']} for {one.values}")

    async def _windows_over(self, every: list[Served]) -> None:
        """Rounds count in the order in which they were served, once all windows are over."""
        deadline = time.monotonic() + 20 * WAIT
        while time.monotonic() < deadline:
            await asyncio.sleep(WAIT / 2)
            shown = await self.caller("GET", f"experiments/{self.name}")
            if sum(arm["rounds"] for arm in shown["arms"].values()) == len(every) * (
                1 if self.cell.method == "split" else self.cell.arms
            ):
                break
        for one in every:
            self._count(one, one.counted or one.values)

    async def _look(self, deep: bool = False) -> bool:
        """GET, worked out anew; with intervals and verdict at the 1st, 2nd, 4th, ... look, and at the last."""
        shown = await self.caller("GET", f"experiments/{self.name}")
        self.seen += 1
        self.done.looks += 1
        if shown["verdict"] != "undecided":
            self.done.decided = self.done.decided or len(self.book.rounds)
            self.done.winner = self.done.winner or shown["verdict"]
        if self.book.rounds:
            deep = deep or self.seen & (self.seen - 1) == 0 or shown["verdict"] != "undecided"
            self.done.deep += deep
            self.done.wrong += [
                f"{self.name}: {text}" for text in differing(self.book, self.names, shown, deep)
            ]
        return shown["verdict"] != "undecided"

    async def _retract(self) -> None:
        """Take some events back: all figures must be as if they had never come."""
        for id, one in self.chance.sample(self.answered, min(self.cell.retracts, len(self.answered))):
            await self.caller("POST", f"experiments/{self.name}/retract", {"prediction_id": id})
            at = next(i for i, each in enumerate(self.book.rounds) if each is one)
            del self.book.rounds[at]
        if self.cell.retracts:
            await self._look(deep=True)
