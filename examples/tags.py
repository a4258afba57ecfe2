"""Tags for articles: a set of labels, and new labels at any time."""

import random

from feedrank import learners

TOPICS = {
    "sport": ["goal", "match", "coach", "league"],
    "money": ["bank", "shares", "profit", "market"],
    "health": ["doctor", "vaccine", "hospital", "diet"],
    "travel": ["flight", "hotel", "beach", "passport"],
    "film": ["actor", "cinema", "director", "scene"],
}
FILLER = [
    "the",
    "a",
    "said",
    "today",
    "new",
    "people",
    "first",
    "year",
    "after",
    "before",
    "more",
    "city",
    "report",
]


def article(chance: random.Random, topics: list[str]) -> tuple[list[str], list[str]]:
    """Words of one or two topics, and those topics."""
    tags = chance.sample(topics, chance.choice([1, 1, 2]))
    words = [word for tag in tags for word in chance.sample(TOPICS[tag], 3)]
    return words + chance.choices(FILLER, k=8), tags


def main() -> None:
    chance = random.Random(11)
    learner = learners.build({"task": "multilabel"})
    losses = []
    for round in range(900):
        topics = list(TOPICS)[:4] if round < 500 else list(TOPICS)
        words, tags = article(chance, topics)
        losses.append(learner.learn({"features": words}, {"labels": tags}).loss)
    first, last = sum(losses[:100]) / 100, sum(losses[-100:]) / 100
    print(f"wrong tags an article: {first:.2f} in the first 100, {last:.2f} in the last 100")
    print(f"tags known: {', '.join(learner.labels)} (film came at article 500)")
    assert last < first
    assert "film" in list(learner.labels)


if __name__ == "__main__":
    main()
