"""Searches with a known truth on a corpus that every Python ships, and visitors who click by six models.

A visitor looks for one documentation string of the standard library and types two or three words of it, most of them from
its name; modules are looked for more often than classes, and classes than functions. What is looked for has grade 3, what
else lies in its module and matches has grade 1. The engine is SQLite's BM25 over all text, and knows none of that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

from feedrank.clients.search import Features, Result
from feedrank.clients.search.demo.corpus import Document, SearchIndex, documents
from feedrank.clients.search.features import words

WANTED = {"module": 12.0, "class": 3.0, "function": 1.0}
ATTRACTION = {0: 0.04, 1: 0.25, 3: 0.9}
FEATURES = Features(text=["title", "body"], extra=["is_module"])


@dataclass(frozen=True, slots=True)
class Search:
    """One query, its results in the engine's order, and their grades."""

    query: str
    results: list[Result]
    grades: dict[str, int]


class Corpus:
    """A stream of searches, drawn from one seed."""

    def __init__(self, retrieved: int, modules: int | None = None) -> None:
        self._documents: list[Document] = list(documents(modules=modules))
        self._index, self._retrieved = SearchIndex(iter(self._documents)), retrieved

    def searches(self, count: int, seed: int) -> list[Search]:
        """So many searches whose target the engine retrieves."""
        rng = random.Random(seed)
        drawn: list[Search] = []
        weights = [WANTED[one.kind] for one in self._documents]
        while len(drawn) < count:
            (target,) = rng.choices(self._documents, weights)
            title, body = words(target.title), words(target.body)[:60]
            typed = [
                rng.choice(title if rng.random() < 0.6 else body or title) for _ in range(rng.choice((2, 3)))
            ]
            query = " ".join(dict.fromkeys(typed))
            listed = [
                Result(one.id, one.score, {**one.fields, "is_module": one.fields["kind"] == "module"})
                for one in self._index.search(query, self._retrieved)
            ]
            grades = {
                one.id: 3 if one.id == target.id else int(one.fields["module"] == target.module)
                for one in listed
            }
            if len(listed) == self._retrieved and target.id in grades:
                drawn.append(Search(query, listed, grades))
        return drawn


def ndcg(order: Sequence[str], grades: dict[str, int], k: int = 10) -> float:
    """NDCG at k, gain 2^g - 1."""
    best = sorted(grades.values(), reverse=True)[:k]
    ideal = sum((2**g - 1) / log2(place + 1) for place, g in enumerate(best, 1))
    return sum((2 ** grades[id] - 1) / log2(place + 1) for place, id in enumerate(order[:k], 1)) / ideal


Clicks = Callable[[Sequence[int], random.Random], list[int]]


def positions(exponent: float) -> Clicks:
    """Place k is looked at with chance k^-exponent; what is looked at is clicked by its attraction."""

    def click(grades: Sequence[int], rng: random.Random) -> list[int]:
        return [
            place
            for place, grade in enumerate(grades)
            if rng.random() < (place + 1) ** -exponent and rng.random() < ATTRACTION[grade]
        ]

    return click


def cascade(grades: Sequence[int], rng: random.Random) -> list[int]:
    """From the top, until a click satisfies: then the visitor leaves."""
    clicked = []
    for place, grade in enumerate(grades):
        if rng.random() < ATTRACTION[grade]:
            clicked.append(place)
            if rng.random() < (0.9 if grade == 3 else 0.4):
                break
    return clicked


def trust(grades: Sequence[int], rng: random.Random) -> list[int]:
    """As k^-1, and high places are clicked for being high: 0.3 / k more for whatever stands there."""
    return [
        place
        for place, grade in enumerate(grades)
        if rng.random() < 1 / (place + 1) and rng.random() < min(1.0, ATTRACTION[grade] + 0.3 / (place + 1))
    ]


MODELS: dict[str, Clicks] = {
    "cascade": cascade,
    "trust bias": trust,
    "k^-0.5": positions(0.5),
    "k^-1": positions(1.0),
    "k^-2": positions(2.0),
    "all read": positions(0.0),
}
