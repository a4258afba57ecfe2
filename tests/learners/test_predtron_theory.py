"""Margins, constants and bounds: the first two by brute force, the last on separable streams."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners import build
from feedrank.learners.algorithms.predtron import LossDriven, Predtron, Theory
from feedrank.learners.losses import subsets
from feedrank.learners.model import Round
from feedrank.learners.tasks.finite import Finite
from feedrank.learners.tasks.multilabel import ErrorSetSize, Hamming, Multilabel, SubsetZeroOne
from feedrank.learners.tasks.one_class import REJECT, Binary, Multiclass, Ordinal, Reject
from feedrank.learners.tasks.permutations import AP, NDCG, Precision
from feedrank.learners.theory import predtron_bounds as theory


def orders(m):
    return [np.array(p) for p in permutations(range(m))]


def masks(m):
    return [np.array(v, dtype=bool) for v in product([False, True], repeat=m)]


def grades(m, top):
    return [np.array(v, dtype=float) for v in product(range(top + 1), repeat=m)]


# ---- margins

score = st.integers(-3, 3).map(float)


@settings(deadline=None)
@given(st.lists(score, min_size=1, max_size=4), st.data())
def test_margin_is_the_definition(values, data):
    t = np.array(values)
    m = t.size
    k = data.draw(st.integers(1, m))
    y = data.draw(st.integers(0, m - 1))
    mask = data.draw(st.sampled_from(masks(m)))
    grade = data.draw(st.sampled_from(grades(m, 2)))
    cases = [(Multiclass(), range(m), y), (Ordinal(), range(m), y), (Hamming(), masks(m), mask)]
    cases += [(ErrorSetSize(), masks(m), mask), (SubsetZeroOne(), masks(m), mask)]
    cases += [(task, orders(m), grade) for task in (NDCG(), NDCG(k), Precision(k), AP(None, "reciprocal"))]
    if m > 1:
        cases.append((Reject([0.5, 0.0]), [*range(m), REJECT], y))
    for task, decisions, truth in cases:
        similarity = np.array([task.rep(s, m) @ t for s in decisions])
        right = np.array([task.loss(s, truth) == 0 for s in decisions])
        gap = similarity[right].min() - similarity[~right].max(initial=-math.inf)
        result = theory.margin(task, t, truth)
        if np.ptp(similarity[right]) <= 1e-9:
            assert result == pytest.approx(gap)
        else:
            assert result == pytest.approx(min(gap, 0.0))


def test_margin_of_a_ranking_is_lemma_4():
    y, t = np.array([2.0, 1.0, 1.0, 0.0]), np.array([3.0, 1.5, 1.5, 1.0])
    for position, exponent, f in (
        ("linear", 1.0, lambda i: -i),
        ("power", 2.0, lambda i: -(i**2)),
        ("reciprocal", 1.0, lambda i: 1 / i),
    ):
        Z = math.sqrt(sum(f(i) ** 2 for i in range(1, 5)))
        lemma = min((t[0] - t[1]) * (f(1) - f(2)), (t[2] - t[3]) * (f(3) - f(4))) / Z
        assert theory.margin(NDCG(None, position, exponent), t, y) == pytest.approx(lemma)


# ---- c_L and C_L


@pytest.mark.parametrize("m", [2, 3, 4])
def test_constants_are_the_extremes_of_the_loss(m):
    labels = range(m)
    cases = [
        (Multiclass(), labels, labels),
        (Multiclass([3.0, 0.5]), labels, labels),
        (Ordinal(), labels, labels),
        (Reject([0.3, 2.0]), [*labels, REJECT], labels),
        (Binary([3.0, 0.2]), [0, 1], [0, 1]),
        (Hamming(), masks(m), masks(m)),
        (SubsetZeroOne(), masks(m), masks(m)),
        (ErrorSetSize(), masks(m), masks(m)),
        (Multilabel(lambda a, b, c, d: (b + c) / np.maximum(1, 2 * a + b + c)), masks(m), masks(m)),
        (Multilabel(subsets.hamming), masks(m), masks(m)),
        (Finite([[0.0, 2.0], [5.0, 0.0]], np.eye(2)), [0, 1], [0, 1]),
    ]
    for task, decisions, truths in cases:
        values = np.array([task.loss(s, y) for s in decisions for y in truths])
        assert theory.constants(task, m) == pytest.approx((values[values > 0].min(), values.max()))


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_constants_of_rankings_bound_the_loss(m):
    for Y_max in (1, 2):
        for task in (NDCG(), NDCG(2), Precision(2), AP()):
            values = np.array(
                [task.loss(s, y) for s in orders(m) for y in grades(m, Y_max)[:: 1 + 3 * (m > 4)]]
            )
            c_L, C_L = theory.constants(task, m, Y_max)
            assert c_L <= values[values > 1e-12].min(initial=1.0) + 1e-12
            assert values.max() <= C_L


def test_corollaries_follow_from_the_theorems():
    for m, Y_max, p in ((2, 1, 5), (6, 3, 100), (40, 1, 100_000)):
        c_L, C_L = theory.constants(NDCG(), m, Y_max)
        assert theory.corollary_5(2.0, 0.5, m, Y_max) >= theory.theorem_1(2.0, 0.5, c_L, C_L)
        alpha = theory.strong_convexity(max(2.0, math.log(p)))
        assert theory.corollary_6(2.0, 0.5, m, Y_max, p) >= theory.theorem_15(6.0, 0.5, c_L, C_L, alpha)
        assert theory.corollary_7(2.0, 0.5, m, Y_max) == theory.corollary_5(2.0, 0.5, m, Y_max)
        assert theory.corollary_8(2.0, 0.5, m, Y_max, p) == theory.corollary_6(2.0, 0.5, m, Y_max, p)
    assert theory.corollary_2(1.0, 0.5, 6.0, 4.0) == 2 * theory.corollary_2(1.0, 0.5, 3.0, 2.0)
    assert theory.rate_14(2.0, 3.0) == 1 / 48


# ---- bounds on separable streams


def vectors(W, task, y_of, n, gamma, norm, seed=0):
    """Instances of length 1 in `norm` on which W, a unit matrix, has margin at least gamma."""
    rng = np.random.default_rng(seed)
    while n:
        x = rng.uniform(-1, 1, W.shape[0])
        x /= np.linalg.norm(x, ord=norm)
        t = x @ W
        y = y_of(t)
        if theory.margin(task, t, y) >= gamma:
            n -= 1
            yield x, y


def class_truth(labels):
    return lambda y: {"label": labels[y]}


def top_label(t):
    return int(t.argmax())


ROUNDS = 500
BINARY = np.array([[1.0], [0.0], [0.0]])
THREE = np.eye(3, 4) - 1 / 4
ORDINAL = np.array([[-1.0, 0.0, 1.0], [-1 / 3, 2 / 3, -1 / 3], [0.0, 0.0, 0.0]])
SETS = np.eye(3)


@pytest.mark.parametrize("variant", ["standard", "loss-driven"])
@pytest.mark.parametrize(
    ("spec", "task", "W", "gamma", "y_of", "truth"),
    [
        ({"task": "binary", "labels": ["n", "p"]}, Binary(), BINARY, 1.0, lambda t: int(t[0] > 0), class_truth("np")),
        (
            {"task": "binary", "labels": ["n", "p"], "loss": "weighted", "weights": {"p": 3}},
            Binary([1.0, 3.0]), BINARY, 1.0, lambda t: int(t[0] > 0), class_truth("np"),
        ),
        ({"task": "multiclass", "labels": [*"abcd"]}, Multiclass(), THREE, 0.5, top_label, class_truth("abcd")),
        ({"task": "ordinal", "labels": [*"abc"]}, Ordinal(), ORDINAL, 0.3, top_label, class_truth("abc")),
        (
            {"task": "multilabel", "labels": list("abc"), "loss": "hamming"},
            Hamming(), SETS, 0.3, lambda t: t > 0, lambda y: {"labels": [c for c, on in zip("abc", y, strict=True) if on]},
        ),
    ],
)  # fmt: skip
def test_bounds_on_vectors(spec, task, W, gamma, y_of, truth, variant):
    learner = build({**spec, "algorithm": "predtron", "variant": variant, "learning_rate": "theory", "R": 1})
    W = W / np.linalg.norm(W)
    m = 2 if isinstance(task, Binary) else W.shape[1]
    c_L, C_L = theory.constants(task, m)
    bound = (
        theory.theorem_1(1, gamma, c_L, C_L) if variant == "standard" else theory.theorem_14(1, gamma, C_L)
    )
    losses = [
        learner.learn({"features": x}, truth(y)).loss for x, y in vectors(W, task, y_of, ROUNDS, gamma, 2)
    ]
    assert 0 < sum(losses) <= bound
    # Were the steps of no use, the bound would be passed: the test can fail.
    assert bound < max(losses) * ROUNDS / 2


@pytest.mark.parametrize("norm", ["l1", "group"])
def test_bound_of_theorem_15_on_vectors(norm):
    """W* uses one feature of forty; R is that of the largest entry, times 3 as in Corollary 8."""
    W = np.zeros((40, 2))
    W[0] = [0.5, -0.5]
    unit = W / (np.abs(W).sum() if norm == "l1" else np.linalg.norm(W, axis=1).sum())
    task, names = Multiclass(), [str(i) for i in range(40)]
    learner = build(
        {
            "task": "multiclass",
            "labels": ["a", "b"],
            "algorithm": "predtron",
            "norm": norm,
            "learning_rate": "theory",
            "R": 1,
        }
    )
    gamma = 0.5
    p = 80 if norm == "l1" else 40
    bound = theory.theorem_15(3, gamma, 1, 1, theory.strong_convexity(max(2.0, math.log(p))))
    losses = []
    for x, y in vectors(unit, task, lambda t: int(t.argmax()), ROUNDS, gamma, np.inf):
        losses.append(
            learner.learn({"features": dict(zip(names, x.tolist(), strict=True))}, {"label": "ab"[y]}).loss
        )
    assert 0 < sum(losses) <= bound
    assert bound < ROUNDS


def lists(rng, n, m, p, top, noise):
    """Lists whose first feature is the grade: w* = e_1 orders them, equal grades with equal scores."""
    for _ in range(n):
        y = rng.integers(0, top + 1, m).astype(float)
        X = rng.uniform(-noise, noise, (m, p))
        X[:, 0] = y - top / 2
        yield X, y


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ({}, NDCG()),
        ({"cutoff": 2, "position": "power"}, NDCG(2, "power", 1.1)),
        ({"loss": "precision", "cutoff": 1}, Precision(1)),
        ({"loss": "ap", "position": "reciprocal"}, AP(None, "reciprocal")),
        ({"variant": "loss-driven"}, NDCG()),
        ({"norm": "l1"}, NDCG()),
        ({"norm": "group", "variant": "loss-driven"}, NDCG()),
    ],
)
def test_bounds_on_lists(options, task):
    m, p, top = 3, 12, 1
    w = np.eye(p)[0]
    # Where the cutoff splits equal grades no scores are compatible: there the theory is silent.
    stream = [
        (X, y)
        for X, y in lists(np.random.default_rng(5), 1500, m, p, top, 0.1)
        if theory.margin(task, X @ w, y) > 0
    ]
    assert len(stream) > 500
    gamma = min(theory.margin(task, X @ w, y) for X, y in stream)
    values = np.array([task.loss(s, y) for s in orders(m) for y in grades(m, top)])
    c_L = values[values > 1e-12].min()
    if "norm" in options:
        R, factor = max(np.linalg.norm(X, axis=0).max() for X, _ in stream), 3
        alpha = theory.strong_convexity(max(2.0, math.log(p)))
    else:
        R, factor, alpha = max(np.linalg.norm(X, ord=2) for X, _ in stream), 1, 1.0
    if "variant" in options:
        bound = theory.theorem_14(factor * R, gamma, 1.0) / alpha
    else:
        bound = theory.theorem_15(factor * R, gamma, c_L, 1.0, alpha)
    learner = build(
        {"task": "subset-ranking", "algorithm": "predtron", **options, "learning_rate": "theory", "R": R}
    )
    total = 0.0
    for X, y in stream:
        items = [{"id": str(i), "features": row} for i, row in enumerate(X)]
        total += learner.learn(
            {"items": items}, {"relevance": {str(i): g for i, g in enumerate(y.tolist())}}
        ).loss
    assert 0 < total <= bound


# ---- the rates themselves


def test_the_theory_rate_scales_the_direction():
    t, y = np.array([0.2, 0.1, 0.0]), 2
    task = Multiclass([1.0, 1.0, 4.0])
    assert np.allclose(
        Theory(Predtron(task), 3.0).direction(Round(t, y)), Predtron(task).direction(Round(t, y)) / 36
    )
    assert np.allclose(
        Theory(LossDriven(task), 3.0).direction(Round(t, y)),
        LossDriven(task).direction(Round(t, y)) / (4 * 4 * 9),
    )
    assert Theory(Predtron(task), 3.0).direction(Round(t, 0)) is None
    grades_ = np.array([0.0, 0.0, 1.0])
    loss = NDCG().judge(t, grades_)
    assert np.allclose(
        Theory(Predtron(NDCG()), 2.0).direction(Round(t, grades_)),
        Predtron(NDCG()).direction(Round(t, grades_)) * loss / 16,
    )
