"""Are experiments right? False verdicts of equal arms at every look, traffic of unequal ones, off-policy coverage.

    python benchmarks/experiment_checks.py [--runs 2000] [--events 400] [--arms 2 3 4 5] [--only PART ...]

PARTs are aa, delays, traffic, history, handover, off-policy, units, confseq.

Runs go side by side as arrays, through the formulas of the service (tests hold the two together).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from time import process_time

import numpy as np
import orjson
from experiment_traffic import MEASURES, TRAFFIC, verdicts
from report import Report, arguments, track

from feedrank.learners.inference.confidence import BETS, log_mixture, lower_bounds
from feedrank.learners.inference.off_policy import BOUNDS
from feedrank.learners.instances import Floats, Ints
from feedrank.service.experiments import plan as plans
from feedrank.service.experiments import verdict
from feedrank.service.experiments.arrivals import Arrivals
from feedrank.service.experiments.handover import BUDGET, MARGIN, STARTS
from feedrank.service.experiments.state import State
from feedrank.service.experiments.watch import NEVER, signs, split_terms, split_verdicts

POWER, CONFIDENCE = 0.8, 0.95
PARTS = ("aa", "delays", "traffic", "history", "handover", "off-policy", "units", "confseq")


def late_answers(rng: np.random.Generator, runs: int, events: int, wait: bool) -> float:
    """Equal arms, the second one's failures reported 150 rounds late: the share of runs that ever give a verdict.

    With `wait` rounds count in the order in which they were served. Without it they count as they are answered, and no
    verdict is given while the arms' rounds are not answered alike (`arrivals`).
    """
    arms, value = rng.integers(2, size=(2, runs, events))
    answered = np.arange(events) + np.where((arms == 1) & (value == 0), 150, 0)
    order = np.argsort(answered, axis=1, kind="stable")
    if wait:
        order = np.broadcast_to(np.arange(events), order.shape)
    own, y = np.take_along_axis(arms, order, axis=1), np.take_along_axis(value, order, axis=1)
    guesses, off = split_terms(y.astype(np.float64), own, (0.5, 0.5))
    gap = guesses[:, :, 0] - guesses[:, :, 1]
    decided = signs(np.where(own == 0, off, -off), gap, 2.0, 1 - CONFIDENCE) != 0
    if not wait:
        passed = np.minimum(np.take_along_axis(answered, order, axis=1), events - 1)
        for run in np.flatnonzero(decided.any(axis=1)):
            served = np.stack([np.cumsum(arms[run] == arm)[passed[run]] for arm in (0, 1)], axis=1)
            replied = np.stack([np.cumsum(own[run] == arm) for arm in (0, 1)], axis=1)
            for t in np.flatnonzero(decided[run]):
                decided[run, t] = not Arrivals(served[t].tolist(), replied[t].tolist()).differ()
    return float(decided.any(axis=1).mean())


def interleaved_values(
    rng: np.random.Generator, measure: str, units: Ints, mean: Floats, arms: int
) -> tuple[str, Floats]:
    """The name of the measure, and its value for every arm: users prefer one arm or another, on the whole all alike."""
    runs, events = units.shape
    tastes = rng.dirichlet(np.full(arms, 0.5), (runs, int(units.max()) + 1))
    own = np.take_along_axis(tastes, units[:, :, None], axis=1)
    if measure == "NDCG":
        return "NDCG loss", MEASURES[measure](rng, 0.5 * (mean[:, :, None] + own))
    chosen = np.minimum((rng.random((runs, events, 1)) > np.cumsum(own, axis=2)).sum(axis=2), arms - 1)
    values = (np.arange(arms) == chosen[:, :, None]).astype(np.float64)
    if measure == "0 or 1":
        return "clicks", values
    return "first click, if any", values * (rng.random((runs, events, 1)) < mean[:, :, None])


def false_verdicts(report: Report, runs: int, events: int, most: Sequence[int]) -> None:
    rows: list[list[object]] = []
    cells = [(method, arms, traffic, measure) for arms in most for method in ("split", "interleave")
             for traffic in TRAFFIC for measure in MEASURES]  # fmt: skip
    for method, arms, traffic, measure in track(cells, "A/A"):
        rng = np.random.default_rng([arms, method == "split", *traffic.encode(), *measure.encode()])
        units, mean = TRAFFIC[traffic](rng, runs, events)
        served, name = None, measure
        if method == "split":
            own = rng.integers(arms, size=(runs, int(units.max()) + 1))
            values, served = MEASURES[measure](rng, mean), np.take_along_axis(own, units, axis=1)
        else:
            name, values = interleaved_values(rng, measure, units, mean, arms)
        rate = float((verdicts(units, values, arms, served) != NEVER).mean())
        rows.append([method, arms, traffic, name, f"{rate:.2%}"])
    head = ["method", "arms", "traffic", "measure", "runs that ever give a verdict (allowed: 5 %)"]
    report.table([f"equal arms, {runs} runs of {events} events: {head[0]}", *head[1:]], rows)


def delays(report: Report, runs: int, events: int) -> None:
    rng = np.random.default_rng(6)
    rows: list[list[object]] = [
        [how, f"{late_answers(rng, runs, events, wait):.2%}"]
        for how, wait in (("counted as answered", False), ("`wait`", True))
    ]
    head = f"equal arms, failures of one arm reported 150 rounds late, {runs} runs of {events} events"
    report.table([head, "runs that ever give a verdict (allowed: 5 %)"], rows)


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
    head = [
        "a true difference of 0.05",
        "units of a test with fixed sample size",
        "multiple of it until half of the runs have a verdict",
    ]
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


REWARDS = np.array([0.3, 0.5, 0.6, 0.35])
TARGETS = {
    "uniform": np.full(4, 0.25),
    "the best item": np.eye(4)[2],
    "mostly the worst": np.array([0.9, 0, 0, 0.1]),
}


class Estimates:
    """`Estimate` of one policy in many runs side by side: rows are c on r, then c on 1 - r."""

    def __init__(self, runs: int, policy: Floats) -> None:
        self.policy, self.n = policy, 0
        self.value = float(policy @ REWARDS)
        self.logs, self.guesses = np.zeros((runs, 4, len(BETS))), np.zeros((runs, 4))
        self.missed = np.zeros(runs, dtype=bool)

    def add(self, p: Floats, chosen: Ints, reward: Floats, q: Floats) -> None:
        row, pi = np.arange(len(p)), self.policy
        w = pi[chosen] / p[row, chosen]
        self.n += 1
        for at, c in enumerate((*BOUNDS, *BOUNDS)):
            own, earned = (q, reward) if at < len(BOUNDS) else (1 - q, 1 - reward)
            capped = np.where(own * pi <= c * p, own, c * p / np.where(pi > 0, pi, 1.0))
            self.guesses[:, at] += capped @ pi
            self.logs[:, at] += np.log1p((w * (earned - capped[row, chosen]) / c)[:, None] * BETS)
        values = self.n * np.array([self.value, self.value, 1 - self.value, 1 - self.value])
        mixture = log_mixture(self.logs, self.guesses - values, (*BOUNDS, *BOUNDS))
        self.missed |= (mixture > np.log(4 / (1 - CONFIDENCE))).any(axis=1)

    def intervals(self) -> Floats:
        """(lower, upper) of every run."""
        each = [
            lower_bounds(logs, guesses, self.n, (*BOUNDS, *BOUNDS), (1 - CONFIDENCE) / 4)
            for logs, guesses in zip(self.logs, self.guesses, strict=True)
        ]
        low = np.array(each)
        return np.clip(np.stack([low[:, :2].max(axis=1), 1 - low[:, 2:].max(axis=1)], axis=1), 0, 1)


def logged_runs(runs: int, events: int, floor: float, seed: int = 3) -> dict[str, Estimates]:
    """A logger that learns: its best item so far, and others at random with `floor`."""
    rng = np.random.default_rng(seed)
    estimates = {name: Estimates(runs, target) for name, target in TARGETS.items()}
    count, total = np.zeros((runs, 4)), np.zeros((runs, 4))
    row = np.arange(runs)
    for _ in range(events):
        overall = (total.sum(axis=1) + 0.5) / (count.sum(axis=1) + 1)
        q = (total + 2 * overall[:, None]) / (count + 2)
        p = np.full((runs, 4), floor / 4)
        p[row, q.argmax(axis=1)] += 1 - floor
        chosen = np.minimum((rng.random((runs, 1)) > np.cumsum(p, axis=1)).sum(axis=1), 3)
        reward = (rng.random(runs) < REWARDS[chosen]).astype(np.float64)
        for estimate in estimates.values():
            estimate.add(p, chosen, reward, q)
        count[row, chosen] += 1
        total[row, chosen] += reward
    return estimates


def off_policy(report: Report, runs: int, events: int) -> None:
    """Three kinds of targets: how often the value leaves the interval at some look, every event being one."""
    rows: list[list[object]] = []
    for floor in track((0.4, 0.02), "off-policy"):
        for name, estimate in logged_runs(runs, events, floor).items():
            widths = np.diff(estimate.intervals(), axis=1)
            covered = 1 - estimate.missed.mean()
            rows.append([f"{floor}", name, f"{covered:.2%}", f"{np.median(widths):.2f}"])
    head = [f"exploration of the logging learner, {runs} runs of {events}", "policy", "covered at all looks"]
    report.table([*head, "width at the end"], rows)


def handovers(report: Report, runs: int, pages: int = 1000) -> None:
    """The rule of `handover` on gains of a stated mean and deviation: how often it hands over within so many drafts."""
    rows: list[list[object]] = []
    rng = np.random.default_rng(7)
    weights = BETS / BETS.sum()
    starts = [start for start in STARTS if start < pages]
    shares = np.array([1 / ((j + 1) * (j + 2)) for j in range(len(STARTS))])
    cash = 1 - shares[: len(starts)].sum()  # later starts are still worth 1
    for deviation in track((0.15, 0.35), "handover"):
        for mean in (0.0125, 0.0, -MARGIN / 2, -MARGIN):
            spread = deviation**2
            draws = rng.random((runs, pages))
            x = np.where(draws < (spread + mean) / 2, 1.0, np.where(draws < spread, -1.0, 0.0))
            capital, balance = np.ones((runs, len(starts), len(BETS))), np.zeros(runs)
            proved = np.zeros(runs, dtype=bool)
            for t in range(pages):
                begun = sum(start <= t for start in starts)
                capital[:, :begun] *= 1 + BETS * (x[:, t, None, None] + MARGIN)
                safety = cash + (capital @ weights) @ shares[: len(starts)]
                balance = np.clip(balance + x[:, t], -2 * BUDGET, BUDGET)
                proved |= (safety >= 20) & (balance >= 0)
            rows.append([deviation, f"{mean:+.4f}", f"{proved.mean():.1%}"])
    head = ["standard deviation of the gain of a page", "its mean: learned minus engine"]
    report.table([*head, f"took over within {pages:,} drafted pages, {runs} runs"], rows)


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
    head = [
        "units",
        "us per event",
        "ms per GET",
        "snapshot, bytes per unit",
        "ms to write it",
        "ms to load it",
    ]
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
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    little = options.quick
    if little:
        options.runs, options.events, options.arms = 4, 30, [2]
    report = Report("Experiments: are they right?", options.out)
    parts: dict[str, Callable[[], None]] = {
        "units": lambda: many_units(report),
        "traffic": lambda: traffic(report, max(2 if little else 40, options.runs // 10)),
        "history": lambda: history(report, max(2 if little else 20, options.runs // 20)),
        "handover": lambda: handovers(report, max(2 if little else 20, options.runs // 5)),
        "confseq": lambda: against_confseq(report),
        "delays": lambda: delays(report, options.runs, options.events),
        "aa": lambda: false_verdicts(report, options.runs, options.events, options.arms),
        "off-policy": lambda: off_policy(report, options.runs, options.events),
    }
    for name, part in parts.items():
        if name in options.only:
            part()


if __name__ == "__main__":
    main()
