"""The page on problems of one's own: every block of code on it runs, in order."""

import re
from pathlib import Path

import numpy as np
import pytest

from feedrank.learners.algorithms.predtron import LossDriven, Predtron
from feedrank.learners.custom import Problem
from feedrank.learners.model import Round
from feedrank.learners.tasks.finite import Finite
from feedrank.learners.tasks.one_class import Multiclass

PAGE = Path(__file__).parents[2] / "docs" / "problems.md"


def test_the_worked_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) == 4
    scope = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)


@pytest.mark.parametrize(
    ("loss", "reps", "words"),
    [
        ([[0, 1]], np.eye(2), "one row per prediction"),
        ([[0, 1], [0, 1]], np.eye(2), "correct prediction"),
        ([[0, -1], [1, 0]], np.eye(2), "at least 0"),
        ([[0, 1], [1, 0]], 2 * np.eye(2), "length 1"),
    ],
)
def test_a_problem_that_is_none_is_refused(loss, reps, words):
    with pytest.raises(ValueError, match=words):
        Finite(loss, reps)


@pytest.mark.parametrize("variant", [Predtron, LossDriven])
def test_multiclass_from_two_matrices_is_multiclass(variant):
    """The generic problem and the hand-written task take the same steps."""
    rng = np.random.default_rng(0)
    by_matrix, by_hand = variant(Finite(1 - np.eye(4), np.eye(4))), variant(Multiclass())
    updates = 0
    for _ in range(200):
        t, y = rng.integers(-2, 3, 4).astype(float), int(rng.integers(4))
        one, two = by_matrix.direction(Round(t, y)), by_hand.direction(Round(t, y))
        assert (one is None) == (two is None)
        if one is not None:
            updates += 1
            assert np.array_equal(one, two)
    assert updates > 50


def test_lists_have_one_column_of_weights():
    from feedrank.learners.tasks.permutations import NDCG

    learner = Problem(NDCG(), features=3)
    rng = np.random.default_rng(1)
    losses = []
    for _ in range(200):
        X = rng.standard_normal((5, 3))
        losses.append(learner.learn(X, (X[:, 0] > 0).astype(float)))
    assert sum(losses[-50:]) < 0.5 * sum(losses[:50])
    with pytest.raises(ValueError, match="3 features"):
        learner.predict(np.zeros((2, 4)))


def test_finite_margin_and_searches():
    h = np.sqrt(0.5)
    task = Finite([[0, 1], [1, 0], [0.5, 0.5]], [[1, 0], [0, 1], [h, h]])
    t = np.array([1.0, 0.9])
    assert task.decide(t) == 2
    assert task.margin(t) == pytest.approx(1.9 * h - 1.0)
    assert task.correct(1, t) == 1
    assert task.augmented(1, t) == 0  # 1 + 1 against 0.5 + 1.9 h
    assert task.rival(1, t) == 2
    assert Finite([[0.0]], [[1.0]]).rival(0, np.ones(1)) is None
    assert Finite([[0.0]], [[1.0]]).margin(np.ones(1)) is None
