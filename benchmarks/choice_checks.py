"""What `choice.py` measures beside rewards: the prior left to other sets, coverage at every look, the cost of a predict."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from report import Report, track
from stream_data import Stream

from feedrank import learners
from feedrank.learners.choice.bilinear import FORGET, PRIOR
from feedrank.learners.choice.memories import AUTO, Memories
from feedrank.learners.inference.confidence import Floats, log_mixture
from feedrank.learners.inference.off_policy import BOUNDS, Estimate, RunningGuess, WeighedDraw

BUILT = (PRIOR, FORGET)
STEPS = ((0.1, 0.0), (0.1, 0.003), (0.1, 0.01), (0.1, 0.03), (0.01, 0.01), (0.03, 0.01), (0.3, 0.01))
"""The prior's precision and what is forgotten."""
ALPHA = 0.05


def leave_one_out(
    report: Report,
    streams: Sequence[Stream],
    play: Callable[[Stream, int, float, float], tuple[float, float]],
) -> None:
    """The steps that the other sets choose for each, by the geometric mean of the rewards."""
    rewards = {
        stream.name: {steps: play(stream, 0, *steps)[0] for steps in STEPS}
        for stream in track(streams, "steps")
    }
    rows: list[list[object]] = []
    for name, own in rewards.items():
        others = [rewards[other] for other in rewards if other != name]
        chosen = max(STEPS, key=lambda steps: sum(math.log(other[steps]) for other in others))
        rows.append(
            [
                name,
                f"{chosen[0]:g}, {chosen[1]:g}",
                *(f"{own[one]:.3f}" for one in (chosen, BUILT, (0.1, 0.0))),
            ]
        )
    report.text(
        f"Precision of the prior and what is forgotten, of {'; '.join(f'{a:g}, {b:g}' for a, b in STEPS)}:\n"
    )
    built = f"reward with {PRIOR:g}, {FORGET:g} (built)"
    report.table(
        ["left out", "chosen by the others", "reward with it", built, "0.1, 0 (nothing forgotten)"], rows
    )


# ---- coverage

EARNS = np.array([[0.3, 0.5, 0.6, 0.35], [0.6, 0.4, 0.2, 0.35]])
"""The chance of a reward: a row for each context, a column for each item."""
TARGETS = {
    "uniform": np.full((2, 4), 0.25),
    "the best item of each context": np.eye(4)[EARNS.argmax(axis=1)],
    "mostly the worst": np.array([[0.9, 0.0, 0.0, 0.1], [0.0, 0.1, 0.9, 0.0]]),
}


def excludes(estimate: Estimate, value: float) -> bool:
    """Whether `value` is outside of `estimate.interval(ALPHA)`: its capital has reached the goal. No root is solved for."""
    n = estimate.n
    values = np.repeat([value, 1.0 - value], len(BOUNDS))
    reached = log_mixture(
        estimate.capital.logs(), np.array(estimate.guesses) - n * values, (*BOUNDS, *BOUNDS)
    )
    return bool((reached >= math.log(2 * len(BOUNDS) / ALPHA)).any())


def one_run(rng: np.random.Generator, events: int, floor: float) -> dict[str, bool]:
    """Whether the value of each target was excluded at some look, the logger being our learner as it learns."""
    logger = learners.build({"task": "choice", "floor": floor})
    items = [{"id": str(a), "features": {}} for a in range(4)]
    guess = RunningGuess()
    estimates = {name: Estimate() for name in TARGETS}
    sums, missed = dict.fromkeys(TARGETS, 0.0), dict.fromkeys(TARGETS, False)
    for context, chance, luck in zip(
        rng.integers(2, size=events).tolist(), rng.random(events).tolist(), rng.random(events), strict=True
    ):
        instance = {"items": items, "features": [f"context {context}"]}
        prediction = logger.predict(instance, chance=chance)
        assert prediction.probabilities is not None
        spread: Floats = np.zeros(4)
        for (name, _), p in zip(prediction.ranking, prediction.probabilities, strict=True):
            spread[int(name)] = p
        chosen = int(prediction.decision[0])
        reward = float(luck < EARNS[context, chosen])
        q = [guess(f"{context} {a}") for a in range(4)]
        for name, target in TARGETS.items():
            estimate = estimates[name]
            estimate.add([WeighedDraw(spread.tolist(), chosen, reward, target[context].tolist(), q)])
            sums[name] += float(target[context] @ EARNS[context])
            missed[name] = missed[name] or excludes(estimate, sums[name] / estimate.n)
        guess.add(f"{context} {chosen}", reward)
        logger.learn(instance, {"reward": reward}, served=prediction.served())
    return missed


def coverage(report: Report, runs: int, events: int) -> None:
    """How often the value of a policy stays within its interval at every event of a run."""
    rows: list[list[object]] = []
    for floor in (0.02, 0.4):
        rng = np.random.default_rng(7)
        misses = dict.fromkeys(TARGETS, 0)
        for _ in track(range(runs), f"coverage, floor {floor}"):
            for name, missed in one_run(rng, events, floor).items():
                misses[name] += missed
        rows += [[floor, name, f"{1 - count / runs:.2%}"] for name, count in misses.items()]
    head = [f"floor of the logger, {runs} runs of {events}", "policy", "covered at every look"]
    report.table(head, rows)


# ---- memory

FORGETS = (0.01, 0.001, 0.0, "auto")


def close(report: Report, runs: int = 6, visits: int = 10_000) -> None:
    """Visits from the middle of a run on that show the better of two items, which earn 30 and 33 %; and where they swap."""
    items = [{"id": name, "features": {}} for name in "ab"]
    rows: list[list[object]] = []
    for forget in track(FORGETS, "close"):
        row: list[object] = [f"{forget}"]
        for swaps in (False, True):
            shares = []
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                learner = learners.build({"task": "choice", "forget": forget})
                hits = np.zeros(visits)
                for t in range(visits):
                    swapped = swaps and 2 * t >= visits
                    rates = {"a": 0.33, "b": 0.3} if swapped else {"a": 0.3, "b": 0.33}
                    shown = learner.predict({"items": items}, chance=rng.random()).served()
                    hits[t] = rates[str(shown["id"])] == 0.33
                    reward = float(rng.random() < rates[str(shown["id"])])
                    learner.learn({"items": items}, {"reward": reward}, served=shown)
                shares.append(float(hits[visits // 2 :].mean()))
            row.append(f"{np.mean(shares):.3f}")
        rows.append(row)
    head = ["forget", f"visits {visits // 2 + 1} to {visits}, mean of {runs} runs", "the same, swapped there"]
    report.table(head, rows)


# ---- many actions

PAIRS = 10_000_000


Peer = Callable[[list[str]], Callable[[list[str], float, float], None]]


def many(report: Report, peer: Peer, count: int = 1000, visits: int = 300, pairs: int = PAIRS) -> None:
    """A visit (predict and learn) among `count` actions of ids alone, and what so many pairs of context and id take."""
    rng = np.random.default_rng(0)
    items = [{"id": f"i{i}", "features": {}} for i in range(count)]
    shown = [{"items": items, "features": [f"c{c}" for c in rng.choice(50, 10)]} for _ in range(visits)]
    beside, theirs = peer([f"i{i}" for i in range(count)]), []
    for visit in shown:
        begun = time.process_time()
        beside(visit["features"], rng.random(), float(rng.random() < 0.3))
        theirs.append(time.process_time() - begun)
    rows: list[list[object]] = [["Vowpal Wabbit, squarecb", f"{1e3 * float(np.median(theirs)):.2f}", "", ""]]
    for forget in (0.01, "auto"):
        learner = learners.build({"task": "choice", "forget": forget})
        costs = []
        for visit in shown:
            begun = time.process_time()
            served = learner.predict(visit, chance=rng.random()).served()
            learner.learn(visit, {"reward": float(rng.random() < 0.3)}, served=served)
            costs.append(time.process_time() - begun)
        memories = Memories(AUTO if forget == "auto" else (0.01,))
        side = math.isqrt(pairs)
        memories.grow(side, side)
        for row in range(0, side - 19, 20):
            memories.mark()
            memories.step(np.arange(row, row + 20), np.ones(20), np.arange(side), np.ones(side), 0.5)
        memories.mark()
        each = memories.pairs
        taken = sum(array.nbytes for array in (each.keys, each.weights, each.precision, each.index))
        rows.append(
            [f"forget {forget}", f"{1e3 * float(np.median(costs)):.2f}", each.count, f"{taken / 1e6:.0f}"]
        )
    report.table(["learner", f"ms a visit, {count} actions", "pairs", "MB"], rows)


# ---- speed


def speed(report: Report, items: int = 50, features: int = 10, context: int = 21, repeats: int = 9) -> None:
    """A predict beside that of the preset for lists on the same items, by processor time, turn by turn."""
    rng = np.random.default_rng(0)

    def instance() -> dict[str, object]:
        rows = rng.random((items, features)).tolist()
        return {
            "items": [
                {"id": f"i{i}", "features": {f"f{j}": value for j, value in enumerate(row)}}
                for i, row in enumerate(rows)
            ],
            "features": {f"c{j}": value for j, value in enumerate(rng.random(context).tolist())},
        }

    chooser, ranker = learners.build({"task": "choice"}), learners.build({"task": "subset-ranking"})
    for _ in range(100):
        shown = instance()
        chooser.learn(shown, {"reward": float(rng.random() < 0.5)}, served=chooser.predict(shown).served())
        ranker.learn({"items": shown["items"]}, {"relevance": {f"i{rng.integers(items)}": 1}})
    shows = [instance() for _ in range(200)]
    lists = [{"items": shown["items"]} for shown in shows]
    costs: dict[str, list[float]] = {"choice": [], "list": []}
    for _ in range(repeats):
        for name, learner, instances in (("choice", chooser, shows), ("list", ranker, lists)):
            begun = time.process_time()
            for one in instances:
                learner.predict(one)
            costs[name].append(1e6 * (time.process_time() - begun) / len(instances))
    least = {name: min(each) for name, each in costs.items()}
    shape = f"{items} items x {features} features, {context} of the context"
    head = [shape, "choice, us", "a list's preset, us", "ratio"]
    row = [f"{least['choice']:.0f}", f"{least['list']:.0f}", f"{least['choice'] / least['list']:.2f}"]
    report.table(head, [["a predict", *row]])
