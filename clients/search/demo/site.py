"""The calls of the demo page, as plain values: search, click, the comparison of both orders, simulated visitors."""

from __future__ import annotations

from collections import OrderedDict, deque
from random import Random
from threading import Lock

from ...client import Client
from ...payloads import JSON
from ..features import Features
from ..hits import Result
from ..reranker import Reranker, engine_arm, prepare
from .corpus import SearchIndex

__all__ = ["Site"]

NAME = "demo"
FEATURES = Features(text=["title", "body"], extra=["is_module"])
MOST_PAGES = 1000
WORDS = {
    "engine": "the engine's score",
    "rank": "the engine's place",
    "is_module": "to be a whole module",
    "bm25": "the query's words in the",
    "coverage": "all of the query's words in the",
    "exact": "the query as the whole",
    "prefix": "the query at the beginning of the",
    "phrase": "the query in one piece in the",
    "length": "the shortness of the",
}


def in_words(feature: str) -> str:
    """A feature as people say it: `title:bm25` is the query's words in the title."""
    head, _, kind = feature.partition(":")
    if head == "engine":
        return WORDS[head]
    return f"{WORDS[kind]} {head}" if kind in WORDS else WORDS.get(feature, feature)


class Site:
    """A search site over an index: the engine's order until clicks have proved that the learned one loses nothing.

    A page teaches when its first result is clicked, at once, so that one can watch it; a real site would use `clicked` and
    let clicks join.
    """

    def __init__(self, client: Client, index: SearchIndex, deadline: float = 1.0, seed: int = 0) -> None:
        prepare(client, NAME)
        self._client, self._index = client, index
        self.reranker: Reranker = Reranker(client, NAME, features=FEATURES, deadline=deadline)
        self._random = Random(seed)  # noqa: S311  (draws visitors, keeps no secret)
        self._drawing = Lock()
        self._modules = index.modules()
        self._pages: OrderedDict[str, tuple[str, list[str], list[Result]]] = OrderedDict()
        self._lessons: deque[str] = deque(maxlen=5)

    def search(self, query: str, unit: str) -> JSON:
        """A page of results for a visitor."""
        listed = self._listed(query)
        # Every search is a unit of its own: one person who tries it out shall see that clicks teach.
        page = self.reranker.rerank(query, listed, unit=f"{unit} {query}")
        if page.prediction_id is not None:
            self._pages[page.prediction_id] = (query, list(page.page.shown), listed)
            while len(self._pages) > MOST_PAGES:
                self._pages.popitem(last=False)
        return {
            "prediction_id": page.prediction_id,
            "by": page.by,
            "results": [
                {
                    "id": one.id,
                    "kind": one.fields["kind"],
                    "body": one.fields["body"],
                    "engine": list(page.page.engine).index(one.id) + 1,
                }
                for one in page.results
            ],
        }

    def _listed(self, query: str) -> list[Result]:
        return [
            Result(one.id, one.score, {**one.fields, "is_module": one.fields["kind"] == "module"})
            for one in self._index.search(query)
        ]

    def click(self, prediction_id: str, id: str) -> JSON:
        """The first click on a page teaches; those that follow it are only read."""
        query, shown, listed = self._pages.pop(prediction_id, ("", [], []))
        if id not in shown:
            return {"learned": False}
        return {"learned": True, "lesson": self._taught(query, listed, shown, [id], prediction_id)}

    def _taught(
        self, query: str, listed: list[Result], shown: list[str], clicked: list[str], prediction_id: str
    ) -> str:
        """Send the clicks on a page, and say what they changed: in words, about the first of them."""
        id = clicked[0]
        before, old = self._learned(query, listed, id)
        self.reranker.closed(prediction_id, clicked)
        self.reranker.flush(30)
        after, new = self._learned(query, listed, id)
        change = {name: new[name] - old.get(name, 0.0) for name in new}
        most = max(change, key=lambda name: (change[name], name), default="")
        counts = f" Counts more now: {in_words(most)}." if change.get(most, 0.0) > 0 else ""
        others = {1: "", 2: ", not on the other one"}.get(len(shown), f", not on the {len(shown) - 1} others")
        place = f"it stays at place {after}" if after == before else f"it goes from place {before} to {after}"
        if after > before:
            place = "this one click does not lift it"  # its page had other rivals than the list
        lesson = (
            f"“{query}”: a click on {id} at place {shown.index(id) + 1}{others}.{counts} "
            f"In the learned order, click rates aside, {place}."
        )
        self._lessons.appendleft(lesson)
        return lesson

    def _learned(self, query: str, listed: list[Result], id: str) -> tuple[int, dict[str, float]]:
        """Where the learned order has a result by the features that are sent, and what each of them adds to its score."""
        instance = {"items": FEATURES.table(query, listed)}
        ranking = self._client.predict(NAME, instance, remember=False, explain=True).ranking
        place, entry = next((n, one) for n, one in enumerate(ranking, 1) if one.id == id)
        return place, entry.contributions or {}

    def status(self) -> JSON:
        """How the two orders stand."""
        state = self._client.experiment(NAME)
        (difference,) = state.differences
        # The service has engine minus learned.
        middle, lower, upper = (
            None if difference[name] is None else -difference[name]
            for name in ("difference", "upper", "lower")
        )
        return {
            "documents": len(self._index),
            "engine": state.arms[engine_arm(NAME)],
            "learned": state.arms[NAME],
            "ahead": {"middle": middle, "lower": lower, "upper": upper},
            "handover": state.handover,
            "version": self._client.learner(NAME).version,
            "lessons": list(self._lessons),
        }

    def visitors(self, count: int) -> JSON:
        """Let visitors search who look for a module by its name, look from the top, and click what they look for.

        They want the module's own page (or, one in ten times, something else in it): the index does not know that. Place k
        is looked at with chance 1 / k.
        """
        for number in range(count):
            with self._drawing:
                wanted = self._random.choice(self._modules)
                draws = [(self._random.random(), self._random.random()) for _ in range(10)]
            listed = self._listed(wanted)
            page = self.reranker.rerank(wanted, listed, unit=f"visitor {draws[0][0]}")
            clicked = [
                one.id
                for place, (one, (look, like)) in enumerate(zip(page.results, draws, strict=False), 1)
                if look < 1 / place
                and like < (0.9 if one.id == wanted else 0.1 if one.fields["module"] == wanted else 0)
            ]
            if not clicked or page.prediction_id is None:
                continue
            if count - number <= 10:  # the last of them, so that one sees what such visitors teach
                self._taught(wanted, listed, list(page.page.shown), clicked, page.prediction_id)
            else:
                self.reranker.closed(page, clicked)
                self.reranker.flush(30)
        return self.status()

    def close(self) -> None:
        """Let go of the threads and the index."""
        self.reranker.close()
        self._index.close()
