"""The verdict of an experiment, worked out anew from its list of units.

A service runs in this process, on an empty store, and 300 users go through a checkout of two layouts, of which the second
sells more. For an experiment of yours: `check(Client(URL), NAME)`. The interval is that of docs/experiments.md ("Why the
verdict is valid at every look"), for two arms of equal weight: NumPy, and nothing else of feedrank than its calls.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence

import numpy as np

from feedrank.clients import Client
from feedrank.clients.unit_rows import rows
from feedrank.embedded import Embedded

BETS = np.geomspace(0.001, 0.97, 24)
WEIGHTS = BETS / (1 + (BETS / 0.3) ** 2)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def lower_bound(differences: np.ndarray, guesses: np.ndarray, alpha: float, c: float = 2.0) -> float:
    """The running mean of E[X] at which the mixture of all bets would be worth 1 / alpha, by halving."""
    logs = np.log1p(BETS[:, None] * (differences - guesses) / c).sum(axis=1)
    low, high = -1e6, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        worth = np.logaddexp.reduce(np.log(WEIGHTS) + logs - BETS * middle)
        low, high = (middle, high) if worth > np.log(1 / alpha) else (low, middle)
    return float((guesses.sum() + c * low) / len(guesses))


def interval(arms: Sequence[int], values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Of the mean of arm 0 minus that of arm 1; values in [0, 1], in the order of first exposures."""
    count, total = np.zeros(2), np.zeros(2)
    guesses, differences = np.zeros(len(arms)), np.zeros(len(arms))
    for place, (arm, value) in enumerate(zip(arms, values, strict=True)):
        mean = (total + 0.5) / (count + 1)  # expected before this unit is looked at
        guesses[place] = mean[0] - mean[1]
        differences[place] = guesses[place] + (1 - 2 * arm) * (value - mean[arm]) * 2
        count[arm] += 1
        total[arm] += value
    alpha = (1 - confidence) / 2
    return lower_bound(differences, guesses, alpha), -lower_bound(-differences, -guesses, alpha)


def play(client: Client, name: str) -> None:
    """A short experiment: an order of 20 to 100, more often with the second layout."""
    for learner in ("layout-a", "layout-b"):
        client.create(learner, {"task": "multiclass"})
    per = {"window": 3, "value": "total", "cap": 200}
    arms = ["layout-a", "layout-b"]
    client.create_experiment(name, {"arms": arms, "measure": "metric:revenue", "per": per})
    chance = random.Random(7)
    for number in range(300):
        unit = f"user-{number}"
        buys = 0.2 if client.assign(name, unit).arm == "layout-a" else 0.5
        if chance.random() < buys:
            client.unit_event(name, unit, "revenue", chance.uniform(20, 100))
    while client.experiment(name).waiting:
        time.sleep(0.5)


def check(client: Client, name: str) -> None:
    """Print what GET says, and what its units say."""
    now = client.experiment(name)
    first, second = now.arms
    cap = now.definition["per"].get("cap", 1.0)
    units = [row for row in rows(client.units(name)) if row["counted"]]
    values = [float(row[f"value:{now.measure}"] or 0.0) / cap for row in units]
    low, high = interval([int(row["arm"] == second) for row in units], values, now.confidence)
    (pair,) = now.differences
    print(now.sentence)
    print(f"{first} minus {second}, by the service: {pair['lower']:.4f} to {pair['upper']:.4f}")
    print(f"{first} minus {second}, by its units:   {low * cap:.4f} to {high * cap:.4f}")
    assert abs(low * cap - pair["lower"]) < 1e-6 * cap
    assert abs(high * cap - pair["upper"]) < 1e-6 * cap


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        transport = Embedded(f"sqlite:{folder}/store.db")
        with Client("http://embedded", transport=transport) as client:
            play(client, "checkout")
            check(client, "checkout")


if __name__ == "__main__":
    main()
