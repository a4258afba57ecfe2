"""What the page asks for, as plain values: searches, clicks, how the two orders compare, and visitors to watch."""

from __future__ import annotations

from random import Random
from threading import Lock
from typing import Any

from ...client import Client
from ...errors import Conflict
from ..clicks import EXAMINATION
from ..features import Features
from ..reranker import Reranker, spec
from ..results import Reranked, Result
from .corpus import Index

__all__ = ["Site"]

ENGINE, LEARNED, EXPERIMENT = "demo-engine", "demo-learned", "demo"
FEATURES = Features(text=["title", "body"], extra=["is_module"])


class Site:
    """A search site over an index, with an A/B of the engine's order against the learned one on every page.

    Both orders have a hand in every page (team draft), so each click says which of the two served better, and one visitor
    is enough to see it.
    """

    def __init__(self, client: Client, index: Index, deadline: float = 1.0, seed: int = 0) -> None:
        for name in (ENGINE, LEARNED):
            client.create(name, spec())
        plan = {"arms": [ENGINE, LEARNED], "method": "interleave", "measure": "clicks"}
        client.create_experiment(EXPERIMENT, {**plan, "learn": [LEARNED], "count": "rounds"})
        self._client, self._index = client, index
        self.reranker = Reranker(client, EXPERIMENT, experiment=True, features=FEATURES, deadline=deadline)
        self._random = Random(seed)  # noqa: S311  (draws visitors, keeps no secret)
        self._drawing = Lock()
        self._modules = index.modules()

    def search(self, query: str, unit: str) -> dict[str, Any]:
        """A page of results for a visitor."""
        page = self._page(query, unit)
        return {
            "prediction_id": page.prediction_id,
            "by": page.by,
            "results": [
                {"id": one.id, "kind": one.fields["kind"], "body": one.fields["body"]} for one in page.results
            ],
        }

    def _page(self, query: str, unit: str) -> Reranked:
        found = [
            Result(one.id, one.score, {**one.fields, "is_module": one.fields["kind"] == "module"})
            for one in self._index.search(query)
        ]
        return self.reranker.rerank(query, found, unit=unit)

    def click(self, prediction_id: str, id: str) -> dict[str, Any]:
        """The first click on a page teaches; those that follow it are only read."""
        try:
            return {"learned": self.reranker.clicked(prediction_id, [id])}
        except Conflict:
            return {"learned": False}

    def status(self) -> dict[str, Any]:
        """How the A/B stands."""
        state = self._client.experiment(EXPERIMENT)
        (found,) = state.differences
        # The service has engine less learned.
        middle, lower, upper = (
            None if found[name] is None else -found[name] for name in ("difference", "upper", "lower")
        )
        return {
            "documents": len(self._index),
            "engine": state.arms[ENGINE],
            "learned": state.arms[LEARNED],
            "ahead": {"middle": middle, "lower": lower, "upper": upper},
            "verdict": state.verdict.removeprefix("demo-"),
            "version": self._client.learner(LEARNED).version,
        }

    def visitors(self, count: int) -> dict[str, Any]:
        """Let visitors search who look for a module by its name, look from the top, and click what they look for.

        They want the module's own page (or, one in ten times, something else in it): the index does not know that.
        """
        for _ in range(count):
            with self._drawing:
                wanted = self._random.choice(self._modules)
                draws = [(self._random.random(), self._random.random()) for _ in range(50)]
            page = self._page(wanted, f"visitor {draws[0][0]}")
            chance = [*EXAMINATION, *[EXAMINATION[-1]] * 40]
            clicked = [
                one.id
                for one, p, (look, like) in zip(page.results, chance, draws, strict=False)
                if look < p
                and like < (0.9 if one.id == wanted else 0.1 if one.fields["module"] == wanted else 0)
            ]
            if clicked:
                self.reranker.clicked(page, clicked)
        return self.status()

    def close(self) -> None:
        """Let go of the threads and the index."""
        self.reranker.close()
        self._index.close()
