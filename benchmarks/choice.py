"""Choices with a reward: labelled streams played as bandits, ours beside Vowpal Wabbit's contextual bandits.

A round shows the features as context and every label as an item; choosing the right one earns 1, of grades in an order one
minus the share of the scale by which it is off. Ours is the preset, with nothing tuned; Vowpal Wabbit's best setting is
chosen in hindsight, set by set. The ratios are of losses (1 - reward): below 1, ours is better.

    python benchmarks/choice.py --data DATA [--rows N] [--orders 1] [--leave-one-out]
    python benchmarks/choice.py --coverage [--runs 2000] [--events 200]
    python benchmarks/choice.py --speed
    python benchmarks/choice.py --close                  # two items that earn 30 and 33 %
    python benchmarks/choice.py --many                   # 1,000 actions, 10 million pairs
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from choice_checks import BUILT, close, coverage, leave_one_out, many, speed
from report import Report, arguments
from stream_data import Stream, read, tables

from feedrank import learners
from feedrank.learners.choice.memories import Memories

SETTINGS = {
    f"{explore} lr {rate:g}": f"{flags} -l {rate:g}"
    for explore, flags in {
        "epsilon 0.05": "--epsilon 0.05",
        "epsilon 0.2": "--epsilon 0.2",
        "squarecb": "--squarecb",
        "squarecb gamma 100": "--squarecb --gamma_scale 100",
        "cover 5": "--cover 5",
        "regcb": "--regcb --mellowness 0.01",
    }.items()
    for rate in (0.1, 0.5, 2.0)
}


def main() -> None:
    parser = arguments(__doc__, "choice")
    parser.add_argument("--data", type=Path, help="folder of the data, see benchmarks/data.md")
    parser.add_argument("--rows", type=int, help="of each stream, at most; else all")
    parser.add_argument("--orders", type=int, default=1, help="of streams that have no order of their own")
    parser.add_argument("--only", nargs="*", help="these sets")
    parser.add_argument("--leave-one-out", action="store_true", help="what other sets choose")
    parser.add_argument(
        "--coverage", action="store_true", help="of off-policy intervals, with a learning logger"
    )
    parser.add_argument("--runs", type=int, default=2000, help="of --coverage")
    parser.add_argument("--events", type=int, default=200, help="of a run of --coverage")
    parser.add_argument("--speed", action="store_true", help="a predict beside a list's")
    parser.add_argument(
        "--close", action="store_true", help="how often the better of two close items is shown"
    )
    parser.add_argument("--many", action="store_true", help="time among many actions, memory of many pairs")
    asked = parser.parse_args()
    if asked.coverage or asked.speed or asked.close or asked.many:
        report = Report("Choices with a reward", asked.out)
        if asked.coverage:
            coverage(report, asked.runs, asked.events)
        if asked.speed:
            speed(report)
        if asked.close:
            close(report)
        if asked.many:
            many(report, squarecb)
        return
    if asked.data is None or not asked.data.exists():
        print("choice: skipped, because there is no --data; benchmarks/data.md says where to get it")
        return
    report = Report("Choices with a reward", asked.out)
    streams = [
        stream
        for stream in (*read(asked.data), *tables(asked.data))
        if stream.group == "streams"
        and stream.task in ("binary", "multiclass", "ordinal")
        and (not asked.only or stream.name in asked.only)
    ]
    if asked.leave_one_out:
        leave_one_out(report, [cut(stream.order(0), asked.rows) for stream in streams], play)
        return
    rows, ratios = [], []
    for stream in streams:
        orders = [cut(stream.order(k), asked.rows) for k in range(asked.orders if stream.shuffled else 1)]
        ours, cost = np.mean([play(order, seed) for seed, order in enumerate(orders)], axis=0)
        try:
            peers = {
                name: np.mean([vowpal(order, flags, s) for s, order in enumerate(orders)])
                for name, flags in SETTINGS.items()
            }
        except ModuleNotFoundError:
            peers = {"Vowpal Wabbit is not installed": math.nan}
        best = max(peers, key=lambda name: peers[name])
        ratios.append((1 - ours) / max(1 - peers[best], 1e-9))
        rows.append(
            [
                stream.name,
                len(orders[0].rounds),
                f"{ours:.3f}",
                f"{peers[best]:.3f}",
                best,
                f"{ratios[-1]:.3f}",
                f"{cost:.0f}",
            ]
        )
        print(*rows[-1], flush=True)
    head = ["set", "rounds", "feedrank", "Vowpal Wabbit's best", "which", "ratio of losses", "us per round"]
    report.table(head, rows)
    mean = math.exp(np.mean(np.log(ratios)))
    report.text(f"Geometric mean of the ratios: {mean:.3f}; the largest {max(ratios):.3f}.")


def cut(stream: Stream, rows: int | None) -> Stream:
    """Its first rounds; all without `rows`."""
    return replace(stream, rounds=stream.rounds[:rows])


def actions(stream: Stream) -> list[str]:
    """Every label, in the order in which the stream shows them."""
    return list(dict.fromkeys(str(y) for _, y in stream.rounds))


def earns(stream: Stream, y: object) -> dict[str, float]:
    """What each item earns where `y` is right."""
    if stream.task != "ordinal":
        return dict.fromkeys(actions(stream), 0.0) | {str(y): 1.0}
    grade = stream.labels.index(str(y))
    return {name: 1 - abs(i - grade) / (len(stream.labels) - 1) for i, name in enumerate(stream.labels)}


def play(stream: Stream, seed: int, prior: float = BUILT[0], forget: float = BUILT[1]) -> tuple[float, float]:
    """The mean reward of the preset, or of other steps, and microseconds of processor time a round."""
    items = [{"id": name, "features": {}} for name in actions(stream)]
    learner = learners.build({"task": "choice"})
    if (prior, forget) != BUILT:
        learner.model.weights = Memories((forget,), prior)
        learner.grow()
    chance = np.random.default_rng(seed)
    earned, start = 0.0, time.process_time()
    for x, y in stream.rounds:
        instance = {"items": items, "features": x if isinstance(x, dict) else list(x)}
        prediction = learner.predict(instance, chance=chance.random())
        reward = earns(stream, y)[str(prediction.decision[0])]
        earned += reward
        learner.learn(instance, {"reward": reward}, served=prediction.served())
    used = time.process_time() - start
    return earned / len(stream.rounds), 1e6 * used / len(stream.rounds)


def vowpal(stream: Stream, flags: str, seed: int) -> float:
    """The mean reward of one setting of `--cb_explore_adf`."""
    from vowpalwabbit import Workspace

    names = actions(stream)
    model = Workspace(
        f"--cb_explore_adf {flags} -q ca --quiet -b 20 --random_seed {seed + 1}", enable_logging=False
    )
    chance = np.random.default_rng(seed)
    items = [f"|a id{i}" for i in range(len(names))]
    earned = 0.0
    for x, y in stream.rounds:
        shared = "shared |c " + written(x)
        p = spread(model, shared, items)
        chosen = int(chance.choice(len(p), p=p))
        reward = earns(stream, y)[names[chosen]]
        earned += reward
        lines = [f"{i}:{-reward}:{p[i]} {item}" if i == chosen else item for i, item in enumerate(items)]
        model.learn([shared, *lines])
    model.finish()
    return earned / len(stream.rounds)


def squarecb(items: list[str]) -> Callable[[list[str], float, float], None]:
    """A visit of Vowpal Wabbit among these items: features of the context, what settles the draw, and the reward."""
    from vowpalwabbit import Workspace

    model = Workspace("--cb_explore_adf --squarecb -q ca --quiet -b 20", enable_logging=False)
    actions = [f"|a {item}" for item in items]

    def visit(features: list[str], chance: float, reward: float) -> None:
        shared = "shared |c " + " ".join(features)
        p = spread(model, shared, actions)
        chosen = min(int(p.cumsum().searchsorted(chance)), len(p) - 1)
        lines = [f"{i}:{-reward}:{p[i]} {item}" if i == chosen else item for i, item in enumerate(actions)]
        model.learn([shared, *lines])

    return visit


def spread(model: object, shared: str, items: list[str]) -> np.ndarray:
    """The probability of every action."""
    p = np.array(model.predict([shared, *items]), dtype=float)
    return p / p.sum()


def written(x: object) -> str:
    """Features in Vowpal Wabbit's text."""
    if isinstance(x, dict):
        return " ".join(f"{clean(name)}:{value:g}" for name, value in x.items())
    return " ".join(clean(name) for name in x)


def clean(name: str) -> str:
    return str(name).replace(":", "_").replace("|", "_").replace(" ", "_")


if __name__ == "__main__":
    main()
