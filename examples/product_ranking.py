"""Products ranked from clicks: what was clicked is better than what stood above it and was not."""

import random

from feedrank import learners


def products(chance: random.Random) -> list[dict[str, object]]:
    """Eight products of a page, with the numbers a shop knows of them."""
    return [
        {
            "id": f"p{i}",
            "features": {
                "price": chance.uniform(5, 500),
                "rating": chance.uniform(1, 5),
                "in_stock": float(chance.random() < 0.7),
                "photos": float(chance.randrange(10)),
            },
        }
        for i in range(8)
    ]


def appeal(item: dict[str, object]) -> float:
    """What people like, unknown to the learner: cheap, well rated, in stock."""
    features = item["features"]
    assert isinstance(features, dict)
    return features["rating"] - features["price"] / 150 + 2 * features["in_stock"]


def click(page: list[dict[str, object]], chance: random.Random) -> str:
    """Somebody reads from the top and takes the first product that is good enough, or else the best one."""
    for item in page:
        if appeal(item) > 3.5 and chance.random() < 0.8:
            return str(item["id"])
    return str(max(page, key=appeal)["id"])


def main() -> None:
    chance = random.Random(3)
    learner = learners.build({"task": "subset-ranking"})
    places = []
    for _ in range(600):
        items = products(chance)
        by_id = {item["id"]: item for item in items}
        prediction = learner.predict({"items": items})
        page = [by_id[name] for name, _ in prediction.ranking]
        clicked = click(page, chance)
        places.append([item["id"] for item in page].index(clicked) + 1)
        learner.learn({"items": items}, {"clicks": [clicked]}, served=prediction.served())
    first, last = sum(places[:100]) / 100, sum(places[-100:]) / 100
    print(f"mean place of the click: {first:.2f} in the first 100 pages, {last:.2f} in the last 100")
    assert last < first


if __name__ == "__main__":
    main()
