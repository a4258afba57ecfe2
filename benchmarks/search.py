"""Search: what re-ranking costs, what clicks of six kinds teach and when it is shown, and LETOR in one online pass.

    python benchmarks/search.py [--data DATA] [--only cost|clicks|hostile|letor]

DATA/letor holds mq2008-S1.txt.gz ... ohsumed-S5.txt.gz (LETOR, from Microsoft Research); without it that part is skipped.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean as mean
from statistics import median
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import httpx
from report import Report, arguments, part, track
from search_users import FEATURES, MODELS, Clicks, Corpus, Search, ndcg
from served import serving

from feedrank.clients import Client, letor, ranking_measures
from feedrank.clients.calls import dumps
from feedrank.clients.search import Features, Reranker, Result, prepare, spec
from feedrank.learners import build
from feedrank.service.experiments.examination import moves
from feedrank.service.experiments.handover import DRAFT, SECOND, Handover
from feedrank.service.experiments.interleave import PLACES, chances, draft, gain

WORDS = [line.split()[0] for line in sorted(sys.stdlib_module_names)]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETS = ("mq2008", "ohsumed")


def page(rng: random.Random, results: int, words: int) -> list[Result]:
    """Results with a title of 8 words and a body of `words`."""
    return [
        Result(
            f"document-{i}",
            30.0 / (i + 1) + rng.random(),
            {
                "title": " ".join(rng.choices(WORDS, k=8)),
                "body": " ".join(rng.choices(WORDS, k=words)),
                "at": 1.7e9 + i,
                "views": i * 7,
            },
        )
        for i in range(results)
    ]


def interleaved(calls: dict[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each call, taken in turns, so that what else the machine does falls on all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name, call in calls.items():
            begun = time.perf_counter()
            call(number)
            times[name].append(1e3 * (time.perf_counter() - begun))
    return times


def cost(report: Report, results: int = 100, words: int = 50, rounds: int = 300) -> None:
    """A page re-ranked, beside the bare HTTP call: the same body, ready, over the same kind of connection."""
    rng = random.Random(0)
    features = Features(text=["title", "body"], freshness="at", popularity="views")
    pages = [page(rng, results, words) for _ in range(20)]
    queries = [" ".join(rng.sample(WORDS, 2)) for _ in pages]
    ready = [
        dumps({"items": features.table(query, listed)}) for query, listed in zip(queries, pages, strict=True)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"sqlite:{folder}/search.db") as served,
        Client(served.url) as client,
        httpx.Client(base_url=served.url, trust_env=False) as bare,
    ):
        prepare(client, "s")
        with Reranker(client, "s", features=features, deadline=10) as reranker:
            for number in range(20):
                shown = reranker.rerank(queries[number], pages[number], page=results)
                reranker.closed(shown, [shown.page.shown[3]])
            reranker.flush()
            calls: dict[str, Callable[[int], object]] = {
                "bare HTTP call, prepared body": lambda i: bare.post(
                    "/v1/learners/s/predict",
                    content=ready[i % 20],
                    headers={"content-type": "application/json"},
                ).raise_for_status(),
                "features alone": lambda i: features.table(queries[i % 20], pages[i % 20]),
                "re-ranked": lambda i: reranker.rerank(queries[i % 20], pages[i % 20], page=results),
            }
            times = interleaved(calls, rounds)
    base = times["bare HTTP call, prepared body"]
    report.text(
        f"## Re-ranking {results} results, titles of 8 and bodies of {words} words, {len(ready[0]):,} bytes\n"
    )
    report.table(
        ["", "median, ms", "best, ms", "ratio of medians", "ratio of best"],
        [
            [
                name,
                f"{median(taken):.2f}",
                f"{min(taken):.2f}",
                f"{median(taken) / median(base):.2f}",
                f"{min(taken) / min(base):.2f}",
            ]
            for name, taken in times.items()
        ],
    )


class Course:
    """One course of searches: the rule of the handover on a learner that is taught by clicks, as the service folds them."""

    def __init__(
        self, searches: list[Search], clicks: Clicks, seed: int, page: int = 10, hostile: float = 0.0
    ) -> None:
        """`hostile` of the searches come from 20 units that click what stands lowest in the engine's order."""
        rng, learner, rule = random.Random(seed), build(spec()), Handover(0.05)
        self.engine: list[float] = []
        self.learned: list[float] = []
        self.shown: list[float] = []
        self.shares: list[float] = []
        for number, search in enumerate(searches):
            table = FEATURES.table(search.query, search.results, NOW)
            engine = [one.id for one in search.results]
            learned = [name for name, _ in learner.predict({"items": table}).ranking]
            mode, drafted = rule.mode(rng.random()), None
            if mode == DRAFT:
                drafted = draft([engine, learned], "search", f"{seed} {number}", page)
            shown = drafted.names if drafted else (learned if mode == SECOND else engine)[:page]
            for values, order in ((self.engine, engine), (self.learned, learned), (self.shown, shown)):
                values.append(ndcg(order, search.grades))
            self.shares.append(rule.shares[1])
            unit = f"bot {number % 20}" if hostile and rng.random() < hostile else str(number)
            places = clicks([search.grades[id] for id in shown], rng)
            if unit.startswith("bot"):
                places = [max(range(len(shown)), key=lambda place: engine.index(shown[place]))]
            if places:
                kept = [i for i, id in enumerate(engine) if id in set(shown)]
                items = {
                    "ids": [engine[i] for i in kept],
                    "columns": table["columns"],
                    "rows": [table["rows"][i] for i in kept],
                }
                clicked = [shown[place] for place in places]
                if rule.may_count(unit):
                    learner.learn({"items": items}, {"relevance": rule.examination.grades(shown, clicked)})
                event: dict[str, Any] = {"unit": unit, "coins": number}
                if drafted:
                    orders = [order[:PLACES] for order in (engine, learned)]
                    Q = chances(orders, len(shown))
                    event["moves"], event["gain"] = moves(Q, shown, clicked), gain(orders, Q, shown, clicked)
                rule.take(event)
        self.alarm, self.exponent = rule.alarm, rule.examination.posterior[0]

    def better_at(self, by: float = 0.02, window: int = 200) -> int | None:
        """The search from which on the learned order was better on average, over `window` searches, for the first time."""
        gains = [a - b for a, b in zip(self.learned, self.engine, strict=True)]
        ends = range(window, len(gains) + 1)
        return next((end for end in ends if mean(gains[end - window : end]) >= by), None)

    def over_at(self) -> int | None:
        """The search from which on the learned order had 90 % of the pages."""
        return next((number for number, share in enumerate(self.shares) if share >= 0.9), None)

    def worst(self, window: int = 500) -> float:
        """The lowest mean of shown minus engine over any `window` searches."""
        gains = [a - b for a, b in zip(self.shown, self.engine, strict=True)]
        return min(mean(gains[i : i + window]) for i in range(0, len(gains) - window + 1, 10))


def taught(
    report: Report, lengths: list[int], models: list[str], searches: int = 1500, seeds: int = 3
) -> None:
    """The engine, the learned order and the pages shown under six click models, for 10 and 50 retrieved."""
    rows: list[list[object]] = []
    for retrieved in lengths:
        corpus = Corpus(retrieved)
        streams = [corpus.searches(searches, seed) for seed in range(seeds)]
        for name in track(models, f"{retrieved} retrieved"):
            courses = [Course(stream, MODELS[name], seed) for seed, stream in enumerate(streams)]
            last = searches // 5
            ends = [
                f"{mean(v for one in courses for v in values(one)[-last:]):.3f}"
                for values in (lambda c: c.engine, lambda c: c.learned, lambda c: c.shown)
            ]
            rows.append(
                [
                    retrieved,
                    name,
                    *ends,
                    " ".join(_at(one.better_at()) for one in courses),
                    " ".join(_at(one.over_at()) for one in courses),
                    f"{mean(one.shares[-1] for one in courses):.2f}",
                    f"{min(one.worst() for one in courses):+.4f}",
                    " ".join(f"{one.exponent:.2f}" for one in courses),
                ]
            )
    report.text(
        f"## Clicks of six kinds, {searches:,} searches of Python's documentation, pages of 10, {seeds} seeds\n"
    )
    report.table(
        [
            "retrieved", "clicks", f"NDCG@10 in the last {searches // 5}: engine", "learned", "shown",
            "better by 0.02 at", "90 % at", "share at the end", "worst 500 searches, shown minus engine",
            "exponent",
        ],
        rows,
    )  # fmt: skip


def attacked(report: Report, searches: int = 1500) -> None:
    """30 % of the searches click at will."""
    stream = Corpus(50).searches(searches, 0)
    rows: list[list[object]] = []
    for name in track(("cascade", "k^-1"), "hostile"):
        course = Course(stream, MODELS[name], 0, hostile=0.3)
        last = searches // 5
        rows.append(
            [
                name,
                *(f"{mean(values[-last:]):.3f}" for values in (course.engine, course.learned, course.shown)),
                f"{course.shares[-1]:.2f}",
                f"{course.worst():+.4f}",
                course.alarm or "none",
            ]
        )
    report.text("## The same with 30 % of the searches from 20 units that click what the engine put last\n")
    report.table(
        [
            "others click by",
            "NDCG@10 in the last fifth: engine",
            "learned",
            "shown",
            "share",
            "worst 500",
            "alarm",
        ],
        rows,
    )


def _at(search: int | None) -> str:
    return "never" if search is None else str(search)


LEARNERS: dict[str, dict[str, Any]] = {
    "slam": {"algorithm": "slam"},
    "minimax-perceptron": {"algorithm": "minimax-perceptron"},
    "listnet": {"algorithm": "listnet"},
    "predtron": {"algorithm": "predtron"},
    "quadratic-surrogate": {"algorithm": "quadratic-surrogate"},
}
GRID = {
    "slam": ("learning_rate", (0.001, 0.01, 0.1, 1.0)),
    "listnet": ("learning_rate", (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)),
    "predtron": ("learning_rate", (1.0,)),
    "quadratic-surrogate": ("regularization", (0.01, 0.1, 1.0, 10.0, 100.0)),
    "minimax-perceptron": ("cutoff", (None, 10)),
}


def one_pass(queries: list[letor.Query], asked: dict[str, Any]) -> ranking_measures.Means:
    """Every list ranked, measured, then learned: what `feedrank rank train` does."""
    learner, means = build({"task": "subset-ranking", **asked}), ranking_measures.Means(10)
    for query in queries:
        means.add(query.ranked(name for name, _ in learner.predict(query.instance).ranking))
        learner.learn(query.instance, {"relevance": query.relevance})
    return means


def passes(report: Report, folder: Path) -> None:
    """Default settings beside the best of all our learners tuned in hindsight."""
    rows: list[list[object]] = []
    for name in SETS:
        queries = [q for number in range(1, 6) for q in letor.read(folder / f"{name}-S{number}.txt.gz")]
        specs = {
            f"{learner}, {field} {setting}, normalize {normalize}": {
                **asked,
                "normalize": normalize,
                field: setting,
            }
            for learner, asked in LEARNERS.items()
            for field, settings in (GRID[learner],)
            for setting in settings
            for normalize in ("none", "list")
        }
        values = {}
        for title, asked in track([("default", {}), *specs.items()], name):
            means = one_pass(queries, asked)
            values[title] = means.of(means.judged)["NDCG@10"]
        ours = values.pop("default")
        best = max(values, key=values.__getitem__)
        rows.append([name, f"{ours:.4f}", f"{values[best]:.4f}", best, f"{values[best] - ours:.4f}"])
    report.text("## One online pass, mean NDCG at 10 over the lists with something relevant\n")
    report.table(["", "default settings", "best in hindsight", "by", "behind"], rows)


def main() -> None:
    parser = arguments(__doc__, "search", "letor")
    parser.add_argument("--only", choices=("cost", "clicks", "hostile", "letor"))
    parser.add_argument("--retrieved", type=int, nargs="+", default=[10, 50], help="results to re-rank")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="click models")
    options = parser.parse_args()
    report = Report("Search", options.out)
    if options.only in (None, "cost"):
        cost(report, rounds=5 if options.quick else 300)
    if options.only in (None, "clicks"):
        little = {"searches": 520, "seeds": 1} if options.quick else {}
        taught(
            report,
            [5] if options.quick else options.retrieved,
            options.models[: 1 if options.quick else None],
            **little,
        )
    if options.only in (None, "hostile"):
        attacked(report, 520 if options.quick else 1500)
    folder = part(options.data, "letor") if options.only in (None, "letor") else None
    if folder is not None:
        passes(report, folder)


if __name__ == "__main__":
    main()
