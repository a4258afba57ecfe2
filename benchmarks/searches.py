"""Times of the loss-augmented searches, before and after their cheaper exact ways.

python benchmarks/searches.py            lists of 10, 100, 1000 items; sets of 100, 1000, 10000 labels
python benchmarks/searches.py --budget   what a budget on stored examples costs the kernel form
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from report import Report, arguments, track
from scipy.optimize import linear_sum_assignment

from feedrank.learners import build
from feedrank.learners.losses import subsets
from feedrank.learners.losses.rankings import discounts, gains
from feedrank.learners.tasks.multilabel import ErrorSetSize, Hamming, Multilabel, SubsetZeroOne
from feedrank.learners.tasks.permutations import AP, NDCG, Precision


def milliseconds(call: Callable[[], object]) -> float:
    """The median over at least 5 calls and about half a second."""
    call()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < 0.5 and len(times) < 2000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def _ndcg_places(y: np.ndarray, m: int, cutoff: int | None) -> np.ndarray:
    gain = gains(y)
    D = discounts(m) * (np.arange(m) < (cutoff or m))
    return -np.outer(gain / (np.sort(gain)[::-1] @ D), D)


def _precision_places(y: np.ndarray, m: int, k: int) -> np.ndarray:
    return np.outer(y > 0, np.where(np.arange(m) < k, -1.0 / k, 0.0))


def lists(report: Report, lengths: Sequence[int] = (10, 100, 1000)) -> None:
    rows: list[list[object]] = []
    for m in track(lengths, "lists"):
        rng = np.random.default_rng(m)
        t = rng.standard_normal(m)
        binary, graded = (rng.random(m) < 0.2).astype(float), rng.integers(0, 5, m).astype(float)
        binary[0] = 1.0
        cases: list[tuple[str, NDCG | Precision, np.ndarray, Callable[..., np.ndarray], int | None]] = [
            ("NDCG", NDCG(), binary, _ndcg_places, None),
            ("NDCG at 10", NDCG(10), binary, _ndcg_places, 10),
            ("precision at 10", Precision(10), binary, _precision_places, 10),
            ("NDCG", NDCG(), graded, _ndcg_places, None),
            ("NDCG at 10", NDCG(10), graded, _ndcg_places, 10),
        ]
        for name, task, y, places, k in cases:
            plain = partial(_assignment, task, places, t, y, k)
            before, after = milliseconds(plain), milliseconds(partial(task.augmented, y, t))
            grades = 2 if y is binary else 5
            rows.append([m, name, grades, f"{before:.3f}", f"{after:.3f}", f"{before / after:.1f}"])
        rows.append(
            [m, "AP", 2, "no such form", f"{milliseconds(partial(AP().augmented, binary, t)):.3f}", ""]
        )
    report.table(["list", "loss", "grades", "assignment, ms", "ours, ms", "times faster"], rows)


def _assignment(
    task: NDCG | Precision, places: Callable[..., np.ndarray], t: np.ndarray, y: np.ndarray, k: int | None
) -> np.ndarray:
    """Lemma 3 as it stands: the whole matrix, one assignment, the order."""
    items, positions = linear_sum_assignment(
        np.outer(t, task.F(t.size)) + places(y, t.size, k), maximize=True
    )
    order = np.empty(t.size, dtype=np.intp)
    order[positions] = items
    return order


def sets(report: Report, counts: Sequence[int] = (100, 1000, 10_000)) -> None:
    rows: list[list[object]] = []
    general = {
        "Hamming": (Hamming(), subsets.hamming),
        "subset zero-one": (SubsetZeroOne(), subsets.subset_zero_one),
        "error set size": (ErrorSetSize(), subsets.error_set_size),
    }
    for m in track(counts, "sets"):
        rng = np.random.default_rng(m)
        t, y = rng.standard_normal(m), rng.random(m) < 0.1
        for name, (task, f) in general.items():
            before = milliseconds(partial(Multilabel(f).augmented, y, t))
            after = milliseconds(partial(task.augmented, y, t))
            rows.append([m, name, f"{before:.3f}", f"{after:.3f}"])
    report.table(["labels", "loss", "general O(m^2), ms", "ours, ms"], rows)


def budgets(report: Report, rounds: int = 4000) -> None:
    """Two rings of points that only a kernel separates; one stream stands still, in one the labels swap half-way."""
    rows: list[list[object]] = []
    rng = np.random.default_rng(0)
    radius = np.where(rng.random(rounds) < 0.5, 1.0, 2.0)
    angle = rng.uniform(0, 2 * np.pi, rounds)
    points = (radius + 0.3 * rng.standard_normal(rounds))[:, None] * np.stack(
        (np.cos(angle), np.sin(angle)), axis=1
    )
    for budget in track((10, 30, 100, 300, 1000, None), "budgets"):
        mistakes, size, spent = [], 0, 0.0
        for swap in (False, True):
            learner = build({
                "task": "binary", "labels": ["inner", "outer"], "algorithm": "predtron",
                "kernel": "gaussian", "bandwidth": 0.5, "budget": budget,
            })  # fmt: skip
            wrong, start = 0, time.perf_counter()
            for i, (x, r) in enumerate(zip(points, radius, strict=True)):
                outer = (r > 1.5) ^ (swap and i >= rounds // 2)
                wrong += learner.learn({"features": x}, {"label": "outer" if outer else "inner"}).mistake
            spent += time.perf_counter() - start
            mistakes.append(wrong)
            size = learner.nbytes()
        per_round = 1000 * spent / (2 * rounds)
        rows.append([budget or "none", *mistakes, f"{per_round:.3f}", size])
    report.table(
        ["budget", "mistakes", "mistakes if labels are swapped half-way", "ms per round", "bytes"], rows
    )


def main() -> None:
    parser = arguments(__doc__, "searches")
    parser.add_argument("--budget", action="store_true", help="the price of a budget, in place of the times")
    options = parser.parse_args()
    report = Report("Speed of loss-augmented searches, and the effect of a kernel budget", options.out)
    if options.quick:
        lists(report, (10,))
        sets(report, (20,))
        budgets(report, 40)
        return
    for run in (budgets,) if options.budget else (lists, sets):
        run(report)


if __name__ == "__main__":
    main()
