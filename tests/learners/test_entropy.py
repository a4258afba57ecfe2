"""The expert `entropy`: a step on a pair of labels against a search, both kernels, and what it is for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import build, dump, load
from feedrank.learners.kernel import entropic_step, entropy

SEEDS = st.integers(0, 2**32 - 1)


def pair_of_labels(rng, features=12, labels=4):
    """Cells as steps leave them, their sums, and some words with u."""
    u = np.exp(rng.normal(size=(features, labels)) * rng.integers(0, 3, (features, labels)))
    rows = rng.permutation(features)[: rng.integers(1, features + 1)].astype(np.intp)
    values = rng.uniform(0.05, 1.0, len(rows))
    wide = np.zeros((features, labels + 3))
    wide[:, :labels] = u - 1.0
    return wide[:, :labels], (u - 1.0).sum(axis=0), rows, values


def scores(cells, size, rows, values):
    u = 1.0 + cells
    return (u[rows] * values[:, None]).sum(axis=0) / (u.sum(axis=0) + size - len(u))


@given(SEEDS, st.floats(1e-5, 0.5), st.floats(0.01, 8.0), st.sampled_from([12.0, 50.0, 50_000.0]))
def test_a_step_gives_the_margin_or_is_the_largest(seed, margin, most, size):
    rng = np.random.default_rng(seed)
    cells, sums, rows, values = pair_of_labels(rng)
    before = cells.copy()
    start = scores(cells, size, rows, values)
    old = entropic_step(cells, sums, rows, values, (2, 0), size, most, margin)
    np.testing.assert_array_equal(old, np.concatenate((before[rows, 2], before[rows, 0])))
    np.testing.assert_allclose(sums, cells.sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(cells[:, [1, 3]], before[:, [1, 3]])
    after = scores(cells, size, rows, values)
    if start[2] - start[0] >= margin:
        np.testing.assert_array_equal(cells, before)
        return
    tau = np.log((1.0 + cells[rows, 2]) / (1.0 + before[rows, 2])) / values
    np.testing.assert_allclose(tau, tau[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        (1.0 + cells[rows, 0]) * np.exp(tau * values), 1.0 + before[rows, 0], rtol=1e-6
    )
    gap = after[2] - after[0] - margin
    way = margin - (start[2] - start[0])  # that the step had to go
    assert abs(gap) < 1e-6 * margin + 1e-8 * way or (tau[0] == pytest.approx(most) and gap < 0.0)


@given(SEEDS, st.sampled_from([1e-4, 0.1, 0.9]))
def test_both_kernels_take_the_same_step(seed, margin):
    native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")
    rng = np.random.default_rng(seed)
    cells, sums, rows, values = pair_of_labels(rng)
    other = np.zeros((12, 9))[:, :4]
    other[:] = cells
    again = sums.copy()
    for pair, most in (((0, 3), 5.0), ((1, 2), 5000.0), ((3, 1), 0.25)):
        old = entropy.entropic_step(cells, sums, rows, values, pair, 60.0, most, margin)
        assert (
            native.entropic_step(other, again, rows, values, pair, 60.0, most, margin).tobytes()
            == old.tobytes()
        )
    assert cells.tobytes() == other.tobytes()
    assert sums.tobytes() == again.tobytes()


def test_weights_stay_in_their_bounds_and_sums_keep_their_digits():
    cells, sums = np.zeros((3, 2)), np.zeros(2)
    rows, values = np.array([0, 1], dtype=np.intp), np.array([1.0, 0.5])
    for n in range(200):
        pair = (0, 1) if n < 100 else (1, 0)
        entropic_step(cells, sums, rows, values, pair, 3.0, 5000.0, 0.99999)
    assert (cells > -1.0).all()
    assert cells.max() <= entropy.HIGHEST
    np.testing.assert_allclose(sums, cells.sum(axis=0), rtol=1e-6)


def mail(seed, rounds, labels=6):
    """Messages of which two words of twelve say the folder."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        label = int(rng.integers(labels))
        words = {f"{label}-{w}" for w in rng.integers(0, 5, 2)} | {f"w{w}" for w in rng.integers(0, 400, 10)}
        yield {"features": sorted(words)}, {"label": f"folder {label}"}


def test_few_words_among_many_say_the_label():
    learner = build({"task": "multiclass", "algorithm": "auto", "experts": ["entropy"]})
    mistakes = [learner.learn(*event).mistake for event in mail(0, 500)]
    assert np.mean(mistakes[300:]) < 0.1
    assert learner.model.experts[0]._kept.ends()[0] < -0.1


def test_it_is_saved_explained_and_left_out_where_bits_are_right():
    learner = build({"task": "label-ranking", "experts": ["entropy", "naive-bayes"]})
    for x, y in mail(1, 60):
        learner.learn(x, {"labels": [y["label"], "folder 0"]})
    again = load(dump(learner))
    question = {"features": ["1-2", "w3", "never met"]}
    assert again.predict(question) == learner.predict(question)
    prediction = learner.predict(question, explain=True)
    for (_, score), parts in zip(prediction.ranking, prediction.contributions, strict=True):
        assert sum(parts.values()) == pytest.approx(score, rel=1e-9)
    assert "entropy" not in build({"task": "multilabel"}).spec["experts"]
    sets = build({"task": "multilabel", "experts": ["entropy", "naive-bayes"]})
    sets.learn({"features": ["a"]}, {"labels": ["x"]})
    assert sets.describe()["experts"][0]["weight"] == 0.0


def test_a_table_without_words_gives_it_no_weight():
    learner = build({"task": "binary", "labels": ["a", "b"]})
    rng = np.random.default_rng(2)
    for _ in range(80):
        p = float(rng.normal())
        learner.learn({"features": {"p": p, "q": 1.0 - p * p}}, {"label": "ab"[p > 0]})
    weights = {expert["name"]: expert["weight"] for expert in learner.describe()["experts"]}
    assert weights["entropy"] < 0.02


def test_adagrad_leaves_words_to_it_above_two_labels():
    learner = build({"task": "multiclass"})
    expert = next(expert for expert in learner.model.experts if expert.name == "adagrad")
    for n, (x, y) in enumerate(mail(3, 200)):
        learner.learn({"features": [*x["features"], *(f"{n} {i}" for i in range(12))]}, y)
        assert expert.present == (learner.model.features <= 1000)
    assert not expert.present
