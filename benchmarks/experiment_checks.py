"""Are experiments right? False verdicts of equal arms at every look, traffic of unequal ones, off-policy coverage.

    python benchmarks/experiment_checks.py [--runs 2000] [--events 400] [--only aa traffic history off-policy units confseq]

Runs go side by side as arrays, through the formulas of the service (a test holds the two together). `--only` names parts.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from time import process_time

import numpy as np
import orjson
from experiment_traffic import MEASURES, TRAFFIC, verdicts
from report import Report, arguments, track

from feedrank.learners.inference.confidence import BETS, Floats, lower_bounds
from feedrank.learners.inference.off_policy import LoggedChoice, RunningGuess, ValueEstimate
from feedrank.service.experiments import plan as plans
from feedrank.service.experiments import verdict
from feedrank.service.experiments.state import State
from feedrank.service.experiments.watch import NEVER, split_verdicts

POWER, CONFIDENCE = 0.8, 0.95
PARTS = ("aa", "traffic", "history", "off-policy", "units", "confseq")


def late_answers(rng: np.random.Generator, runs: int, events: int, wait: bool) -> float:
    """Equal arms, the second one's failures reported 150 rounds late: the share of runs that ever give a verdict."""
    decided = 0
    definition = {"arms": ["a", "b"], "measure": "reward", **({"wait": 200} if wait else {})}
    spec = {"task": "multiclass", "algorithm": "predtron", "loss": "zero-one"}
    plan = plans.read("late", definition, [spec] * 2)
    for _ in range(runs):
        arm, value = rng.integers(2, size=events), rng.integers(2, size=events)
        answered = np.arange(events) + np.where((arm == 1) & (value == 0), 150.0, 0.0)
        state, told = State.new(plan), 0
        for t in np.argsort(answered, kind="stable"):
            passed = arm[told : int(answered[t]) + 1]
            told = max(told, int(answered[t]) + 1)
            state.apply(plan, {
                "kind": "feedback", "arm": int(arm[t]), "value": float(value[t]), "at": float(answered[t]),
                "served_at": float(t), "served": [int((passed == 0).sum()), int((passed == 1).sum())],
            })  # fmt: skip
            # Solving for the intervals takes a millisecond: only where the arms look different enough to matter.
            if (
                state.events % 5 == 0
                and _apart(state)
                and verdict.report(plan, state)["verdict"] != verdict.UNDECIDED
            ):
                decided += 1
                break
    return decided / runs


def _apart(state: State) -> bool:
    tallies = [(tally.total / tally.rounds, tally.rounds) for tally in state.arms if tally.rounds]
    if len(tallies) < 2:
        return False
    (a, n), (b, m) = tallies
    return abs(a - b) * np.sqrt(n * m / (n + m)) > 1.0


def false_verdicts(report: Report, runs: int, events: int) -> None:
    rows: list[list[object]] = []
    cells = [(method, arms, traffic, measure) for method in ("split", "interleave") for arms in (2, 3, 5)
             for traffic in TRAFFIC for measure in MEASURES]  # fmt: skip
    rng = np.random.default_rng(0)
    for method, arms, traffic, measure in track(cells, "A/A"):
        if method == "interleave" and measure != "0 or 1":
            continue
        units, mean = TRAFFIC[traffic](rng, runs, events)
        if method == "split":
            own = rng.integers(arms, size=(runs, int(units.max()) + 1))
            values, served = MEASURES[measure](rng, mean), np.take_along_axis(own, units, axis=1)
        else:
            # Whose item is clicked: users prefer one arm or another, on the whole all arms alike.
            tastes = rng.dirichlet(np.full(arms, 0.5), (runs, int(units.max()) + 1))
            chance = np.cumsum(np.take_along_axis(tastes, units[:, :, None], axis=1), axis=2)
            chosen = np.minimum((rng.random((runs, events, 1)) > chance).sum(axis=2), arms - 1)
            values, served = (np.arange(arms) == chosen[:, :, None]).astype(np.float64), None
        rate = float((verdicts(units, values, arms, served) != NEVER).mean())
        rows.append([method, arms, traffic, measure if served is not None else "clicks", f"{rate:.2%}"])
    few = max(10, runs // 20)
    for wait in (False, True):
        rate = late_answers(rng, few, events, wait)
        how = "`wait`" if wait else "counted as answered"
        rows.append(["split", 2, f"failures of one arm late, {how}, {few} runs", "0 or 1", f"{rate:.2%}"])
    head = ["method", "arms", "traffic", "measure", "ever decide (allowed: 5 %)"]
    report.table([f"A/A, {runs} runs of {events} events: {head[0]}", *head[1:]], rows)


def fixed_horizon(a: float, b: float, power: float = POWER, alpha: float = 0.05) -> int:
    """Units of both arms together that the classical two-sided z test of two proportions needs."""
    z = NormalDist().inv_cdf
    spread = a * (1 - a) + b * (1 - b)
    return int(np.ceil(2 * (z(1 - alpha / 2) + z(power)) ** 2 * spread / (a - b) ** 2))


def traffic(report: Report, runs: int) -> None:
    rows: list[list[object]] = []
    rng = np.random.default_rng(1)
    for low in track((0.05, 0.2, 0.5), "traffic"):
        needed = fixed_horizon(low, low + 0.05)
        in_first = rng.random((runs, 4 * needed)) < 0.5
        y = (rng.random(in_first.shape) < np.where(in_first, low + 0.05, low)).astype(np.float64)
        middle, most = np.quantile(split_verdicts(y, in_first), (0.5, POWER)) / needed
        rows.append([f"{low:.2f} against {low + 0.05:.2f}", needed, f"{middle:.2f}", f"{most:.2f}"])
    head = ["a true difference of 0.05", "units, fixed horizon", "times as many until half have a verdict"]
    report.table([*head, f"until {POWER:.0%} have"], rows)


def history(report: Report, runs: int) -> None:
    """Users with a past: their value before the experiment is known, and explains much of their value in it."""
    rows: list[list[object]] = []
    rng = np.random.default_rng(2)
    for noise in track((0.05, 0.1, 0.2), "history"):
        in_first = rng.random((runs, 4000)) < 0.5
        taste = np.clip(rng.normal(0.5, 0.2, in_first.shape), 0, 1)
        y = np.clip(taste + rng.normal(0, noise, taste.shape) + 0.03 * in_first, 0, 1)
        x = np.clip(taste + rng.normal(0, noise, taste.shape), 0, 1)
        plain, known = (np.median(split_verdicts(y, in_first, x=each)) for each in (None, x))
        correlation = np.corrcoef(x.ravel()[:50_000], y.ravel()[:50_000])[0, 1]
        rows.append([f"{correlation:.2f}", f"{plain:.0f}", f"{known:.0f}", f"{known / plain:.2f}"])
    head = ["correlation of before and now", "units without `before`, median", "with it", "ratio"]
    report.table(head, rows)


def off_policy(report: Report, runs: int, events: int) -> None:
    """A logger that learns, three kinds of targets: how often the value leaves the interval at some look."""
    rows: list[list[object]] = []
    rng = np.random.default_rng(3)
    rewards = np.array([0.3, 0.5, 0.6, 0.35])
    targets = {
        "uniform": np.full(4, 0.25),
        "the best item": np.eye(4)[2],
        "mostly the worst": np.array([0.9, 0, 0, 0.1]),
    }
    for floor in (0.4, 0.02):
        missed, widths = dict.fromkeys(targets, 0), {name: [] for name in targets}
        for _ in track(range(runs), f"off-policy, floor {floor}"):
            guess, estimates = RunningGuess(), {name: ValueEstimate() for name in targets}
            miss = dict.fromkeys(targets, False)
            draws = rng.random((2, events))
            for t in range(events):
                q = [guess(str(a)) for a in range(4)]
                p = np.full(4, floor / 4)
                p[int(np.argmax(q))] += 1 - floor
                chosen = min(int((draws[0, t] > np.cumsum(p)).sum()), 3)
                reward = float(draws[1, t] < rewards[chosen])
                for name, target in targets.items():
                    estimates[name].add(LoggedChoice(p.tolist(), chosen, reward), target.tolist(), q)
                guess.add(str(chosen), reward)
                if t % 20 == 19:
                    for name, target in targets.items():
                        low, high = estimates[name].interval(1 - CONFIDENCE)
                        miss[name] |= not low <= float(target @ rewards) <= high
            for name, estimate in estimates.items():
                missed[name] += miss[name]
                low, high = estimate.interval(1 - CONFIDENCE)
                widths[name].append(high - low)
        for name in targets:
            covered = 1 - missed[name] / runs
            rows.append([f"{floor}", name, f"{covered:.2%}", f"{np.median(widths[name]):.2f}"])
    head = [
        f"exploration of the logger, {runs} runs of {events}",
        "policy",
        "covered at all looks",
        "width at the end",
    ]
    report.table(head, rows)


def many_units(report: Report, units: int = 100_000) -> None:
    spec = {"task": "multiclass", "algorithm": "predtron", "loss": "zero-one"}
    plan = plans.read("units", {"arms": ["a", "b"], "measure": "reward"}, [spec] * 2)
    state, rng = State.new(plan), np.random.default_rng(4)
    values = rng.random(units).tolist()
    begun = process_time()
    for unit, value in enumerate(values):
        state.apply(plan, {"kind": "feedback", "arm": unit % 2, "value": value, "unit": unit * 2_654_435_761})
    took, begun = process_time() - begun, process_time()
    verdict.report(plan, state)
    reported, begun = process_time() - begun, process_time()
    data = orjson.dumps(state.to_json())
    dumped, begun = process_time() - begun, process_time()
    State.from_json(plan, orjson.loads(data))
    loaded = process_time() - begun
    rows: list[list[object]] = [[
        f"{units:,}", f"{took / units * 1e6:.0f}", f"{reported * 1e3:.1f}", f"{len(data) / units:.0f}",
        f"{dumped * 1e3:.0f}", f"{loaded * 1e3:.0f}",
    ]]  # fmt: skip
    head = ["units", "us an event", "ms a GET", "snapshot, bytes a unit", "ms to write it", "ms to load it"]
    report.table(head, rows)


def against_confseq(report: Report) -> None:
    """The same values through the betting sequence of the `confseq` package, which covers one fixed mean."""
    try:
        from confseq.betting import betting_cs
    except ImportError:
        report.text("`confseq` is not installed: skipped.\n")
        return
    rng = np.random.default_rng(5)
    rows: list[list[object]] = []
    for mean in (0.5, 0.1):
        y = (rng.random(400) < mean).astype(np.float64)
        low, high = betting_cs(y, alpha=0.05)
        capital_low, capital_high = _own_interval(y)
        rows.append([mean, f"[{low[-1]:.3f}, {high[-1]:.3f}]", f"[{capital_low:.3f}, {capital_high:.3f}]"])
    report.table(["mean of 400 values", "confseq, one fixed mean", "ours, any drift"], rows)


def _own_interval(y: Floats, alpha: float = 0.05) -> tuple[float, float]:
    """A running mean in [0, 1] by our sequences: guesses are the means so far."""
    n = np.arange(len(y))
    guesses = (np.concatenate([[0.0], np.cumsum(y)[:-1]]) + 0.5) / (n + 1)
    bounds = []
    for side in (1, -1):
        logs = np.log1p(np.outer(side * (y - guesses), BETS)).sum(axis=0)[None]
        bounds += lower_bounds(logs, side * guesses.sum(), len(y), 1.0, alpha / 2)
    return bounds[0], -bounds[1]


def main() -> None:
    parser = arguments(__doc__, "experiment_checks")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--events", type=int, default=400)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    report = Report("Experiments: are they right?", options.out)
    parts: dict[str, Callable[[], None]] = {
        "units": lambda: many_units(report),
        "traffic": lambda: traffic(report, max(40, options.runs // 10)),
        "history": lambda: history(report, max(20, options.runs // 20)),
        "confseq": lambda: against_confseq(report),
        "aa": lambda: false_verdicts(report, options.runs, options.events),
        "off-policy": lambda: off_policy(report, options.runs, options.events),
    }
    for name, part in parts.items():
        if name in options.only:
            part()


if __name__ == "__main__":
    main()
