"""`Reranker`: takes an engine's results, returns the page to show within a deadline, and sends clicks in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import BoundedSemaphore, Lock
from typing import Any

from .. import experiment_requests
from ..calls import Call, encode
from ..client import Client
from ..exceptions import ClientError
from ..payloads import JSON, Payload
from ..replies import Experiment, Prediction
from .features import Features
from .hits import Reranked, Result, Shown
from .outbox import Outbox

__all__ = ["Counts", "Reranker", "prepare", "spec"]

log = logging.getLogger(__name__)
MOST_REASONS = 100


def spec(**parameters: Any) -> JSON:
    """The spec of a learner of clicks: the preset for lists. `parameters` are those of the contract, in place of ours."""
    return {"task": "subset-ranking", **parameters}


def prepare(
    client: Client, name: str, learner: Payload | None = None, *, wait: float | None = None
) -> Experiment:
    """Make what a `Reranker` needs, unless it is there: a learner, the engine's order, and the evidence between them.

    The engine's order is an arm that never learns: it ranks as it is given. Clicks on a page count together when its window
    is over, after 600 seconds; with `wait`, after so many, and pages without a click are logged as well.
    """
    engine = engine_arm(name)
    learned = dict(learner or spec())
    client.create(name, learned)
    # Both arms are sent the same instance, so both must take a context if one does.
    context = {"context": True} if learned.get("context") else {}
    client.create(engine, {"task": "subset-ranking", "algorithm": "listnet", **context})
    return client.create_experiment(
        name,
        {
            "arms": [engine, name],
            "method": "interleave",
            "measure": "clicks",
            "learn": [name],
            "handover": True,
            "behaviour": True,
            **({} if wait is None else {"wait": wait}),
        },
    )


def engine_arm(name: str) -> str:
    """The arm that stands for the engine's order."""
    return f"{name}.engine"


@dataclass(slots=True)
class Counts:
    """What became of the pages."""

    pages: int = 0
    learned: int = 0
    mixed: int = 0
    engine: int = 0
    late: int = 0
    """The service was too slow: the engine's order."""
    failed: int = 0
    """The service was down, or refused: the engine's order."""
    unlearned: int = 0
    """Clicks on a page that the service never saw."""


class Reranker:
    """Re-ranks by an experiment, as `prepare` makes it, or any other. It may be shared by threads.

    The service decides whose order a page has, by evidence that all clients share. A call that takes longer than `deadline`
    seconds is left behind, and so are calls while `workers` of them hang: the page is the engine's. What went wrong last is
    in `last_error`; each reason is logged once.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        features: Features | None = None,
        deadline: float = 0.15,
        workers: int = 8,
        queue: int = 1000,
        pause: float = 1.0,
    ) -> None:
        self.name = name
        self.features = features or Features()
        self.deadline = deadline
        self.counts = Counts()
        self.last_error: str | None = None
        self._client = client
        self._reasons: set[str] = set()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="feedrank-search")
        self._free = BoundedSemaphore(workers)
        self._lock = Lock()
        self.outbox = Outbox(client.send, self._note, size=queue, pause=pause)

    def rerank(
        self,
        query: str,
        results: Sequence[Result],
        *,
        page: int = 10,
        offset: int = 0,
        unit: str | None = None,
        prediction_id: str | None = None,
        context: Mapping[str, float] | None = None,
    ) -> Reranked:
        """The page to show: places `offset` to `offset + page` of the results, which are in the engine's order.

        `unit` is who searches (a session, a user): the next page goes on with the same order, and one unit's clicks count
        only so much. `prediction_id` is an id of your own, such as the query id of a plugin. `context` are features of the
        query or the user, for a learner with `"context": true`.
        """
        if page < 1 or offset < 0:
            raise ValueError("a page has at least 1 place, and an offset of at least 0")
        engine = [result.id for result in results]
        shown = list(results[offset : offset + page])
        if not shown:
            return Reranked([], Shown(None, [], engine), "engine")
        fallback = Reranked(shown, Shown(None, [one.id for one in shown], engine), "fallback")
        if (wrong := _wrong(engine)) is not None:
            self._note(wrong)
            self._count_lost(late=False)
            return fallback
        request: JSON = {
            "items": self.features.table(query, results),
            "query": query[:2000],
            "top": page,
        }
        request |= {"offset": offset} if offset else {}
        request |= {"features": dict(context)} if context else {}
        request |= {"prediction_id": prediction_id} if prediction_id else {}
        reply = self._within_deadline(
            lambda: self._client.send(self._call(request if unit is None else {**request, "unit": unit})),
            fallback,
        )
        if reply is None:
            return fallback
        return self._page(reply, {result.id: result for result in results}, engine)

    def _call(self, request: dict[str, Any]) -> Call[Prediction]:
        """The call to rank; its numbers are checked, so they are written the fast way: it costs as much as making them."""
        return replace(experiment_requests.experiment_predict(self.name, None, {}), content=encode(request))

    def _page(self, reply: Prediction, results: Mapping[str, Result], engine: list[str]) -> Reranked:
        shown = [entry.key for entry in reply.ranking]
        by = {engine_arm(self.name): "engine", self.name: "learned", None: "mixed"}.get(
            reply.learner, reply.learner or "mixed"
        )
        with self._lock:
            self.counts.pages += 1
            self.counts.engine += by == "engine"
            self.counts.mixed += by == "mixed"
            self.counts.learned += by not in ("engine", "mixed")
        version = (reply.versions or {}).get(self.name, reply.version)
        page = Shown(reply.prediction_id, shown, engine)
        return Reranked([results[id] for id in shown], page, by, version)

    def _within_deadline(self, call: Callable[[], Prediction], fallback: Reranked) -> Prediction | None:
        """The reply, or None (counted) if it does not come in time or is not about these results."""
        if not self._free.acquire(blocking=False):
            self._note("all workers hang: the service does not reply in time")
            self._count_lost(late=True)
            return None
        future: Future[Prediction] = self._pool.submit(call)
        future.add_done_callback(lambda _: self._free.release())
        try:
            reply = future.result(self.deadline)
        except TimeoutError:
            future.cancel()
            self._note(f"the service did not reply within {self.deadline:g} s")
            self._count_lost(late=True)
        except ClientError as error:
            self._note(str(error))
            self._count_lost(late=False)
        else:
            if set(fallback.page.engine).issuperset(entry.key for entry in reply.ranking):
                return reply
            self._note("the service ranked items that it was not given")
            self._count_lost(late=False)
        return None

    def _count_lost(self, *, late: bool) -> None:
        with self._lock:
            self.counts.pages += 1
            self.counts.late += late
            self.counts.failed += not late

    def _note(self, reason: str) -> None:
        with self._lock:
            self.last_error = reason
            first = reason not in self._reasons and len(self._reasons) < MOST_REASONS
            if first:
                self._reasons.add(reason)
        if first:
            log.warning("search %r is not learned from: %s", self.name, reason)

    def clicked(self, page: Reranked | Shown | str, ids: Iterable[str]) -> bool:
        """Clicks as they come, one by one or together, repeated or late; never waits.

        They join the page, and count once its window is over. False if the service never saw the page, or the queue is
        full. A bare prediction id stands for its page.
        """
        prediction_id = self._id(page)
        if prediction_id is None:
            return False
        return self.outbox.put(
            experiment_requests.experiment_clicks(self.name, prediction_id, list(dict.fromkeys(ids)))
        )

    def closed(self, page: Reranked | Shown | str, ids: Iterable[str]) -> bool:
        """All clicks on a page whose visitor is done, none among them, as one event at once; never waits."""
        return self._feedback(page, {"clicks": list(dict.fromkeys(ids))})

    def judged(self, page: Reranked | Shown | str, grades: Mapping[str, float]) -> bool:
        """Grades, 0 or higher, from someone who judged the whole page; never waits."""
        return self._feedback(page, {"relevance": dict(grades)})

    def _feedback(self, page: Reranked | Shown | str, truth: JSON) -> bool:
        prediction_id = self._id(page)
        if prediction_id is None:
            return False
        event = {"prediction_id": prediction_id, **truth}
        return self.outbox.put(experiment_requests.experiment_feedback(self.name, event))

    def _id(self, page: Reranked | Shown | str) -> str | None:
        id = page if isinstance(page, str) else page.prediction_id
        if id is None:
            with self._lock:
                self.counts.unlearned += 1
        return id

    def status(self) -> Experiment:
        """The evidence on the server: `handover` has the shares, `differences` the clicks. Raises `ClientError`."""
        return self._client.experiment(self.name)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all clicks are sent or dropped; whether that was so within `timeout` seconds."""
        return self.outbox.flush(timeout)

    def close(self) -> None:
        """Send what is queued, for at most a second, and let go of the threads; calls that hang are not waited for."""
        self.outbox.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Reranker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _wrong(ids: Sequence[object]) -> str | None:
    """What keeps these ids from being ranked, if anything."""
    if strange := [id for id in ids if not isinstance(id, str) or not id]:
        return f"ids of results are text: {strange[0]!r} is not"
    if len(set(ids)) < len(ids):
        twin = next(id for place, id in enumerate(ids) if id in ids[:place])
        return f"ids of results are unique: {twin!r} is duplicated"
    return None
