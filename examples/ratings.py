"""Stars from 1 to 5: an ordinal task, in which being off by one costs less than being off by four."""

import random

from feedrank import learners

STARS = ["1", "2", "3", "4", "5"]


def visit(chance: random.Random) -> tuple[dict[str, float], str]:
    """A restaurant visit and the stars it got."""
    food, waiting, price = chance.gauss(0, 1), chance.expovariate(1 / 15), chance.uniform(10, 60)
    joy = 3.2 + 1.1 * food - 0.04 * (waiting - 15) - 0.01 * (price - 35) + chance.gauss(0, 0.3)
    return {"food": food, "waiting": waiting, "price": price}, str(min(5, max(1, round(joy))))


def main() -> None:
    chance = random.Random(5)
    learner = learners.build({"task": "ordinal", "labels": STARS})
    losses = []
    for _ in range(800):
        features, stars = visit(chance)
        losses.append(learner.learn({"features": features}, {"label": stars}).loss)
    first, last = sum(losses[:100]) / 100, sum(losses[-100:]) / 100
    print(f"off by {first:.2f} stars in the first 100 visits, by {last:.2f} in the last 100")
    assert last < first
    bad = learner.predict({"features": {"food": -2.0, "waiting": 60.0, "price": 55.0}})
    print(f"cold food, an hour's wait, 55 euros: {bad.label} star(s)")
    assert bad.label in ("1", "2")


if __name__ == "__main__":
    main()
