"""`Reranker`: an engine's results in, the same results in the order that clicks have taught out, within a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock
from typing import Any

from ..client import Client
from ..errors import ClientError
from ..replies import Prediction
from .clicks import EXAMINATION
from .evidence import Evidence, advantage, coin
from .features import Features
from .results import Reranked, Result, Shown

__all__ = ["Counts", "Reranker", "spec"]

REGRESSION = {"algorithm": "quadratic-surrogate", "normalize": "list"}


def spec(examination: Sequence[float] | None = EXAMINATION, **parameters: Any) -> dict[str, Any]:
    """The spec of a learner of clicks: one regression on inverse propensities, which averages their noise out.

    `examination=None` reads clicks by skip-above instead. `parameters` are those of the contract, in place of ours.
    """
    asked: dict[str, Any] = {"task": "subset-ranking", **(parameters or REGRESSION)}
    return asked if examination is None else {**asked, "examination": list(examination)}


@dataclass(slots=True)
class Counts:
    """What became of the pages."""

    pages: int = 0
    learned: int = 0
    engine: int = 0
    late: int = 0
    """The service was too slow: the engine's order."""
    failed: int = 0
    """The service was down, or refused: the engine's order."""
    unlearned: int = 0
    """Feedback on a page that the service never saw."""


class Reranker:
    """Re-ranks with a learner, or with the arms of an experiment. It may be shared by threads.

    With a learner the engine's order stays until clicks have shown the learned one to be better, see `evidence`; an
    experiment decides by itself who is served what. A call to the service that takes longer than `deadline` seconds is
    left behind, and so are calls while `workers` of them hang: the page is the engine's.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        experiment: bool = False,
        features: Features | None = None,
        deadline: float = 0.15,
        evidence: Evidence | None = None,
        examination: Sequence[float] = EXAMINATION,
        workers: int = 8,
    ) -> None:
        self.name, self.experiment = name, experiment
        self.features = features or Features()
        self.deadline, self.examination = deadline, examination
        self.evidence = evidence or Evidence()
        self.counts = Counts()
        self._client = client
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="feedrank-search")
        self._free = BoundedSemaphore(workers)
        self._lock = Lock()

    def rerank(self, query: str, results: Sequence[Result], *, unit: str | None = None) -> Reranked:
        """The results in the order to show; `results` are in the engine's order, ids unique.

        `unit` is who searches (a session, a user), for an experiment.
        """
        engine = [result.id for result in results]
        if not results:
            return Reranked([], Shown(None, [], []), "engine")
        instance = {"items": self.features.items(query, results)}
        found = self._within_deadline(lambda: self._predict(instance, unit))
        if found is None:
            return Reranked(list(results), Shown(None, engine, engine), "fallback")
        learned = [entry.name for entry in found.ranking]
        by, shown = self._choice(query, found, engine, learned)
        place = {result.id: result for result in results}
        page = Shown(found.prediction_id, shown, engine, () if self.experiment else learned)
        return Reranked([place[id] for id in shown], page, by, found.version)

    def _predict(self, instance: Mapping[str, Any], unit: str | None) -> Prediction:
        if not self.experiment:
            return self._client.predict(self.name, instance)
        return self._client.experiment_predict(self.name, unit, instance)

    def _choice(
        self, query: str, found: Prediction, engine: list[str], learned: list[str]
    ) -> tuple[str, list[str]]:
        with self._lock:
            self.counts.pages += 1
            if self.experiment:
                self.counts.learned += 1
                return found.learner or "interleaved", learned
            if found.version and coin(f"{self.name}\n{query}") < self.evidence.share:
                self.counts.learned += 1
                return "learned", learned
            self.counts.engine += 1
            return "engine", engine

    def _within_deadline(self, call: Callable[[], Prediction]) -> Prediction | None:
        """The reply, or None (counted) if it does not come in time."""
        if not self._free.acquire(blocking=False):
            self._count_lost(late=True)
            return None
        future: Future[Prediction] = self._pool.submit(call)
        future.add_done_callback(lambda _: self._free.release())
        try:
            return future.result(self.deadline)
        except TimeoutError:
            future.cancel()
            self._count_lost(late=True)
        except ClientError:
            self._count_lost(late=False)
        return None

    def _count_lost(self, *, late: bool) -> None:
        with self._lock:
            self.counts.pages += 1
            self.counts.late += late
            self.counts.failed += not late

    def clicked(self, page: Reranked | Shown | str, ids: Iterable[str]) -> bool:
        """Send the clicks on a page, once its user is done with it; none is worth telling too.

        False if the service never saw the page, or has had these clicks before. A bare prediction id stands for a page
        that was shown as predicted. Raises `ClientError`; `Conflict` if other clicks on this page came before.
        """
        clicks = list(dict.fromkeys(ids))
        sent = self._feedback(page, {"clicks": clicks})
        shown = page.page if isinstance(page, Reranked) else page
        if sent and isinstance(shown, Shown) and shown.learned:
            gain = advantage(shown.shown, clicks, shown.engine, shown.learned, self.examination)
            with self._lock:
                self.evidence.add(gain)
        return sent

    def judged(self, page: Reranked | Shown | str, grades: Mapping[str, float]) -> bool:
        """Send grades, 0 or higher, from someone who judged the whole page; returns and raises as `clicked`."""
        return self._feedback(page, {"relevance": dict(grades)})

    def _feedback(self, page: Reranked | Shown | str, truth: dict[str, Any]) -> bool:
        shown = page.page if isinstance(page, Reranked) else page
        event = dict(truth)
        if isinstance(shown, str):
            event["prediction_id"] = shown
        elif shown.prediction_id is None:
            with self._lock:
                self.counts.unlearned += 1
            return False
        else:
            event["prediction_id"] = shown.prediction_id
            if shown.shown and not self.experiment and list(shown.shown) != list(shown.learned):
                event["served"] = {"ranking": list(shown.shown)}
        if self.experiment:
            return not self._client.experiment_feedback(self.name, event).get("duplicate")
        return not self._client.feedback(self.name, event).duplicate

    def close(self) -> None:
        """Let go of the threads; calls that hang are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Reranker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
