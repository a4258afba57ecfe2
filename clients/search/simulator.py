"""Searches with a known truth and clicks that depend on places: what a re-ranker learns can be compared with what is so.

A result is a vector z of `traits`; it satisfies with chance r = sigmoid(2 <truth, z>). The engine scores by weights of its
own, `skill` of the way from random ones to the truth, and its score stands among the features. A user looks at place k
with chance p(k), and clicks what is looked at and satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, hypot
from random import Random

from .clicks import EXAMINATION
from .features import Features
from .reranker import Reranker
from .results import Reranked, Result

__all__ = ["Search", "World", "run", "worth"]


@dataclass(frozen=True, slots=True)
class Search:
    """One query: its results in the engine's order, and the chance of each to satisfy."""

    query: str
    results: list[Result]
    truth: dict[str, float]


def worth(order: Sequence[str], truth: dict[str, float], curve: Sequence[float] = EXAMINATION) -> float:
    """The clicks expected of an order, as a share of those of the best one."""
    best = sorted(truth.values(), reverse=True)
    chance = [curve[min(place, len(curve) - 1)] for place in range(len(best))]
    had = sum(p * truth[id] for p, id in zip(chance, order, strict=True))
    return had / sum(p * r for p, r in zip(chance, best, strict=True))


class World:
    """A stream of searches, all drawn from one seed."""

    def __init__(
        self,
        seed: int,
        *,
        traits: int = 5,
        results: int = 10,
        skill: float = 0.3,
        curve: Sequence[float] = EXAMINATION,
    ) -> None:
        self._random = Random(seed)  # noqa: S311  (draws a world, keeps no secret)
        self.truth = self._direction(traits)
        off = self._direction(traits)
        self.engine = [skill * t + (1 - skill) * o for t, o in zip(self.truth, off, strict=True)]
        self.results, self.curve = results, curve
        self.features = Features(extra=[f"trait{i}" for i in range(traits)])
        self._count = 0

    def _direction(self, size: int) -> list[float]:
        drawn = [self._random.gauss(0, 1) for _ in range(size)]
        return [value / hypot(*drawn) for value in drawn]

    def search(self) -> Search:
        """The next query."""
        self._count += 1
        rows = [[self._random.gauss(0, 1) for _ in self.truth] for _ in range(self.results)]
        rows.sort(key=lambda z: -_dot(self.engine, z))
        ids = [f"d{i}" for i in range(self.results)]
        self._random.shuffle(ids)  # names must not tell places
        results = [
            Result(id, _dot(self.engine, z), {f"trait{i}": value for i, value in enumerate(z)})
            for id, z in zip(ids, rows, strict=True)
        ]
        truth = {id: 1 / (1 + exp(-2 * _dot(self.truth, z))) for id, z in zip(ids, rows, strict=True)}
        return Search(f"query {self._count}", results, truth)

    def clicks(self, shown: Sequence[str], truth: dict[str, float]) -> list[str]:
        """What a user clicks on this page."""
        chance = [self.curve[min(place, len(self.curve) - 1)] for place in range(len(shown))]
        return [id for p, id in zip(chance, shown, strict=True) if self._random.random() < p * truth[id]]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def run(
    world: World,
    reranker: Reranker,
    searches: int,
    tell: Callable[[Reranker, Reranked, list[str]], object] = Reranker.clicked,
) -> list[tuple[float, float]]:
    """Search, show, click, learn: the worth of every page that was shown, and of the engine's order in its place."""
    values = []
    for _ in range(searches):
        search = world.search()
        page = reranker.rerank(search.query, search.results)
        tell(reranker, page, world.clicks(page.page.shown, search.truth))
        values.append(
            (worth(page.page.shown, search.truth), worth(page.page.engine, search.truth)),
        )
    return values
