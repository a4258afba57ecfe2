"""The experts on vectors: their formulas by brute force, how they enter the pool, and what they are worth there."""

import numpy as np
import pytest
from test_accidents import Accident, attempt

from feedrank.learners import build, dump, load
from feedrank.learners.algorithms.auto.class_means import SHARPNESS
from feedrank.learners.algorithms.auto.vector_ridge import BLOCK, RIDGE, WEIGHTS, WHOLE

MEANS, BLOCKWISE = ["class-means"], ["vector-ridge"]


def units(rng, count, width):
    X = rng.normal(size=(count, width)).astype(np.float32).astype(np.float64)
    return X, X / np.linalg.norm(X, axis=1, keepdims=True)


def expert_of(learner, name):
    return next(expert for expert in learner.model.experts if expert.name == name)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_class_means_are_what_they_say(task):
    rng = np.random.default_rng(0)
    X, U = units(rng, 40, 7)
    learner, truths = build({"task": task, "experts": MEANS}), []
    for n, x in enumerate(X[:-1]):
        chosen = ["abc"[n % 3]] if task == "multiclass" else [label for label in "abc" if rng.integers(2)]
        truths.append(set(chosen))
        truth = {"label": chosen[0]} if task == "multiclass" else {"labels": chosen}
        learner.learn({"vector": x}, truth, weight=1.0)
    labels, g, u = list(learner.labels), U[:-1].mean(axis=0), U[-1]
    expected = []
    for label in labels:
        rows = np.array([label in truth for truth in truths])
        score = 0.0
        for part, sign in ((rows, 1.0),) if task == "multiclass" else ((rows, 1.0), (~rows, -1.0)):
            mean = (U[:-1][part] - g).sum(axis=0) / (part.sum() + 1.0)
            score += sign * SHARPNESS * ((u - g) @ mean - 0.5 * mean @ mean)
        expected.append(score)
    x = learner.transform.vector(learner._read({"vector": X[-1]}), learner.features)
    own = learner.model.decide(x).judged.Z[0]
    assert np.allclose(own, expected, atol=1e-9)


@pytest.mark.parametrize("width", [5, WHOLE + 1])
def test_the_ridge_is_one_up_to_its_width_and_blocks_above(width):
    rng = np.random.default_rng(1)
    X, U = units(rng, 12, width)
    learner = build({"task": "multiclass", "experts": BLOCKWISE})
    learner.learn({"vector": X[0]}, {"label": "a"})
    learner.learn({"vector": X[1]}, {"label": "b"})
    for n, x in enumerate(X[2:]):
        learner.learn({"vector": x}, {"label": "ab"[n % 2]})
    ridge = expert_of(learner, "vector-ridge")
    Y = np.eye(2)[[0, 1, *(n % 2 for n in range(10))]]
    if width <= WHOLE:
        P = np.linalg.inv(RIDGE * np.eye(width) + U.T @ U)
        assert np.allclose(ridge.R[:width, :2], P @ U.T @ Y)
        assert np.allclose(ridge.P[0], P)
        return
    count = -(-width // BLOCK)
    assert ridge.P.shape == (count, -(-width // count), -(-width // count))
    blocks = np.array_split(np.arange(ridge.R.shape[0]), count)
    P, R = [np.eye(len(block)) / RIDGE for block in blocks], np.zeros((len(ridge.R), 2))
    for u, y in zip(np.pad(U, ((0, 0), (0, len(R) - width))), Y, strict=True):
        q = [own @ u[block] for own, block in zip(P, blocks, strict=True)]
        c = 1.0 + sum(u[block] @ part for part, block in zip(q, blocks, strict=True))
        R += np.outer(np.concatenate(q) / c, y - u @ R)
        P = [own - np.outer(part, part) / c for own, part in zip(P, q, strict=True)]
    assert np.allclose(ridge.R[:, :2], R)


def test_they_enter_with_the_first_vector_and_the_bound_holds():
    rng = np.random.default_rng(2)
    learner = build({"task": "multiclass"})
    for n in range(30):
        learner.learn({"text": f"word{n % 5}"}, {"label": "ab"[n % 2]})
    shown = {row["name"]: row for row in learner.describe()["experts"]}
    for name in (*MEANS, *BLOCKWISE):
        assert (shown[name]["weight"], shown[name]["mean_loss"]) == (0.0, None)
    for n in range(60):
        x = rng.normal(size=6) + 3 * np.eye(6)[n % 3]
        learner.learn({"vector": x, "text": f"word{n % 7}"}, {"label": "abc"[n % 3]})
        proved = learner.certificate
        assert proved["loss"] <= proved["best_loss"] + proved["bound"] + 1e-9
    shown = {row["name"]: row for row in learner.describe()["experts"]}
    assert all(shown[name]["weight"] > 0.0 for name in (*MEANS, *BLOCKWISE))


@pytest.mark.parametrize(
    "spec",
    [
        {"task": "multiclass"},
        {"task": "binary", "labels": ["a", "b"]},
        {"task": "multilabel"},
        {"task": "ordinal", "labels": ["a", "b", "c"]},
        {"task": "label-ranking"},
    ],
    ids=lambda spec: spec["task"],
)
def test_whole_rounds_and_pieces_leave_the_same_bits(spec):
    rng = np.random.default_rng(3)
    whole, pieces = build(spec), build(spec)
    pieces._fused = None
    for n in range(50):
        instance = {"text": f"w{n % 4} w{rng.integers(9)}"}
        if n > 9 and n % 5:
            instance["vector"] = (rng.normal(size=5) + 2 * np.eye(5)[n % 2]).tolist()
        label = "ab"[n % 2] if n < 30 or "labels" in spec else "abc"[n % 3]
        truth = {"labels": [label]} if spec["task"] == "multilabel" else {"label": label}
        outcomes = [each.learn(instance, truth, weight=1.0 + n % 3) for each in (whole, pieces)]
        assert outcomes[0] == outcomes[1]
        if n in (5, 20):
            whole = load(dump(whole))
    assert dump(whole) == dump(pieces)
    explained = whole.predict(instance, explain=True)
    for (_, score), parts in zip(explained.ranking, explained.contributions, strict=True):
        assert abs(sum(parts.values()) - score) <= 1e-9 * (1 + abs(score))


def test_the_ridge_leaves_when_there_are_too_many_labels():
    width = 1024
    learner = build({"task": "multiclass", "experts": MEANS + BLOCKWISE})
    rng = np.random.default_rng(4)
    for n in range(WEIGHTS // width + 2):
        learner.learn({"features": ["x"]}, {"label": str(n)})
    learner.learn({"vector": rng.normal(size=width)}, {"label": "0"})
    assert not expert_of(learner, "vector-ridge").present
    assert expert_of(learner, "class-means").present
    assert dump(load(dump(learner))) == dump(learner)
    long = build({"task": "multiclass", "experts": MEANS + BLOCKWISE})
    long.learn({"vector": [0.5] * 2049}, {"label": "a"})
    assert not expert_of(long, "vector-ridge").present
    assert long.nbytes() >= 8 * 2049


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_accident_at_any_call_leaves_no_trace():
    spec = {"task": "multiclass", "experts": ["dual-ascent", *MEANS, *BLOCKWISE]}
    learner, other = build(spec), build(spec)
    rng = np.random.default_rng(5)
    for n in range(9):
        event = {"features": [f"w{n % 4}"]}, {"label": "ab"[n % 2]}
        learner.learn(*event)
        other.learn(*event)
    for label in ("a", "b", "new"):  # the first vector, one more, and a label that joins
        instance, truth = {"vector": rng.normal(size=4).tolist(), "features": [label]}, {"label": label}
        before, at, learned = dump(learner), 0, False
        while not learned:
            at += 7
            try:
                attempt(learner, instance, truth, at)
                learned = True
            except (Accident, TypeError):
                assert dump(learner) == before, at
        other.learn(instance, truth)
        assert dump(learner) == dump(other)


def mistakes(spec, events):
    learner = build({"task": "multiclass", **spec})
    return sum(learner.learn(instance, truth).mistake for instance, truth in events)


def test_the_preset_is_as_good_as_the_best_of_them_and_better_with_words():
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(12, 48))
    vectors, words = [], []
    for _ in range(500):
        k = int(rng.integers(12))
        v = centres[k] + rng.normal(size=48) * 2.2
        said = [f"w{k}"] if rng.random() < 0.4 else [f"w{rng.integers(12)}"]
        vectors.append(({"vector": v}, {"label": str(k)}))
        words.append(({"vector": v, "features": [*said, f"n{rng.integers(40)}"]}, {"label": str(k)}))
    alone = [mistakes({"experts": experts}, vectors) for experts in (MEANS, BLOCKWISE)]
    preset = mistakes({}, vectors)
    by_words = mistakes({}, [({"features": instance["features"]}, truth) for instance, truth in words])
    assert preset <= 1.1 * min(alone)
    assert mistakes({}, words) < min(preset, by_words)
