"""Whether `min_precision` keeps its promise, and how much it decides.

    python benchmarks/assurance.py --runs 2000 [--account]

Simulated streams: a prediction has a certainty c, uniform in [0, 1], and is wrong with chance e(c) = 2 a (1 - c)^k; a is
uniform in [0.1, 0.35], k in [1.5, 5]. A run breaks the promise if, at any moment from its 100th decision on, the mean
chance of a mistake of what it has decided is above 1 - precision; with --account, if
its mistakes, judged or not, are ever more than its account allows. Beside it: the share that a threshold would decide that
was chosen in hindsight on one half of the stream for the same precision, and used on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from report import Report, arguments

from feedrank.learners.inference.assurance import AUDIT, DECIDED, START, Assurance
from feedrank.learners.instances import Floats

FIRST = 100
# Of a mistake: by what it is on a quiet stream, the certainty, and the share of the stream that has passed.
Chance = Callable[[float, float, float], float]
Judges = Callable[[str, float], bool]


class Design(NamedTuple):
    """What happens to the chances, who is judged, after how many other predictions, and what the promise does not cover."""

    chance: Chance = lambda e, c, at: e
    judges: Judges = lambda kind, c: True
    late: int = 0


DESIGNS = {
    "i.i.d.": Design(),
    "slow drift: chances double": Design(lambda e, c, at: e * (1 + at)),
    "drift: harder from the half on": Design(lambda e, c, at: e + 0.25 * (1 - c) + 0.02 if at >= 0.5 else e),
    "label noise: 2 % of the truths": Design(lambda e, c, at: e + 0.02),
    "judged 50 predictions later": Design(late=50),
    "only the less certain are answered": Design(judges=lambda kind, c: c < 0.8),
    "decisions are never judged": Design(judges=lambda kind, c: kind != DECIDED),
    "breaks at the half: every second wrong": Design(lambda e, c, at: 0.5 if at >= 0.5 else e),
}


class Run(NamedTuple):
    """Shares of the stream, and whether the promise was broken."""

    decided: float
    hindsight: float
    broken: bool
    late_share: float
    late_hindsight: float


def run(name: str, n: int, precision: float, account: bool, seed: int) -> Run:
    """One stream."""
    design, rng, record = DESIGNS[name], np.random.default_rng(seed), Assurance.new(precision, account)
    a, k = rng.uniform(0.1, 0.35), rng.uniform(1.5, 5)
    sure, luck, draws = rng.random((3, n))
    decided, sums, count, mistakes, broken = np.zeros(n, dtype=bool), 0.0, 0, 0, False
    wrong = np.zeros(n, dtype=bool)
    waiting: list[tuple[str, float, bool]] = []
    opened = {DECIDED: 0, AUDIT: 0}
    for t in range(n):
        c = float(sure[t])
        e = min(0.95, design.chance(2 * a * (1 - c) ** k, c, t / n))
        wrong[t] = luck[t] < e
        kind = record.kind(c, float(draws[t]), opened[DECIDED], opened[AUDIT])
        if kind == DECIDED:
            decided[t] = True
            sums += e
            count += 1
            mistakes += int(wrong[t])
            if account:
                broken = broken or mistakes > (1 - precision) * count + (record.pauses + 1) * START
            else:
                broken = broken or (count >= FIRST and sums > (1 - precision) * count)
        if kind in opened:
            opened[kind] += 1
        if design.judges(kind, c):
            waiting.append((kind, c, bool(wrong[t])))
        if len(waiting) > design.late:
            kind, c, mistake = waiting.pop(0)
            if kind in opened:
                opened[kind] -= 1
            record.judge(kind, c, not mistake)
    half = slice(n // 2, None)
    return Run(
        float(decided.mean()),
        hindsight(sure, wrong, precision),
        broken,
        float(decided[half].mean()),
        hindsight(sure[half], wrong[half], precision),
    )


def hindsight(sure: Floats, wrong: Floats, precision: float) -> float:
    """The share above a threshold of the other half, both ways."""
    shares = []
    for fit, use in ((0, 1), (1, 0)):
        order = np.argsort(-sure[fit::2])
        mistakes = wrong[fit::2][order].cumsum()
        enough = np.flatnonzero(mistakes <= (1 - precision) * np.arange(1, len(order) + 1))
        threshold = sure[fit::2][order][enough[-1]] if len(enough) else np.inf
        shares.append(float((sure[use::2] >= threshold).mean()))
    return sum(shares) / 2


def main() -> None:
    parser = arguments(__doc__, "assurance")
    parser.add_argument("--runs", type=int, default=200, help="streams of each design")
    parser.add_argument("--events", type=int, default=3000, help="predictions of a stream")
    parser.add_argument("--precision", type=float, default=0.95)
    parser.add_argument("--account", action="store_true", help="by account instead of by proof")
    options = parser.parse_args()
    runs_each, events = (2, 200) if options.quick else (options.runs, options.events)
    report = Report("The promise of min_precision", options.out)
    rows = []
    with ProcessPoolExecutor() as pool:
        for name in DESIGNS:
            one = partial(run, name, events, options.precision, options.account)
            runs = list(pool.map(one, range(runs_each), chunksize=10))
            share, best, broken, late, late_best = np.array(runs, dtype=np.float64).mean(axis=0)
            shares = [
                f"{part / whole:.2f}" if whole > 0.01 else ""
                for part, whole in ((share, best), (late, late_best))
            ]
            rows.append([name, f"{100 * broken:.1f} %", f"{100 * share:.1f} %", *shares])
    report.text(f"{runs_each} streams of {events} predictions, precision {options.precision:g}.")
    report.table(["design", "promise broken", "decided", "of hindsight", "of it, second half"], rows)


if __name__ == "__main__":
    main()
