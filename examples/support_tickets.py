"""Support tickets to the right queue, from their raw text: ask, correct, ask again."""

import random

from feedrank import learners

WORDS = {
    "billing": "invoice refund charged twice card payment price receipt subscription cancel",
    "login": "password reset locked account email code sign in two factor forgot",
    "shipping": "parcel late tracking courier address delivery lost broken box where",
    "bugs": "crash error screen app button freezes update version bug stack",
}
FILLER = [
    "hello",
    "please",
    "help",
    "me",
    "with",
    "my",
    "since",
    "yesterday",
    "thanks",
    "team",
    "again",
    "still",
]


def ticket(queue: str, chance: random.Random) -> str:
    """A made-up ticket: some words of its queue among many that say nothing."""
    words = chance.sample(WORDS[queue].split(), 3) + chance.choices(FILLER, k=9)
    chance.shuffle(words)
    return " ".join(words)


def main() -> None:
    chance = random.Random(7)
    learner = learners.build({"task": "multiclass"})
    mistakes = []
    for _ in range(400):
        queue = chance.choice(list(WORDS))
        outcome = learner.learn({"text": ticket(queue, chance)}, {"label": queue})
        mistakes.append(outcome.mistake)
    print(f"mistakes in the first 50 tickets: {sum(mistakes[:50])}, in the last 50: {sum(mistakes[-50:])}")
    assert sum(mistakes[-50:]) < sum(mistakes[:50])

    asked = {"text": "hello, my card was charged twice, please refund"}
    prediction = learner.predict(asked, explain=True)
    reasons = sorted(prediction.contributions[0].items(), key=lambda part: -part[1])[:3]
    print(f"goes to {prediction.label}, because of {', '.join(name for name, _ in reasons)}")
    assert prediction.label == "billing"

    assert prediction.margin is not None
    unsure = learner.predict({"text": "hello team"}, min_margin=prediction.margin / 2)
    print(f"'hello team' goes to {unsure.label or 'a person: no queue is ahead of the others'}")
    assert unsure.label is None


if __name__ == "__main__":
    main()
