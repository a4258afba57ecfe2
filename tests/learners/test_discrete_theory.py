"""The constants and inequalities of the quadratic surrogate's theory, against every decision of small problems."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners import build
from feedrank.learners.losses import rankings, subsets
from feedrank.learners.theory import discrete_bounds as bounds
from feedrank.learners.theory.list_bounds import perceptron_bound, perceptron_margin_bound

BLOCKS = (0, 1, 0, 2)
K = 2


def f_score(z, y):
    return float(subsets.f_score(*subsets.counts(z, y)))


LOSSES = {
    "zero-one": lambda z, y: float(z != y),
    "block-zero-one": lambda z, y: float(BLOCKS[z] != BLOCKS[y]),
    "subset-zero-one": lambda z, y: float((z != y).any()),
    "hamming": lambda z, y: float((z != y).mean()),
    "f-score": f_score,
    "precision": lambda z, y: (min(K, y.sum()) - (z & y).sum()) / K,
    "ndcg": rankings.ndcg_loss,
    "ap": rankings.ap_loss,
    "pairwise-disagreement": rankings.pairwise_disagreement_loss,
}


def problem(loss, m, highest=2):
    parts = bounds.affine(loss, m, K, highest, BLOCKS[:m])
    L = np.array([[LOSSES[loss](z, y) for y in parts.truths] for z in parts.decisions])
    return parts, L


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_decomposition_is_its_loss_and_has_the_constant_of_the_table(loss, m):
    parts, L = problem(loss, m)
    rest = L - parts.F @ parts.U.T
    assert np.allclose(rest, rest[:1], atol=1e-12), "what is left is a term of y alone"
    bound = bounds.A_of(loss, m, K, blocks=len(set(BLOCKS[:m])))
    assert bound * (1 + 1e-12) >= parts.A
    if loss not in ("f-score", "ndcg"):
        assert pytest.approx(bound) == parts.A, "the table is attained"


def test_two_entries_of_the_printed_table_are_too_small():
    assert bounds.affine("ap", 3).largest ** 2 == pytest.approx(1 + 1 / 2 + 1 / 3)
    assert bounds.affine("ap", 3).largest ** 2 > np.log(4)
    m, k = 60, 6
    largest = 2 * np.sqrt(k * (1.0 / (k + np.arange(1, m + 1)) ** 2).sum())
    assert np.sqrt(m * m + 1) * largest > np.sqrt(2) * m


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(LOSSES)), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 2.0, 5.0]))
def test_the_comparison_inequalities_hold_for_every_estimate(loss, seed, p):
    """Eq. (6) and Theorem 3.5 on random distributions over a few x, and estimates g near g* and far from it."""
    parts, L = problem(loss, 3, 1)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(6))
    P = rng.dirichlet(np.full(L.shape[1], 0.3), size=6)
    g = P @ parts.U + rng.standard_normal((6, parts.U.shape[1])) * 10.0 ** rng.uniform(-3, 0)
    excess = float(weights @ ((g - P @ parts.U) ** 2).sum(axis=1))
    risks = P @ L.T
    chosen = (g @ parts.F.T).argmin(axis=1)
    lost = float(weights @ (risks[np.arange(6), chosen] - risks.min(axis=1)))
    assert lost <= bounds.comparison(parts.largest, excess) + 1e-12
    gamma = bounds.margins(L, P)
    if gamma.min() > 1e-9:
        gamma_p = bounds.inverse_margin(gamma, weights, p)
        assert lost <= bounds.theorem_3_5(parts.largest, excess, p, gamma_p) + 1e-12


def test_margins_are_gaps_of_the_risk():
    L = 1.0 - np.eye(3)
    P = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.4, 0.4, 0.2]])
    gamma = bounds.margins(L, P)
    assert gamma == pytest.approx([0.2, 1.0, 0.0])
    assert bounds.low_noise(gamma, [0.1, 0.3, 2.0]) == [1 / 3, 2 / 3, 1.0]


def test_rates_are_those_of_the_paper():
    at = (2.0, 1.5, 1.0, 3.0)
    base = bounds.theorem_3_1(*at, 10_000)
    assert base == pytest.approx(2.0 * 1.5 * 9 / 10)
    assert bounds.corollary_3_6(*at, 10_000, 0.0, 7.0) == pytest.approx(base)  # no assumption at all
    # The more of the mass is far from the boundary, the closer to n^(-1/2).
    for p, rate in ((0.0, 1 / 4), (1.0, 1 / 3), (2.0, 3 / 8), (1e9, 1 / 2)):
        ratio = bounds.corollary_3_6(*at, 16 * 10_000, p, 7.0) / bounds.corollary_3_6(*at, 10_000, p, 7.0)
        assert ratio == pytest.approx(16.0**-rate)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
def test_the_perceptron_of_classification_keeps_theorem_1(noise):
    """Predtron on two labels is that perceptron; u is a separator, scaled to a margin of 1 or to anything else."""
    rng = np.random.default_rng(int(10 * noise))
    learner = build({"task": "binary", "labels": ["-", "+"], "algorithm": "predtron"})
    direction = rng.standard_normal(6)
    direction /= np.linalg.norm(direction)
    rounds, mistakes = [], 0
    for _ in range(400):
        x = rng.standard_normal(6)
        y = 1.0 if x @ direction > 0 else -1.0
        x += 0.2 * y * direction
        if rng.random() < noise:
            y = -y
        outcome = learner.learn({"features": x.tolist()}, {"label": "+" if y > 0 else "-"})
        mistakes += outcome.mistake
        if outcome.mistake:
            rounds.append((x, y))
    R = max(float(np.linalg.norm(x)) for x, _ in rounds)
    for scale in (0.2, 1.0, 5.0):
        hinge = sum(max(0.0, 1.0 - y * scale * (x @ direction)) for x, y in rounds)
        assert mistakes <= perceptron_bound(R, scale, hinge)
    if not noise:
        assert mistakes <= perceptron_margin_bound(R, 0.2)
        assert perceptron_bound(R, 5.0) == perceptron_margin_bound(R, 0.2)


def test_the_decisions_of_a_decomposition_are_all_of_them():
    assert len(bounds.affine("precision", 4, K).decisions) == len(list(itertools.combinations(range(4), K)))
    assert len(bounds.affine("ndcg", 3, highest=2).truths) == 27
