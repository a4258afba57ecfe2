"""The strongest features against what single-feature instances score."""

import random

import pytest

from feedrank.learners import OptionError, build, explaining
from feedrank.learners.explaining import strongest

SPECS = [
    {"task": "multiclass", "algorithm": "predtron"},
    {"task": "multiclass", "algorithm": "predtron", "norm": "l1"},
    {"task": "binary", "algorithm": "predtron", "labels": ["a", "b"], "bias": True},
    {"task": "multilabel", "algorithm": "predtron"},
    {"task": "multiclass", "algorithm": "quadratic-surrogate"},
    {"task": "label-ranking", "algorithm": "dual-ascent", "C": 1.0, "gamma": 1.0},
]


def taught(spec):
    learner, rng = build(spec), random.Random(1)
    for _ in range(60):
        label = rng.choice("ab")
        words = {f"{label}{rng.randrange(4)}": 1 + rng.random(), "common": 1.0}
        truth = {"label": label} if spec["task"] in ("multiclass", "binary") else {"labels": [label]}
        learner.learn({"features": words}, truth)
    return learner


@pytest.mark.parametrize("cells", [1, 4, 2**20])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: "-".join(str(value) for value in spec.values()))
def test_weights_are_the_scores_of_one_feature_each(spec, cells, monkeypatch):
    monkeypatch.setattr(explaining, "CELLS", cells)
    learner = taught(spec)
    bias = dict(learner.predict({"features": {}}).ranking) if spec.get("bias") else {}
    for label in ("a", "b"):
        expected = {
            name: dict(learner.predict({"features": {name: 1.0}}).ranking)[label] - bias.get(label, 0.0)
            for name in learner.features
            if name
        }
        result = dict(strongest(learner, label, 100))
        assert result.pop("bias", 0.0) == pytest.approx(bias.get(label, 0.0))
        assert result == pytest.approx({name: weight for name, weight in expected.items() if weight})
        sizes = [abs(weight) for _, weight in strongest(learner, label, 3)]
        assert sizes == pytest.approx(
            sorted(map(abs, [*expected.values(), *bias.values()]), reverse=True)[:3]
        )


def test_items_share_one_column():
    learner = build({"task": "subset-ranking", "algorithm": "slam"})
    items = [{"id": "p", "features": {"u": 1}}, {"id": "q", "features": {"v": 1}}]
    learner.learn({"items": items}, {"relevance": {"q": 1}})
    result = strongest(learner, None, 5)
    assert {name for name, _ in result} == {"u", "v"}
    assert dict(result)["v"] > 0 > dict(result)["u"]
    with pytest.raises(OptionError):
        strongest(learner, "p", 5)


def test_what_has_no_weights_is_refused():
    learner = build({"task": "multiclass", "algorithm": "predtron", "kernel": "polynomial", "degree": 2})
    learner.learn({"features": ["x"]}, {"label": "a"})
    with pytest.raises(OptionError, match="kernel"):
        strongest(learner, "a", 5)
    for label in (None, "b"):
        with pytest.raises(OptionError):
            strongest(learner, label, 5)


def test_the_preset_of_lists_names_what_was_clicked():
    learner, rng = build({"task": "subset-ranking"}), random.Random(2)
    assert strongest(learner, None, 5) == []
    for _ in range(40):
        items = [
            {"id": str(i), "features": {"rating": rng.random(), "noise": rng.random(), "price": rng.random()}}
            for i in range(6)
        ]
        worth = {item["id"]: item["features"]["rating"] - item["features"]["price"] for item in items}
        learner.learn({"items": items}, {"relevance": {max(worth, key=worth.get): 1}})
    weights = dict(strongest(learner, None, 5))
    assert weights["rating"] > 0 > weights["price"]
    assert abs(weights["noise"]) < min(weights["rating"], -weights["price"]) / 2
