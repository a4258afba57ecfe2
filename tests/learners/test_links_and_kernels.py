"""Weights with links and in kernel form, against their formulas written out."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from feedrank.learners.instances import Matrix, Vector
from feedrank.learners.weights.expansion import KernelExpansion
from feedrank.learners.weights.linear import Linear
from feedrank.learners.weights.links import PNorm, dual_exponent


def vector(rng, features, active=3):
    rows = rng.choice(features, size=min(active, features), replace=False)
    return Vector(rows, rng.standard_normal(len(rows)))


def matrix(rng, features, items=4):
    rows = rng.permutation(features)
    return Matrix(rows, rng.standard_normal((items, features)) * (rng.random((items, features)) < 0.7))


def restored(weights, fresh):
    fresh.grow(weights.features, weights.labels)
    fresh.restore({name: array.copy() for name, array in weights.arrays().items()}, weights.counters())
    return fresh


def link(theta, norm):
    """(grad psi)^-1(theta) = grad of 1/2 ||theta||_q^2, from the definition by differences in high precision."""
    p = theta.shape[0] if norm == "group" else theta.size
    q = dual_exponent(p)
    t = theta.astype(np.longdouble)
    if norm == "group":
        sizes = np.sqrt((t**2).sum(axis=1, keepdims=True))
    else:
        sizes = np.abs(t)
    N = (sizes**q).sum() ** (1 / np.longdouble(q))
    return np.where(sizes > 0, t * np.where(sizes > 0, sizes, 1) ** (q - 2) / N ** (q - 2), 0).astype(float)


@pytest.mark.parametrize("norm", ["l1", "group"])
@pytest.mark.parametrize(("features", "labels"), [(1, 1), (2, 3), (30, 1), (30, 5), (400, 21)])
def test_the_link_is_the_gradient_of_the_dual_norm(norm, features, labels):
    rng = np.random.default_rng(features + labels)
    w = PNorm(norm)
    w.grow(features, labels)
    for _ in range(12):
        w.step(vector(rng, features), rng.standard_normal(labels), 0.7)
    W = link(w.theta[:features, :labels], norm)
    x = vector(rng, features, 20)
    assert np.allclose(w.scores(x), x.values @ W[x.rows], rtol=1e-11, atol=1e-14)
    assert np.allclose(w.contributions(x).sum(axis=0), w.scores(x))
    # W and theta are duals: <W, theta> = ||theta||_q^2 = ||W||_r^2, inner norms as the link has them.
    q, inner = w.q, 2.0 if norm == "group" else w.q
    assert (W * w.theta[:features, :labels]).sum() == pytest.approx(w.N**2)
    r = q / (q - 1)
    rows = np.linalg.norm(W, ord=inner / (inner - 1), axis=1)
    assert (rows**r).sum() ** (1 / r) == pytest.approx(w.N)


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1e30, 1e140])
@pytest.mark.parametrize("norm", ["l1", "group"])
def test_the_link_is_safe_at_any_scale(norm, scale):
    rng = np.random.default_rng(1)
    small, large = PNorm(norm), PNorm(norm)
    for w in (small, large):
        w.grow(5000, 4)
    for _ in range(5):
        x, g = vector(rng, 5000), rng.standard_normal(4)
        small.step(x, g, 1.0)
        large.step(x, g, scale)
    x = vector(rng, 5000, 400)
    assert np.allclose(large.scores(x) / scale, small.scores(x), rtol=1e-9)  # the link is homogeneous


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(["l1", "group"]), st.booleans())
@example(9341, "group", False)  # a label joins between two steps on other rows
def test_norms_do_not_depend_on_the_way_there(seed, norm, lists):
    """Steps and growth renew parts; a restored copy renews all: no bit may differ, then or later."""
    rng = np.random.default_rng(seed)
    features, labels = int(rng.integers(1, 40)), 1 if lists else int(rng.integers(1, 9))
    w = PNorm(norm)
    w.grow(features, labels)
    copy = None
    for i in range(8):
        if rng.random() < 0.3:
            features, labels = (
                features + int(rng.integers(0, 9)),
                labels if lists else labels + int(rng.integers(0, 2)),
            )
            for each in (w, copy) if copy else (w,):
                each.grow(features, labels)
        x = matrix(rng, features) if lists else vector(rng, features)
        g = rng.standard_normal(4 if lists else labels)
        w.step(x, g, 0.5)
        if copy:
            copy.step(x, g, 0.5)
            assert np.array_equal(w.scores(x), copy.scores(x))
        if i == 3:
            copy = restored(w, PNorm(norm))
    assert copy.N == w.N


def naive(kind, a, b, bandwidth, degree):
    if kind == "linear":
        return a @ b
    if kind == "gaussian":
        return np.exp(-((a - b) ** 2).sum() / (2 * bandwidth**2))
    return (1 + a @ b) ** degree


def dense(x, features):
    if isinstance(x, Matrix):
        full = np.zeros((x.values.shape[0], features))
        full[:, x.rows] = x.values.toarray() if sparse.issparse(x.values) else x.values
        return full
    full = np.zeros(features)
    full[x.rows] = x.values
    return full


@pytest.mark.parametrize("kind", ["linear", "gaussian", "polynomial"])
@pytest.mark.parametrize("form", ["vector", "list", "sparse list"])
@pytest.mark.parametrize("budget", [None, 3])
def test_kernel_scores_are_the_sum_over_stored_examples(kind, form, budget):
    rng = np.random.default_rng(7)
    features, labels = 4, 1 if form != "vector" else 2
    w, examples = KernelExpansion(kind, bandwidth=1.3, degree=3, budget=budget), []
    w.grow(features, labels)
    for i in range(9):
        features += i % 2
        labels += form == "vector" and i == 4
        w.grow(features, labels)
        x = vector(rng, features) if form == "vector" else matrix(rng, features)
        if form == "sparse list":
            x = Matrix(x.rows, sparse.csr_array(x.values))
        scores = w.scores(x)
        kept = examples if budget is None else examples[-budget:]
        if form == "vector":
            t = np.zeros(labels)
            for x_i, a in kept:
                t[: len(a)] += a * naive(
                    kind, np.pad(x_i, (0, features - len(x_i))), dense(x, features), 1.3, 3
                )
        else:
            t = np.array(
                [
                    sum(
                        a_r * naive(kind, np.pad(row, (0, features - len(row))), item, 1.3, 3)
                        for X_i, a in kept
                        for row, a_r in zip(X_i, a, strict=True)
                    )
                    for item in dense(x, features)
                ]
            )
        assert np.allclose(scores, t)
        g = rng.standard_normal(labels if form == "vector" else 4)
        g[0] = 0.0 if form != "vector" else g[0]
        w.step(x, g, 0.5)
        examples.append((dense(x, features), -0.5 * g))
        if i == 5:
            w = restored(w, KernelExpansion(kind, bandwidth=1.3, degree=3, budget=budget))
    assert len(w.sizes) == (9 if budget is None else budget)


def test_the_linear_kernel_is_the_linear_weights():
    rng = np.random.default_rng(3)
    w, k = Linear(), KernelExpansion("linear")
    for weights in (w, k):
        weights.grow(10, 4)
    for _ in range(20):
        x, g = vector(rng, 10), rng.standard_normal(4)
        w.step(x, g, 0.3)
        k.step(x, g, 0.3)
    x = vector(rng, 10)
    assert np.allclose(w.scores(x), k.scores(x))


def test_unknown_features_widen_the_gaussian_distance():
    w = KernelExpansion("gaussian", bandwidth=1.0)
    w.grow(1, 1)
    w.step(Vector(np.array([0]), np.array([1.0])), np.array([-1.0]), 1.0)
    near = w.scores(Vector(np.array([0]), np.array([1.0])))
    far = w.scores(Vector(np.array([0]), np.array([1.0]), np.array([2.0])))
    assert near[0] == 1.0
    assert far[0] == pytest.approx(np.exp(-2.0))


def test_polynomials_of_large_numbers_stay_finite():
    w = KernelExpansion("polynomial", degree=5)
    w.grow(1, 1)
    x = Vector(np.array([0]), np.array([1e90]))
    w.step(x, np.array([-1.0]), 1.0)
    assert np.isfinite(w.scores(x)).all()
