"""Dual ascent as a learner: the whole chain lambda M <= D <= P(w), and what the algorithms of the table are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners import InstanceError, build, dump, load
from feedrank.learners.theory.dual_ascent_bounds import complexity, hinge, lemma, mistake_bound, primal

UPDATES = ("I", "II", "III")
COMPLEXITIES = ("squared-norm", "entropy")
N, K = 12, 4


def learner(update="III", kind="squared-norm", task="label-ranking", **more):
    spec = {"task": task, "algorithm": "dual-ascent", "update": update, "complexity": kind, **more}
    if kind == "entropy":
        spec.setdefault("dimension", N)
    return build(spec)


def stream(seed, count, binary=False, relevant=None):
    """Noisy rankings of K labels by N features with |x|^2 <= 1/2 and 0 <= x <= 1."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(N, K))
    for _ in range(count):
        x = (rng.random(N) < 0.4) * (1.0 if binary else rng.random(N))
        x = x if binary else x / max(1.0, np.sqrt(2.0) * np.linalg.norm(x))
        chosen = relevant or int(rng.integers(1, K))
        order = np.argsort(-(x @ truth + 0.1 * rng.normal(size=K)))
        yield x, np.isin(np.arange(K), order[:chosen])


def names(x):
    return {"features": {f"f{j}": float(v) for j, v in enumerate(x) if v}}


def labels(mask):
    return {"labels": [f"y{r}" for r in np.flatnonzero(mask)]}


ALL = {"labels": [f"y{r}" for r in range(K)]}


@pytest.mark.parametrize("kind", COMPLEXITIES)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("binary", [False, True])
def test_the_chain_of_the_certificate(update, kind, binary):
    """lambda M <= D at every moment; D <= P(w) for the learner's own weights, zero, and random competitors."""
    C, gamma = 0.3, 0.4
    model, seen, rng = learner(update, kind, C=C, gamma=gamma, **ALL), [], np.random.default_rng(1)
    promise = kind == "entropy" or not binary
    for x, mask in stream(2, 120, binary):
        model.learn(names(x), labels(mask))
        seen.append((x, mask))
        proof = model.certificate
        assert proof["lambda"] == pytest.approx(gamma * C - C * C / 2)
        assert proof["promised"] <= proof["dual_objective"] + 1e-12
        if promise:
            assert proof["lambda"] * proof["mistakes"] <= proof["dual_objective"] + 1e-12
    assert proof["condition_held"] == promise
    assert proof["mistakes"] == model.progress.mistakes > 0
    competitors = [np.zeros((N, K)), *rng.normal(size=(5, N, K))]
    if kind == "entropy":
        competitors = [
            np.exp(w) / np.exp(w).sum(axis=0)
            for w in (0.0 * competitors[0], *competitors, 5 * competitors[1])
        ]
    for w in competitors:
        assert proof["dual_objective"] <= primal(w, seen, C, gamma, kind) + 1e-9
    assert mistake_bound(primal(competitors[0], seen, C, gamma, kind), C, gamma) >= proof["mistakes"]


@pytest.mark.parametrize("kind", COMPLEXITIES)
def test_the_dual_objective_is_that_of_the_weights(kind):
    """D = gamma T - sum G(theta), from scratch, also where labels and features come late and n grows."""
    model = learner("III", kind, C=0.7, gamma=0.2, **({"dimension": 5} if kind == "entropy" else {}))
    for x, mask in stream(3, 80):
        model.learn(names(x), labels(mask))
    theta = model.model.weights.arrays()["theta"]
    if kind == "entropy":
        assert model.model.weights.dimension == N
        assert not model.certificate["condition_held"]
        G = np.log(np.exp(theta).sum(axis=0) / N).sum()
    else:
        G = 0.5 * (theta**2).sum()
    total = model.model.surrogate.sums[1]
    assert model.certificate["dual_objective"] == pytest.approx(0.2 * total - G, rel=1e-9)


def test_update_I_is_the_perceptron_and_update_II_passive_aggressive():
    perceptron, pa = (
        learner("I", task="multiclass", C=1.0, gamma=1.0),
        learner("II", task="multiclass", C=0.3, gamma=1.0),
    )
    W, V = np.zeros((K, N)), np.zeros((K, N))
    joined: list[int] = []
    for x, mask in stream(4, 150, relevant=1):
        y = int(np.flatnonzero(mask)[0])
        joined = joined if y in joined else [*joined, y]
        others = [r for r in joined if r != y]
        perceptron.learn(names(x), {"label": f"y{y}"})
        pa.learn(names(x), {"label": f"y{y}"})
        if not others:
            continue
        s = max(others, key=lambda r, x=x: W[r] @ x)
        if W[y] @ x <= W[s] @ x:
            W[y] += x
            W[s] -= x
        s = max(others, key=lambda r, x=x: V[r] @ x)
        loss = max(0.0, 1.0 - (V[y] - V[s]) @ x)
        tau = min(0.3, loss / (2 * x @ x)) if x.any() else 0.0
        V[y] += tau * x
        V[s] -= tau * x
    for model, weights in ((perceptron, W), (pa, V)):
        theta = model.model.weights.arrays()["theta"]
        place = {name: i for i, name in enumerate(model.features)}
        expected = [[weights[int(label[1:]), int(name[1:])] for label in model.labels] for name in place]
        assert theta == pytest.approx(np.array(expected), abs=1e-9)


def test_update_I_with_entropy_is_exponentiated_gradient():
    model, w = learner("I", "entropy", C=0.5, gamma=0.5, **ALL), np.full((N, K), 1 / N)
    for x, mask in stream(5, 100):
        model.learn(names(x), labels(mask))
        if mask.all() or not mask.any():
            continue
        t = x @ w
        r = np.flatnonzero(mask)[t[mask].argmin()]
        s = np.flatnonzero(~mask)[t[~mask].argmax()]
        if t[r] <= t[s]:
            for label, sign in ((r, 0.5), (s, -0.5)):
                w[:, label] *= np.exp(sign * x)
                w[:, label] /= w[:, label].sum()
    x = np.random.default_rng(6).random(N)
    ranking = dict(model.predict(names(x)).ranking)
    assert [ranking[f"y{r}"] for r in range(K)] == pytest.approx(x @ w, rel=1e-9)


@pytest.mark.parametrize("kind", COMPLEXITIES)
@pytest.mark.parametrize("truth", [[], [f"y{r}" for r in range(K)]])
def test_an_empty_or_full_set_teaches_nothing(kind, truth):
    model = learner("III", kind, **ALL)
    outcome = model.learn({"features": ["a", "b"]}, {"labels": truth})
    assert (outcome.loss, outcome.mistake, outcome.updated) == (0.0, False, False)
    assert model.certificate["dual_objective"] == 0.0


@pytest.mark.parametrize("kind", COMPLEXITIES)
def test_a_tie_is_a_mistake_though_the_label_is_right(kind):
    model = learner("II", kind, task="multiclass", labels=["a", "b"])
    assert model.predict({"features": ["w"]}).label == "a"
    outcome = model.learn({"features": ["w"]}, {"label": "a"})
    assert (outcome.loss, outcome.mistake, outcome.updated) == (1.0, True, True)
    assert model.learn({"features": ["w"]}, {"label": "a"}).loss == 0.0


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("kind", COMPLEXITIES)
def test_an_instance_without_features_raises_the_dual_and_changes_no_weight(update, kind):
    model = learner(update, kind, C=0.5, gamma=0.6, **ALL)
    outcome = model.learn({"features": []}, {"labels": ["y1"]})
    assert (outcome.loss, outcome.updated) == (1.0, False)
    assert model.certificate["dual_objective"] == pytest.approx(0.3)


def test_entropy_refuses_negative_features_and_says_where():
    model = learner("II", "entropy", **ALL)
    with pytest.raises(InstanceError) as refused:
        model.learn({"features": {"a": 1.0, "b/c": -0.5}}, {"labels": ["y1"]})
    assert refused.value.pointer == "/features/b~1c"
    assert model.version == 0


@pytest.mark.parametrize("kind", COMPLEXITIES)
def test_features_met_first_are_scored_as_the_round_judges_them(kind):
    """What predict shows and what learn judges are one: unseen features weigh exp(0) / Z under entropy."""
    model = (
        learner("III", kind, C=1.0, gamma=0.1, dimension=40) if kind == "entropy" else learner("III", kind)
    )
    rng = np.random.default_rng(8)
    for round_ in range(60):
        words = [f"w{j}" for j in rng.choice(round_ + 5, 4, replace=False)]
        label = f"y{rng.integers(K)}"
        known = dict(model.predict({"features": words}).ranking)
        outcome = model.learn({"features": words}, {"labels": [label]})
        others = [score for name, score in known.items() if name != label]
        if label in known and others:
            assert outcome.mistake == (known[label] <= max(others))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(UPDATES), st.sampled_from(COMPLEXITIES), st.booleans())
def test_saving_in_the_middle_changes_no_bit(seed, update, kind, binary):
    whole = learner(update, kind, dimension=6) if kind == "entropy" else learner(update, kind)
    rounds = list(stream(seed, 30, binary))
    for x, mask in rounds[:15]:
        whole.learn(names(x), labels(mask))
    again = load(dump(whole))
    for x, mask in rounds[15:]:
        assert whole.learn(names(x), labels(mask)) == again.learn(names(x), labels(mask))
    assert dump(whole) == dump(again)
    assert whole.certificate == again.certificate


def test_a_separable_stream_meets_the_mistake_bound():
    """M <= P(w) / lambda with w found by the learner itself on a second pass."""
    C, gamma = 0.5, 0.5
    model, seen = learner("III", C=C, gamma=gamma, **ALL), []
    for x, _ in stream(9, 200):
        mask = np.arange(K) == int(x.argmax()) % K
        model.learn(names(x), labels(mask))
        seen.append((x, mask))
    once = model.progress.mistakes
    theta = model.model.weights.arrays()["theta"]
    w = np.zeros((N, K))
    for row, name in enumerate(model.features):
        w[int(name[1:])] = theta[row]
    assert once <= mistake_bound(primal(w, seen, C, gamma), C, gamma)


def test_the_theory_by_hand():
    assert lemma(0.5, 0.5) == 0.125
    assert hinge(np.array([0.2, 0.5, 0.1]), np.array([True, False, False]), 0.3) == pytest.approx(0.6)
    assert hinge(np.array([0.2, 0.5]), np.array([True, True]), 0.3) == 0.0
    assert complexity(np.full((8, 3), 1 / 8), "entropy") == pytest.approx(0.0)
    assert complexity(np.eye(8)[:, :3], "entropy") == pytest.approx(3 * np.log(8))
    assert complexity(np.ones((2, 2))) == 2.0
    assert mistake_bound(1.0, 2.0, 1.0) == np.inf
    with pytest.raises(ValueError, match="distributions"):
        complexity(np.ones((2, 2)), "entropy")
