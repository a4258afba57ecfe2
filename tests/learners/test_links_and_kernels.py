"""Weights with links and in kernel form, against their formulas written out."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from feedrank.learners import InputError, SpecError, build, dump, load
from feedrank.learners.instances import Matrix, Vector
from feedrank.learners.weights.eigen import eigen
from feedrank.learners.weights.expansion import KernelExpansion
from feedrank.learners.weights.linear import Linear
from feedrank.learners.weights.links import PNorm, dual_exponent, round_down
from feedrank.learners.weights.trace import TraceNorm


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
    q = dual_exponent(round_down(p))
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
    sizes = np.linalg.norm(w.theta, ord=inner, axis=1)
    N = (sizes**q).sum() ** (1 / q)
    assert (W * w.theta[:features, :labels]).sum() == pytest.approx(N**2)
    assert (pytest.approx(N) if q > 2 else 0.0) == w.N
    r = q / (q - 1)
    rows = np.linalg.norm(W, ord=inner / (inner - 1), axis=1)
    assert (rows**r).sum() ** (1 / r) == pytest.approx(N)


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


@pytest.mark.parametrize("norm", ["l1", "group"])
def test_norms_that_are_kept_stay_those_of_the_weights(norm):
    """Large weights that shrink again leave no error behind, nor do ten thousand steps."""
    rng = np.random.default_rng(4)
    w = PNorm(norm)
    w.grow(60, 5)
    for i in range(3000):
        x, g = vector(rng, 60), rng.standard_normal(5) * (rng.random(5) < 0.5)
        size = 10.0 ** rng.integers(-3, 9) if i % 50 == 0 else 1.0
        w.step(x, g, size)
        if i % 50 == 0:
            w.step(x, g, -size * (1 - 1e-9))
    sizes = np.linalg.norm(w.theta, ord=2 if norm == "group" else w.q, axis=1)
    assert pytest.approx((sizes**w.q).sum() ** (1 / w.q), rel=1e-9) == w.N
    x = vector(rng, 60, 30)
    assert np.allclose(w.scores(x), x.values @ link(w.theta, norm)[x.rows], rtol=1e-8)


def test_q_is_renewed_when_its_power_of_two_doubles():
    w = PNorm("l1")
    exponents = []
    for features in range(1, 70):
        w.grow(features, 3)
        exponents.append(w.q)
    assert exponents == [max(2.0, np.log(2.0 ** int(np.log2(3 * f)))) for f in range(1, 70)]


def singular(theta, q):
    """W = U diag(sigma^(q - 1) / N^(q - 2)) V'."""
    U, sigma, V = np.linalg.svd(theta, full_matrices=False)
    N = (sigma**q).sum() ** (1 / q)
    return U @ np.diag(sigma ** (q - 1) / N ** (q - 2)) @ V if N else theta


@pytest.mark.parametrize(("features", "labels"), [(3, 2), (40, 7), (6, 30), (60, 21), (20, 20)])
def test_the_trace_norm_is_its_formula(features, labels):
    rng = np.random.default_rng(features)
    w = TraceNorm()
    w.grow(features, labels)
    for i in range(300):
        w.step(vector(rng, features), rng.standard_normal(labels) * (rng.random(labels) < 0.4), 0.7)
        if i in (0, 20, 299):
            q = max(2.0, np.log(min(labels, 2 ** int(np.log2(features)))))
            assert w.q == q
            x = vector(rng, features, 20)
            W = singular(w.theta, q)
            assert np.allclose(w.scores(x), x.values @ W[x.rows], rtol=1e-9, atol=1e-10)
            assert np.allclose(w.contributions(x).sum(axis=0), w.scores(x))
            again = restored(w, TraceNorm())
            assert np.array_equal(again.scores(x), w.scores(x))


@given(st.integers(0, 9), st.integers(0, 1000))
def test_the_decomposition_of_a_symmetric_matrix(m, seed):
    rng = np.random.default_rng(seed)
    A = np.round(rng.standard_normal((m, max(0, m - seed % 3))) * 10.0 ** rng.integers(-3, 4), 2)
    G = A @ A.T
    values, V = eigen(G)
    size = 1e-12 * np.abs(G).max(initial=0.0)
    assert np.allclose(V @ np.diag(values) @ V.T, G, rtol=0, atol=size)
    assert np.allclose(V.T @ V, np.eye(m), rtol=0, atol=1e-12)


def test_the_trace_norm_has_a_limited_room():
    learner = build({"task": "multiclass", "algorithm": "predtron", "norm": "trace"})
    for label in "abcdefghij":
        learner.learn({"features": {label: 1, "w": 0.5}}, {"label": label})
    for i in range(3):
        learner.learn({"features": {f"w{3000 * i + j}": 1 for j in range(3000)}}, {"label": "abc"[i]})
    late = {"features": {"w8999": 1, "j": 1}}
    assert learner.predict(late).ranking == learner.predict({"features": {"j": 1}}).ranking
    assert learner.predict({"features": ["w7"]}).label == "a"
    again = load(dump(learner))
    assert again.learn(late, {"label": "c"}) == learner.learn(late, {"label": "c"})
    assert dump(again) == dump(learner)
    before = dump(learner)
    with pytest.raises(InputError, match="4096 features"):
        learner.learn({"features": {f"w{i}": 1 for i in range(4097)}}, {"label": "b"})
    assert dump(learner) == before
    with pytest.raises(SpecError, match="512 labels"):
        build(learner.spec | {"labels": [str(i) for i in range(513)]})


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
