"""What a built learner does in a round, against the algorithms as the paper prints them, over all decisions."""

from itertools import permutations, product

import numpy as np
import pytest

from feedrank.learners import build

M = 4
LABELS = list("abcd")
MASKS = [np.array(v, dtype=bool) for v in product([False, True], repeat=M)]
ORDERS = [np.array(p) for p in permutations(range(M))]
CASES = [
    ({"task": "multiclass"}, range(M)),
    ({"task": "multiclass", "loss": "weighted", "weights": {"a": 3, "c": 0.5}}, range(M)),
    ({"task": "multiclass", "loss": "reject", "reject_costs": {"a": 0.2, "b": 1.5, "c": 0}}, [*range(M), -1]),
    ({"task": "ordinal"}, range(M)),
    ({"task": "multilabel", "loss": "subset-zero-one"}, MASKS),
    ({"task": "multilabel", "loss": "hamming"}, MASKS),
    ({"task": "multilabel", "loss": "error-set-size"}, MASKS),
    ({"task": "label-ranking"}, ORDERS),
    ({"task": "label-ranking", "cutoff": 2, "position": "power"}, ORDERS),
    ({"task": "label-ranking", "loss": "precision", "cutoff": 2, "position": "reciprocal"}, ORDERS),
    ({"task": "label-ranking", "loss": "ap"}, ORDERS),
]


def a_truth(task, rng):
    """A truth as JSON and as the array that the losses take."""
    if task == "multilabel":
        y = rng.random(M) < 0.5
        return {"labels": [name for name, on in zip(LABELS, y, strict=True) if on]}, y
    if task == "label-ranking":
        y = rng.integers(0, 3, M).astype(float)
        return {"relevance": dict(zip(LABELS, y.tolist(), strict=True))}, y
    y = int(rng.integers(M))
    return {"label": LABELS[y]}, y


def directions(task, decisions, t, y, driven):
    """All g that the algorithm may take, ties being free; none where the round costs nothing."""
    reps = np.array([task.rep(s, M) for s in decisions])
    loss, similarity = np.array([task.loss(s, y) for s in decisions]), reps @ t
    best = similarity >= similarity.max() - 1e-9
    right = loss == 0
    closest = right & (similarity >= similarity[right].max() - 1e-9)
    if driven:
        rivals = ~right & (similarity >= similarity[~right].max(initial=-np.inf) - 1e-9)
        scales = np.unique(loss[best & ~right])
    else:
        rivals, scales = loss + similarity >= (loss + similarity).max() - 1e-9, [1.0]
    return [scale * (a - b) for scale in scales for a in reps[rivals] for b in reps[closest]]


@pytest.mark.parametrize("variant", ["standard", "loss-driven"])
@pytest.mark.parametrize(
    ("spec", "decisions"), CASES, ids=lambda v: "-".join(map(str, v.values())) if isinstance(v, dict) else ""
)
def test_a_round_is_that_of_the_paper(spec, decisions, variant):
    learner = build(
        {**spec, "labels": LABELS, "algorithm": "predtron", "variant": variant, "learning_rate": 0.5}
    )
    task, weights = learner.model.task, learner.model.weights
    rng = np.random.default_rng(len(str(spec)))
    learner.learn(
        {"features": [0.0, 0.0, 0.0]}, a_truth(spec["task"], rng)[0]
    )  # the features are known from here on
    updates = 0
    for _ in range(60):
        truth, y = a_truth(spec["task"], rng)
        x = rng.integers(-2, 3, 3).astype(float)
        theta = weights.arrays()["theta"].copy()
        prediction = learner.predict({"features": x})
        outcome = learner.learn({"features": x}, truth)
        step = theta - weights.arrays()["theta"]
        t = x @ theta
        if spec.get("loss") != "error-set-size":  # there a score of 0 is judged as on the wrong side
            assert outcome.loss == task.loss(task.decide(t), y)
        assert outcome.updated == outcome.mistake == (outcome.loss > 0)
        assert [name for name, _ in prediction.ranking] == [LABELS[i] for i in np.argsort(-t, kind="stable")]
        if outcome.updated:
            updates += 1
            allowed = directions(task, decisions, t, y, variant == "loss-driven")
            assert any(np.allclose(step, 0.5 * np.outer(x, g)) for g in allowed)
        else:
            assert not step.any()
    assert updates > 5
