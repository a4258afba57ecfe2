"""Confidence intervals of a split beside other packages: width at the end, and how often they hold at every look.

    python benchmarks/experiment_peers.py --confseq PYTHON --spotify PYTHON --expan PYTHON

Every package has an environment of its own, since their requirements do not go together; PYTHON is its interpreter. What is
left out is said so. In these environments:

    confseq     pip install "numpy==1.26.*" "scipy<1.14" "pandas<3" "matplotlib<3.10" multiprocess
                pip install scikit-build cmake ninja pybind11 setuptools wheel
                pip install --no-build-isolation --no-deps confseq, with Boost's headers (Debian: libboost-dev)
    spotify     pip install spotify-confidence
    expan       pip install expan; its Bayesian part, which needs PyStan 2, is not used

Every run has units of two arms, by coin, with values 0 or 1, the same for all packages, and a look after every twentieth
part of the units. Covered: no look had an interval without the true difference. "For one look" is a test that was not made
for more than one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

LOOKS = 20
CASES = {"0.50 in both arms": (0.5, 0.5), "0.20 and 0.25": (0.2, 0.25), "0.02 and 0.03": (0.02, 0.03)}
Array = np.ndarray[Any, np.dtype[Any]]
Intervals = list[list[tuple[float, float]]]  # of each run, at each look, second arm minus first


def ends(units: int) -> list[int]:
    """The number of units at each look."""
    return [units * (look + 1) // LOOKS for look in range(LOOKS)]


def players(arms: Array, values: Array) -> Intervals:
    """Ours: the interval that GET shows."""
    from feedrank.service.experiments import plan as plans
    from feedrank.service.experiments.bounds import bounds, pair_alpha
    from feedrank.service.experiments.levels import UnitLevels

    spec = {"task": "binary", "labels": ["no", "yes"]}
    plan = plans.read("peers", {"arms": ["a", "b"], "measure": "reward"}, [spec, spec])
    shown = []
    for own, results in zip(arms.tolist(), values.tolist(), strict=True):
        levels, looks, done = UnitLevels(2, (0.5, 0.5)), [], set(ends(len(own)))
        for place, (arm, value) in enumerate(zip(own, results, strict=True), 1):
            levels.add(None, arm, [value])
            if place in done:
                (bound,) = bounds(plan, levels, pair_alpha(plan))
                looks.append((-bound.upper, -bound.lower))
        shown.append(looks)
    return shown


def confseq(arms: Array, values: Array) -> Intervals:
    """The hedged betting sequence for a mean, of the values weighed by the chance of their arm."""
    from confseq.betting import betting_cs

    shown = []
    for own, results in zip(arms, values, strict=True):
        x = ((2 * own - 1) * results * 2 + 2) / 4
        low, high = betting_cs(x, alpha=0.05, breaks=400, parallel=False, running_intersection=False)
        shown.append([(4 * low[end - 1] - 2, 4 * high[end - 1] - 2) for end in ends(len(own))])
    return shown


def spotify(arms: Array, values: Array, sequential: bool = True) -> Intervals:
    """ZTest with group-sequential bounds; without them, the same test as if each look were the only one."""
    import pandas as pd
    import spotify_confidence

    shown = []
    for own, results in zip(arms, values, strict=True):
        rows = [
            {
                "look": look,
                "arm": "ab"[arm],
                "count": int((own[:end] == arm).sum()),
                "sum": float(results[:end][own[:end] == arm].sum()),
                "units": len(own),
            }
            for look, end in enumerate(ends(len(own)), 1)
            for arm in (0, 1)
        ]
        test = spotify_confidence.ZTest(
            pd.DataFrame(rows),
            numerator_column="sum",
            numerator_sum_squares_column=None,
            denominator_column="count",
            categorical_group_columns="arm",
            ordinal_group_column="look",
            interval_size=0.95,
        )
        more = {"final_expected_sample_size_column": "units"} if sequential else {}
        found = test.difference(level_1="a", level_2="b", groupby="look", **more)
        name = "adjusted ci" if sequential else "ci"
        shown.append(list(zip(found[f"{name}_lower"].tolist(), found[f"{name}_upper"].tolist(), strict=True)))
    return shown


def fixed(arms: Array, values: Array) -> Intervals:
    """The same package without its sequential bounds."""
    return spotify(arms, values, sequential=False)


def expan(arms: Array, values: Array) -> Intervals:
    """Its group-sequential test: O'Brien and Fleming's spending of the error."""
    stan: Any = ModuleType("pystan")
    stan.StanModel = None
    sys.modules["pystan"] = stan
    import io
    from contextlib import redirect_stdout

    with redirect_stdout(io.StringIO()):
        from expan.core.early_stopping import group_sequential
    shown = []
    for own, results in zip(arms, values, strict=True):
        looks = []
        for end in ends(len(own)):
            each = [results[:end][own[:end] == arm] for arm in (0, 1)]
            found = group_sequential(each[1], each[0], estimated_sample_size=len(own), alpha=0.05)
            bounds = {one["percentile"]: one["value"] for one in found.confidence_interval}
            looks.append((bounds[min(bounds)], bounds[max(bounds)]))
        shown.append(looks)
    return shown


PEERS: dict[str, Callable[[Array, Array], Intervals]] = {
    "confseq": confseq,
    "spotify": spotify,
    "fixed": fixed,
    "expan": expan,
}
NAMES = {
    "feedrank": "feedrank, valid at every look",
    "confseq": "confseq, hedged betting",
    "spotify": "spotify-confidence, group-sequential",
    "fixed": "spotify-confidence, for one look",
    "expan": "expan, group-sequential",
}


def main() -> None:
    if "--as" in sys.argv:
        answer(*sys.argv[sys.argv.index("--as") + 1 :][:2])
        return
    from report import Report, arguments

    parser = arguments(__doc__, "experiment_peers")
    for name in ("confseq", "spotify", "expan"):
        parser.add_argument(f"--{name}", help="the interpreter of its environment")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--units", type=int, default=1000)
    asked = parser.parse_args()
    if asked.quick:
        asked.runs, asked.units = 2, 100
    compare(Report("Intervals of a split beside other packages", asked.out), asked)


def compare(report: Any, asked: argparse.Namespace) -> None:
    """A table of width and coverage."""
    homes = {"confseq": asked.confseq, "spotify": asked.spotify, "fixed": asked.spotify, "expan": asked.expan}
    rows: list[list[object]] = []
    for case, chances in CASES.items():
        rng = np.random.default_rng(11)
        arms = rng.integers(2, size=(asked.runs, asked.units))
        values = (rng.random(arms.shape) < np.array(chances)[arms]).astype(float)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(file := Path(folder) / "runs.npz", arms=arms, values=values)
            for name, title in NAMES.items():
                home = homes.get(name)
                if name == "feedrank":
                    rows.append(row(case, name, players(arms, values), chances))
                elif home:
                    done = subprocess.run(
                        [home, __file__, "--as", name, str(file)],
                        capture_output=True,
                        text=True,
                        check=False,
                    )
                    if done.returncode:
                        rows.append([case, title, *[done.stderr.strip().splitlines()[-1]] * 3])
                    else:
                        rows.append(row(case, name, json.loads(done.stdout), chances))
                else:
                    rows.append([case, title, *["no environment"] * 3])
                print(*rows[-1], flush=True)
    head = [
        f"{asked.runs} runs of {asked.units} units",
        "intervals",
        "covered at all looks",
        "mean width at half",
        "at the end",
    ]
    report.table(head, rows)


def row(case: str, name: str, intervals: Intervals, chances: tuple[float, float]) -> list[object]:
    """Coverage and width of one package."""
    true, table = chances[1] - chances[0], np.array(intervals, dtype=float)
    held = ~(
        (table[:, :, 0] > true) | (table[:, :, 1] < true)
    )  # what cannot be said (not a number) misses nothing
    width = table[:, :, 1] - table[:, :, 0]
    half, last = np.nanmean(width[:, LOOKS // 2 - 1]), np.nanmean(width[:, -1])
    return [case, NAMES[name], f"{held.all(axis=1).mean():.1%}", f"{half:.4f}", f"{last:.4f}"]


def answer(name: str, file: str) -> None:
    """In a peer's own environment: print its intervals."""
    import warnings

    warnings.filterwarnings("ignore")
    runs = np.load(file)
    found = PEERS[name](runs["arms"], runs["values"])
    print(json.dumps([[[float(low), float(high)] for low, high in looks] for looks in found]))


if __name__ == "__main__":
    main()
