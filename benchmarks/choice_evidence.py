"""What the log of a choice proves: how often a worse learner is released, and `evaluate` beside the Open Bandit Pipeline.

    python benchmarks/choice_evidence.py                    # releases, in every way in which choices are used
    python benchmarks/choice_evidence.py --obp PYTHON       # the estimates, beside obp in an environment of its own

A worse learner draws at random (`floor` 1) beside a first item that earns more. A release is false if the learner's mean
reward, by the true chances over the rounds of its evidence, is then more than 0.01 below that of the first item allowed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

NEAR = 0.01
GAPS = {"0.50 beside 0.20": 0.2, "0.50 beside 0.47": 0.47}
DESIGNS = (
    "all items",
    "first excluded in 30 %",
    "two slots",
    "some served elsewhere",
    "rewards 50 visits late",
    "worse items come",
)
SHARES = (0.1, 0.5)


def main() -> None:
    if "--as" in sys.argv:
        print(json.dumps(by_obp(np.load(sys.argv[sys.argv.index("--as") + 1]))))
        return
    from report import Report, arguments

    parser = arguments(__doc__, "choice_evidence")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--visits", type=int, default=600)
    parser.add_argument("--obp", help="the interpreter of an environment with obp")
    asked = parser.parse_args()
    if asked.quick:
        asked.runs, asked.visits = 1, 10
    report = Report("What the log of a choice proves", asked.out)
    if asked.obp:
        beside(report, asked.obp)
    else:
        releases(report, asked.runs, asked.visits)


def releases(report: Any, runs: int, visits: int) -> None:
    """How often a worse learner is released, by design."""
    from report import track

    rows: list[list[object]] = []
    for design in track(DESIGNS, "designs"):
        for gap, other in GAPS.items():
            for share in SHARES:
                false = [played(design, other, share, visits, seed) for seed in range(runs)]
                rows.append([design, gap, share, f"{np.mean(false):.1%}"])
    report.table([f"{runs} runs of {visits} visits", "rewards", "`baseline`", "released though worse"], rows)


def played(design: str, other: float, share: float, visits: int, seed: int) -> bool:
    """Whether the learner is ever released while it is worse."""
    from feedrank import learners

    rng = np.random.default_rng(seed)
    learner: Any = learners.build({"task": "choice", "baseline": share, "floor": 1.0})
    apprentice = learner.model.apprentice
    earns = {"first": 0.5, "b": other, "c": other, "d": other}
    late: deque[tuple[Any, Any, Any, float]] = deque()
    true, since = [0.0, 0], apprentice.phase.since
    for visit in range(visits):
        if design == "worse items come" and visit == visits // 2:
            earns |= {"e": other / 2, "f": other / 2}
        page: dict[str, Any] = {"items": [{"id": name, "features": {}} for name in earns]}
        if design == "two slots":
            page["slots"] = [{"id": "one"}, {"id": "two"}]
        exclude = ["first"] if design == "first excluded in 30 %" and rng.random() < 0.3 else []
        prediction = learner.predict(page, exclude=exclude, chance=rng.random())
        served: Any = prediction.served()
        worse = np.mean([lead(one, earns) for one in prediction.draw.get("slots", [prediction.draw])])
        if design == "two slots":
            reward: Any = {one["id"]: float(rng.random() < earns[one["choice"]]) for one in served["slots"]}
        else:
            reward = float(rng.random() < earns[served["id"]])
        late.append((page, reward, served, float(worse)))
        if design == "some served elsewhere" and rng.random() < 0.2:
            learner.learn(page, {"reward": 1.0}, served={"id": "b", "probability": 0.05})
        if design == "rewards 50 visits late" and len(late) < 50:
            continue
        page, reward, served, worse = late.popleft()
        was = bool(apprentice.released)
        learner.learn(page, {"reward": reward}, served=served)
        true = [true[0] + worse, true[1] + 1]
        if apprentice.released and not was and true[0] / true[1] < -NEAR:
            return True
        if apprentice.phase.since != since:
            true, since = [0.0, 0], apprentice.phase.since
    return False


def lead(draw: dict[str, Any], earns: dict[str, float]) -> float:
    """The learner's expected reward minus that of the baseline, in one draw."""
    names, beside = list(earns), draw["baseline"]
    p, rewards = np.array(draw["probabilities"]), np.array(list(earns.values()))
    place = names.index(beside["id"])
    own = p - (1 - beside["share"]) * (np.arange(len(p)) == place)
    return float(own @ rewards / beside["share"] - rewards[place])


# ---- the Open Bandit Pipeline


def beside(report: Any, python: str, rounds: int = 2000) -> None:
    """Ours and obp's figures of the same log, for policies that the log tells much, and little, of."""
    from feedrank.learners.inference.off_policy import Estimate, LogSupport, WeighedDraw

    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(4) * 2, size=rounds) * 0.9 + 0.025
    chances = rng.random((2, 4))
    context = rng.integers(2, size=rounds)
    chosen = np.array([rng.choice(4, p=row) for row in p])
    reward = (rng.random(rounds) < chances[context, chosen]).astype(float)
    guesses = np.tile(rng.random(4), (rounds, 1))
    policies = {
        "uniform": np.full((rounds, 4), 0.25),
        "best": np.eye(4)[chances.argmax(axis=1)][context],
        "mostly one": np.tile([0.85, 0.05, 0.05, 0.05], (rounds, 1)),
    }
    rows: list[list[object]] = []
    for name, policy in policies.items():
        value, support = Estimate(), LogSupport()
        for i in range(rounds):
            draw = WeighedDraw(
                p[i].tolist(), int(chosen[i]), reward[i], policy[i].tolist(), guesses[i].tolist()
            )
            value.add([draw])
            support.add(draw)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "log.npz"
            np.savez(file, p=p, chosen=chosen, reward=reward, policy=policy, guesses=guesses)
            done = subprocess.run(
                [python, __file__, "--as", str(file)], capture_output=True, text=True, check=True
            )
        theirs = json.loads(done.stdout.strip().splitlines()[-1])
        w = policy[np.arange(rounds), chosen] / p[np.arange(rounds), chosen]
        hand = float(
            ((policy * guesses).sum(axis=1) + w * (reward - guesses[np.arange(rounds), chosen])).mean()
        )
        rows += [
            [name, "doubly robust", f"{value.mean():.9f}", f"{theirs['dr']:.9f}", f"{hand:.9f}"],
            [
                name,
                "SNIPS",
                f"{support.snips():.9f}",
                f"{theirs['snips']:.9f}",
                f"{(w * reward).sum() / w.sum():.9f}",
            ],
        ]
    report.table(["policy", "estimate", "feedrank", "obp", "by hand"], rows)


def by_obp(log: Any) -> dict[str, float]:
    """In obp's own environment: its two estimates."""
    from obp.ope import DoublyRobust, SelfNormalizedInverseProbabilityWeighting

    chosen = log["chosen"]
    common = {
        "reward": log["reward"],
        "action": chosen,
        "position": np.zeros(len(chosen), dtype=int),
        "pscore": log["p"][np.arange(len(chosen)), chosen],
        "action_dist": log["policy"][:, :, None],
    }
    guesses = log["guesses"][:, :, None]
    dr = DoublyRobust().estimate_policy_value(**common, estimated_rewards_by_reg_model=guesses)
    return {
        "dr": float(dr),
        "snips": float(SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**common)),
    }


if __name__ == "__main__":
    main()
