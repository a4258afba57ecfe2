"""Is the handover safe? Challengers that never learn: the engine's order disturbed, or one that turns bad later.

    python benchmarks/search_safety.py [--searches 1000] [--seeds 3]

A challenger sorts the places k of the engine by log k + noise of a stated deviation; `turns` is nearly equal for the first
third and disturbed after it. `equal` has both orders disturbed alike. Searches are those of search.py, by other seeds;
visitors click by k^-1 and cascade.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import log
from statistics import fmean as mean
from typing import Any

from report import Report, arguments, track
from search_users import MODELS, Clicks, Corpus, Search, ndcg

from feedrank.service.experiments.handover import DRAFT, SECOND, Handover
from feedrank.service.experiments.interleave import PLACES, WIDE, chances, draft, gain


def disturbed(order: list[str], rng: random.Random, deviation: float) -> list[str]:
    """The order by log of the place, and noise."""
    keys = {name: log(place) + deviation * rng.gauss(0, 1) for place, name in enumerate(order, 1)}
    return sorted(order, key=keys.__getitem__)


# Of the engine's order, and of the challenger's as a function of how much of the course is over.
CHALLENGERS: dict[str, tuple[float, Callable[[float], float]]] = {
    "equal, 0.15": (0.15, lambda _: 0.15),
    "equal, 0.5": (0.5, lambda _: 0.5),
    "disturbed by 0.15": (0.0, lambda _: 0.15),
    "disturbed by 0.3": (0.0, lambda _: 0.3),
    "disturbed by 0.6": (0.0, lambda _: 0.6),
    "disturbed by 1.5": (0.0, lambda _: 1.5),
    "turns, 0.1 to 1": (0.0, lambda over: 0.1 if over < 1 / 3 else 1.0),
}


class Course:
    """The rule on one challenger: what was lost, what drafted pages said, and whether it was handed over."""

    def __init__(self, searches: list[Search], clicks: Clicks, seed: int, challenger: str) -> None:
        rng, rule = random.Random(seed), Handover(0.05)
        own, other = CHALLENGERS[challenger]
        self.shown: list[float] = []
        self.behind: list[float] = []
        self.gains: list[float] = []
        self.proved = False
        for number, search in enumerate(searches):
            listed = [one.id for one in search.results]
            engine = disturbed(listed, rng, own)
            second = disturbed(listed, rng, other(number / len(searches)))
            mode, drafted = rule.mode(rng.random()), None
            if mode == DRAFT:
                drafted = draft([engine, second], "safety", f"{seed} {number}", PLACES)
            page = drafted.names if drafted else (second if mode == SECOND else engine)[:PLACES]
            level = ndcg(engine, search.grades)
            self.shown.append(ndcg(page, search.grades) - level)
            self.behind.append(ndcg(second, search.grades) - level)
            clicked = [page[place] for place in clicks([search.grades[id] for id in page], rng)]
            if not clicked:
                continue
            event: dict[str, Any] = {}
            if drafted:
                orders = [order[:PLACES] for order in (engine, second)]
                event["gain"] = gain(orders, chances(orders, len(page)), page, clicked)
                self.gains.append(WIDE * event["gain"])
            rule.take(event)
            self.proved = self.proved or rule.proved

    def worst(self, window: int = 500) -> float:
        """The lowest mean of shown minus engine over any `window` searches."""
        return min(mean(self.shown[i : i + window]) for i in range(0, len(self.shown) - window + 1, 10))


def main() -> None:
    parser = arguments(__doc__, "search_safety")
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.quick:
        options.searches, options.seeds = 520, 1
    report = Report("Search: is the handover safe?", options.out)
    rows: list[list[object]] = []
    for retrieved in (5,) if options.quick else (10, 50):
        corpus = Corpus(retrieved)
        streams = [corpus.searches(options.searches, 900 + seed) for seed in range(options.seeds)]
        for challenger in track(CHALLENGERS, f"{retrieved} retrieved"):
            courses = [
                Course(stream, MODELS[name], seed, challenger)
                for seed, stream in enumerate(streams)
                for name in ("k^-1", "cascade")
            ]
            rows.append(
                [
                    retrieved,
                    challenger,
                    f"{mean(v for one in courses for v in one.behind):+.4f}",
                    f"{mean(v for one in courses for v in one.gains):+.4f}",
                    f"{sum(one.proved for one in courses)} of {len(courses)}",
                    f"{mean(one.worst() for one in courses):+.4f}",
                    f"{min(one.worst() for one in courses):+.4f}",
                ]
            )
    report.table(
        [
            "retrieved", "challenger", "its NDCG@10 minus the engine's", "gain of a drafted page, DCG",
            "handed over", "worst 500 searches, shown minus engine: mean", "lowest",
        ],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
