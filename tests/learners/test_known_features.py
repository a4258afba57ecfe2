"""How much of an instance a learner has learned from: `known` and `unknown` of every prediction without items."""

import pytest

from feedrank.learners import build

SPECS = [
    {"task": "multiclass"},
    {"task": "multiclass", "algorithm": "predtron", "bias": True},
    {"task": "multiclass", "algorithm": "predtron", "kernel": "gaussian"},
    {"task": "multiclass", "algorithm": "dual-ascent", "weighting": "idf", "normalize": "unit"},
    {"task": "multiclass", "algorithm": "dual-ascent", "normalize": "blocks", "bias": True},
    {"task": "multilabel"},
    {"task": "label-ranking"},
    {"task": "ordinal", "labels": ["a", "b", "c"]},
    {"task": "binary", "labels": ["a", "b"], "algorithm": "quadratic-surrogate"},
]
CASES = [
    ({"features": {"v": 1.0, "w": 2.0, "new": 3.0}}, (2, 1)),
    ({"features": {"v": 0.0, "w": -2.0, "new": 0, "newer": 1}}, (1, 1)),
    ({"features": ["v", "w", "v", "new"]}, (2, 1)),
    ({"features": []}, (0, 0)),
    ({"features": {}}, (0, 0)),
    ({"features": [1.0, 0.0, 2.0]}, (0, 2)),
    ({"text": "v xyz"}, (1, 4)),  # not known: xyz, the pair, and two parts
    ({"features": {"": 1}}, None),
]


def familiar(learner, instance, **options):
    prediction = learner.predict(instance, **options)
    reply = prediction.to_json()
    assert (reply["known"], reply["unknown"]) == (prediction.known, prediction.unknown)
    return prediction.known, prediction.unknown


@pytest.mark.parametrize("spec", SPECS)
def test_features_other_than_0_are_counted_by_whether_they_were_learned_from(spec):
    learner = build(spec)
    assert familiar(learner, {"features": ["v", "w"]}) == (0, 2)
    for label in "ab":
        truth = {"labels": [label]} if spec["task"] in ("multilabel", "label-ranking") else {"label": label}
        learner.learn({"features": {"v": 1.0, "w": 1.5, "u": 0.0}}, truth)
    for instance, expected in CASES[:-1]:
        assert familiar(learner, instance) == expected
        assert familiar(learner, instance, top=1) == expected
        if learner.model.contributions is not None and "kernel" not in spec:
            assert (
                familiar(learner, instance, explain=spec.get("algorithm") != "quadratic-surrogate")
                == expected
            )


def test_lists_have_none():
    items = {"items": [{"id": "d", "features": {"v": 1.0}}]}
    for task in ("subset-ranking", "choice"):
        prediction = build({"task": task}).predict(items)
        assert prediction.known is prediction.unknown is None
        assert "known" not in prediction.to_json()
