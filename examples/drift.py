"""A stream whose rules change half-way: mistakes rise, the learner follows, and says that something has changed."""

import random

from feedrank import learners

HALF = 1000


def main() -> None:
    chance = random.Random(2)
    learner = learners.build({"task": "binary", "labels": ["no", "yes"]})
    mistakes = []
    alarm = None
    for round in range(2 * HALF):
        x = {name: chance.gauss(0, 1) for name in ("age", "income", "visits")}
        buys = x["income"] + 0.5 * x["visits"] > 0
        if round >= HALF:
            buys = not buys  # everything that was true is false now
        mistakes.append(learner.learn({"features": x}, {"label": "yes" if buys else "no"}).mistake)
        if alarm is None and learner.describe()["drift"]["alarms"]:
            alarm = round
    for start in range(0, 2 * HALF, HALF // 2):
        share = sum(mistakes[start : start + HALF // 2]) / (HALF // 2)
        print(f"events {start:4} to {start + HALF // 2:4}: {share:.1%} mistakes")
    print(f"the alarm rang at event {alarm}; the rules changed at event {HALF}")
    assert sum(mistakes[-200:]) < sum(mistakes[HALF : HALF + 200])
    assert alarm is not None
    assert alarm >= HALF


if __name__ == "__main__":
    main()
