"""Search: what re-ranking costs, what clicks teach, and one online pass over MQ2008 and OHSUMED.

    python benchmarks/search.py [--data DATA] [--only cost|clicks|letor]

DATA/letor holds mq2008-S1.txt.gz ... ohsumed-S5.txt.gz (LETOR, from Microsoft Research); without it that part is skipped.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import httpx
from report import Report, arguments, part, track
from served import serving

from feedrank.clients import Client, letor, measures
from feedrank.clients.requests import dumps
from feedrank.clients.search import Evidence, Features, Reranker, Result, clicks, spec
from feedrank.clients.search.simulator import World, run, worth
from feedrank.embedded import Embedded
from feedrank.learners import build

WORDS = [line.split()[0] for line in sorted(sys.stdlib_module_names)]
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
        dumps({"items": features.items(query, found)}) for query, found in zip(queries, pages, strict=True)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"sqlite:{folder}/search.db") as served,
        Client(served.url) as client,
        httpx.Client(base_url=served.url, trust_env=False) as bare,
    ):
        client.create("s", spec())
        with Reranker(client, "s", features=features, deadline=10) as reranker:
            for number in range(20):
                shown = reranker.rerank(queries[number], pages[number])
                reranker.clicked(shown, [shown.page.shown[3]])
            calls: dict[str, Callable[[int], object]] = {
                "bare HTTP call, its body ready": lambda i: bare.post(
                    "/v1/learners/s/predict",
                    content=ready[i % 20],
                    headers={"content-type": "application/json"},
                ).raise_for_status(),
                "features alone": lambda i: features.items(queries[i % 20], pages[i % 20]),
                "re-ranked": lambda i: reranker.rerank(queries[i % 20], pages[i % 20]),
            }
            times = interleaved(calls, rounds)
    base = times["bare HTTP call, its body ready"]
    report.text(
        f"## Re-ranking {results} results, titles of 8 and bodies of {words} words, {len(ready[0]):,} bytes\n"
    )
    report.table(
        ["", "median, ms", "best, ms", "median over the bare call's", "best over best"],
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


def learned(seed: int, asked: dict[str, Any], naive: bool, searches: int) -> float:
    """The worth of the learned order in the last quarter, from clicks on the engine's pages alone."""
    world, learner = World(seed), build(asked)
    values = []
    for _ in range(searches):
        search = world.search()
        items = {"items": world.features.items(search.query, search.results)}
        engine = [one.id for one in search.results]
        values.append(worth([name for name, _ in learner.predict(items).ranking], search.truth))
        clicked = world.clicks(engine, search.truth)
        truth = {"relevance": clicks.naive(engine, clicked)} if naive else {"clicks": clicked}
        learner.learn(items, truth, served={"ranking": engine})
    return mean(values[-searches // 4 :])


READINGS: dict[str, tuple[dict[str, Any], bool]] = {
    "naive clicks": (spec(), True),
    "skip-above": (spec(None), False),
    "inverse propensities (ours)": (spec(), False),
    "inverse propensities, the preset's learner": (spec(normalize="list", algorithm="listnet"), False),
}


def taught(report: Report, searches: int = 1000, seeds: int = 3) -> None:
    """What the readings of clicks learn from biased pages, and what the cold start costs and brings."""
    engine = mean(
        worth([one.id for one in search.results], search.truth)
        for seed in range(seeds)
        for world in (World(seed),)
        for search in (world.search() for _ in range(searches))
    )
    rows: list[list[object]] = [["the engine", f"{engine:.3f}"]]
    for name, (asked, naive) in track(list(READINGS.items()), "clicks"):
        rows.append([name, f"{mean(learned(seed, asked, naive, searches) for seed in range(seeds)):.3f}"])
    report.text(f"## Clicks on the engine's pages, {searches} searches, {seeds} worlds: the learned order\n")
    report.table(["", "share of the best order's clicks"], rows)
    rows = []
    for skill in track((0.0, 0.3, 0.7, 1.0), "cold start"):
        shown, theirs, last, share = [], [], [], []
        for seed in (1, 2):
            world, evidence = World(seed, skill=skill), Evidence()
            with (
                tempfile.TemporaryDirectory() as folder,
                Client("http://embedded", transport=Embedded(f"sqlite:{folder}/s.db")) as client,
                Reranker(client, "s", features=world.features, deadline=60, evidence=evidence) as reranker,
            ):
                client.create("s", spec())
                values = run(world, reranker, 400)
            shown += [one for one, _ in values]
            theirs += [one for _, one in values]
            last += [one for one, _ in values[-100:]]
            share.append(evidence.share)
        rows.append(
            [skill, f"{mean(theirs):.4f}", f"{mean(shown):.4f}", f"{mean(last):.4f}", f"{mean(share):.3f}"]
        )
    report.text("## Cold start: the page shown, 400 searches, two worlds, through the service\n")
    report.table(
        ["the engine's skill", "engine", "shown", "last 100", "share of learned pages by then"], rows
    )


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


def one_pass(queries: list[letor.Query], asked: dict[str, Any]) -> measures.Means:
    """Every list ranked, measured, then learned: what `feedrank rank train` does."""
    learner, means = build({"task": "subset-ranking", **asked}), measures.Means(10)
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
    parser.add_argument("--only", choices=("cost", "clicks", "letor"))
    options = parser.parse_args()
    report = Report("Search", options.out)
    if options.only in (None, "cost"):
        cost(report)
    if options.only in (None, "clicks"):
        taught(report)
    folder = part(options.data, "letor") if options.only in (None, "letor") else None
    if folder is not None:
        passes(report, folder)


if __name__ == "__main__":
    main()
