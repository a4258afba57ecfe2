"""Do experiments with `per` name wrong arms? Users who leave, bots, delays, ramps; a look after each unit.

    python benchmarks/experiment_units.py [--runs 2000] [--units 400] [--only SCENE ...]

Each scene makes what users of two arms do. The service's table of units decides what counts in whose window, and the
formulas of its verdict, side by side as arrays, what a look after each unit says. A verdict is false if at some look an arm
is named that has not been better so far, on average over the units that have counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from report import Report, arguments, track

from feedrank.learners.instances import Floats, Ints
from feedrank.service.experiments.per import Rule
from feedrank.service.experiments.ratios import RatioArms
from feedrank.service.experiments.unit_table import UnitTable
from feedrank.service.experiments.watch import signs, split_terms

CONFIDENCE, WINDOW, ROUNDS, SEGMENTS = 0.95, 100.0, 8, 50
Rng = np.random.Generator
# What one unit of an arm does: (seconds after its first exposure, value) of each outcome.
Life = Iterator[tuple[float, float]]


@dataclass(frozen=True)
class Scene:
    """`live(rng, arm, place)` for a unit that comes at `place` of all, from 0 to 1.

    `better(place)` is the sign of the first arm's true lead over the units up to `place`: 0 where arms are equal.
    """

    live: Callable[[Rng, int, float], Life]
    rule: Rule
    better: Callable[[float], int] = lambda place: 0
    ramps: bool = False


def rounds(rng: Rng, chance: float, leave: float = 0.0) -> Life:
    """Some rounds with a chance of success; after each failure the user leaves for good with chance `leave`."""
    for number in range(ROUNDS):
        success = float(rng.random() < chance)
        yield number * 10.0, success
        if not success and rng.random() < leave:
            return


def churn(leave: float) -> Callable[[Rng, int, float], Life]:
    return lambda rng, arm, place: rounds(rng, 0.5, leave if arm else 0.0)


def autocorrelated(rng: Rng, arm: int, place: float) -> Life:
    """Each user has a chance of their own, and all of them have good and bad days."""
    day = 0.5 + 0.3 * np.sin(40 * place)
    return rounds(rng, rng.beta(0.5 + 2 * day, 2.5 - 2 * day))


def heavy(rng: Rng, arm: int, place: float) -> Life:
    """One in ten buys, for an amount without a mean."""
    if rng.random() < 0.1:
        yield 5.0, float(rng.pareto(1.0) + 1)


def bots(rng: Rng, arm: int, place: float) -> Life:
    """One unit in a hundred is a bot that succeeds two hundred times."""
    if rng.random() < 0.01:
        yield from ((float(number) / 4, 1.0) for number in range(200))
    else:
        yield from rounds(rng, 0.3)


def novelty(rng: Rng, arm: int, place: float) -> Life:
    """The second arm is better while it is new, for the first quarter, and worse by half as much from then on."""
    return rounds(rng, 0.4 + (0.0 if not arm else 0.2 if place < 0.25 else -0.1))


def after_novelty(place: float) -> int:
    """0.2 p up to p = 1/4, then 0.05 - 0.1 (p - 1/4): above 0 up to p = 3/4."""
    return -1 if place < 0.75 else 1


def delayed(rng: Rng, arm: int, place: float) -> Life:
    """Failures of the second arm are heard of late, but within the window."""
    for at, value in rounds(rng, 0.5):
        yield at + (29.0 if arm and not value else 0.0), value


def missing(rng: Rng, arm: int, place: float) -> Life:
    """Three in ten outcomes are never heard of."""
    return ((at, value) for at, value in rounds(rng, 0.5) if rng.random() > 0.3)


def drifting(rng: Rng, arm: int, place: float) -> Life:
    """Those who come later are others: the share grows, and with it the chance of success."""
    return rounds(rng, 0.2 + 0.6 * place)


MEAN, ANY, TOTAL = Rule(), Rule("any"), Rule("total", float(ROUNDS))
FIRST_BETTER: Callable[[float], int] = lambda place: 1  # noqa: E731
SCENES = {
    "5 % leave one arm after a failure": Scene(churn(0.05), TOTAL, FIRST_BETTER),
    "10 % leave": Scene(churn(0.1), TOTAL, FIRST_BETTER),
    "20 % leave": Scene(churn(0.2), TOTAL, FIRST_BETTER),
    "autocorrelated": Scene(autocorrelated, MEAN),
    "heavy tails": Scene(heavy, Rule("total", 50.0)),
    "bots": Scene(bots, TOTAL),
    "novelty": Scene(novelty, MEAN, after_novelty),
    "one arm's failures come late": Scene(delayed, MEAN),
    "missing outcomes": Scene(missing, MEAN),
    "ramps, and others who come": Scene(drifting, MEAN, ramps=True),
}


def run(rng: Rng, scene: Scene, units: int) -> tuple[list[float], list[int]]:
    """(values, arms) of the units in the order in which they count, by the service's table of units."""
    table = UnitTable(1, 2)
    events: list[tuple[float, int, bool, float]] = []
    arms = rng.integers(2, size=units)
    pace = np.cumsum(rng.exponential(1.0, units))
    if scene.ramps:  # a tenth of the traffic, then half, then all of it
        pace = np.cumsum(rng.exponential(1.0, units) * np.repeat((10.0, 2.0, 1.0), -(-units // 3))[:units])
    for unit in range(units):
        events.append((pace[unit], unit, False, 0.0))
        for at, value in scene.live(rng, int(arms[unit]), unit / units):
            events.append((pace[unit] + at, unit, True, value))
    events.sort(key=lambda event: (event[0], event[2]))
    for at, unit, answered, value in events:
        if not answered:
            table.expose(str(unit), int(arms[unit]), at, WINDOW, float("nan"), ())
        else:
            table.add(str(unit), 0, value, at, WINDOW)
    closed = list(table.close(float("inf"), WINDOW))
    return [table.value(row, 0, scene.rule) for row in closed], [table.arms[row] for row in closed]


def looks(y: Floats, arms: Ints, alpha: float) -> Ints:
    """After each unit: 1 if the first arm is named, -1 if the second, 0 if none."""
    guesses, own = split_terms(y, arms, (0.5, 0.5))
    gap = guesses[:, :, 0] - guesses[:, :, 1]
    return signs(np.where(arms == 0, own, -own), gap, 2.0, alpha).astype(np.int64)


def play(name: str, runs: int, units: int) -> list[object]:
    """The row of a scene."""
    scene, rng = SCENES[name], np.random.default_rng(list(name.encode()))
    played = [run(rng, scene, units) for _ in range(runs)]
    y, arms = (np.array([one[part] for one in played]) for part in (0, 1))
    named = looks(y.astype(np.float64), arms.astype(np.int64), 1 - CONFIDENCE)
    right = np.array([scene.better((place + 1) / units) for place in range(units)])
    false = ((named != 0) & (named != right)).any(axis=1).mean()
    true = ((named != 0) & (named == right)).any(axis=1).mean()
    return [name, scene.rule.value, f"{false:.2%}", f"{true:.2%}" if right.any() else "arms are equal"]


def segmented(runs: int, units: int) -> list[object]:
    """Equal arms, and fifty segments that were named before: is an arm named in any of them?"""
    rng = np.random.default_rng(50)
    arms, y = rng.integers(2, size=(runs, SEGMENTS, units)), rng.random((runs, SEGMENTS, units))
    named = looks(y.reshape(-1, units), arms.reshape(-1, units), (1 - CONFIDENCE) / SEGMENTS)
    false = (named != 0).reshape(runs, -1).any(axis=1).mean()
    return [f"{SEGMENTS} segments of {units} units", "mean", f"{false:.2%}", "arms are equal"]


# ---- ratios: purchases by visit

VISITS, BOUGHT, RATIO_LOOK = 8, 4, 10


@dataclass(frozen=True)
class RatioScene:
    """Of both arms: the share of visits that buy, and visits a unit; `drift` is added to both shares by the end."""

    rates: tuple[float, float]
    visits: tuple[float, float] = (2.0, 2.0)
    drift: float = 0.0


RATIOS = {
    "purchases by visit, users differ": RatioScene((0.3, 0.3)),
    "one arm's users come twice as often": RatioScene((0.3, 0.3), (1.5, 4.0)),
    "more buy by and by": RatioScene((0.2, 0.2), drift=0.3),
    "0.30 and 0.45 of the visits": RatioScene((0.3, 0.45)),
}


def ratio(name: str, runs: int, units: int) -> list[object]:
    """The row of a scene of ratios; a look after every tenth unit."""
    scene, rng = RATIOS[name], np.random.default_rng(list(name.encode()))
    named = np.zeros((runs, 2), dtype=bool)  # the first arm, the second
    for place in range(runs):
        arms = RatioArms.new(2)
        for unit in range(units):
            arm = int(rng.integers(2))
            came = 1 + int(rng.poisson(scene.visits[arm]))
            # A user's own share, so that visits of one user are alike.
            own = min(1.0, 2 * rng.beta(2, 2) * (scene.rates[arm] + scene.drift * unit / units))
            arms.arms[arm].add(min(rng.binomial(came, own), BOUGHT) / BOUGHT, min(came, VISITS) / VISITS)
            if unit % RATIO_LOOK == RATIO_LOOK - 1:
                named[place] |= [arms.excludes(i, 1 - i, 0.0, 1 - CONFIDENCE) for i in (0, 1)]
    better = scene.rates[1] > scene.rates[0]
    false = named[:, 0].mean() if better else named.any(axis=1).mean()
    return [name, "ratio", f"{false:.2%}", f"{named[:, 1].mean():.2%}" if better else "arms are equal"]


def main() -> None:
    parser = arguments(__doc__, "experiment_units")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--units", type=int, default=400)
    parser.add_argument(
        "--only", nargs="+", choices=[*SCENES, "segments", *RATIOS], default=[*SCENES, "segments", *RATIOS]
    )
    options = parser.parse_args()
    if options.quick:
        options.runs, options.units = 20, 40
    report = Report("Experiments by units: who is named", options.out)
    rows = [
        play(name, options.runs, options.units)
        for name in track([s for s in options.only if s in SCENES], "scenes")
    ]
    if "segments" in options.only:
        rows.append(segmented(options.runs, options.units // 4))
    rows += [
        ratio(name, options.runs, options.units)
        for name in track([s for s in options.only if s in RATIOS], "ratios")
    ]
    head = f"{options.runs} runs of {options.units} units, a look after each"
    wrong = "runs that ever name a wrong arm (allowed: 5 %)"
    report.table([head, "a unit counts by", wrong, "that name the right one"], rows)


if __name__ == "__main__":
    main()
