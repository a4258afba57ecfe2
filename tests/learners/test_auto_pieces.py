"""The pieces of the automatic learner against closed forms, brute force and their bounds."""

import itertools
import math

import numpy as np
import pytest

from feedrank.learners import build
from feedrank.learners.algorithms.auto.calibration import Calibration
from feedrank.learners.algorithms.auto.decisions import ByBlock, FScore, Weighted, WithReject
from feedrank.learners.algorithms.auto.draws import normals, uniforms
from feedrank.learners.algorithms.auto.drift import THRESHOLD, Drift
from feedrank.learners.algorithms.auto.lead import Lead
from feedrank.learners.algorithms.auto.list_blend import inputs
from feedrank.learners.algorithms.auto.pool import Pool
from feedrank.learners.kernel.trust import log_losses, solve


def test_draws_are_the_same_for_ever():
    assert uniforms(3, 2).tolist() == uniforms(3, 5)[:2].tolist()
    assert [round(float(value), 12) for value in uniforms(0, 3)] == PINNED
    drawn = normals(range(200), 128)
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    assert not np.array_equal(drawn[1], drawn[2])
    assert np.array_equal(drawn[7:9], normals([7, 8], 128))


PINNED = [0.652448486374, 0.701212109522, 0.387124140976]


def test_cholesky_solves():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 5):
        half = rng.normal(size=(size, size))
        A, b = half @ half.T + np.eye(size), rng.normal(size=size)
        assert np.allclose(A @ solve(A.tolist(), b.tolist()), b)


@pytest.mark.parametrize("bits", [True, False])
def test_log_losses_are_those_of_the_probabilities(bits):
    rng = np.random.default_rng(1)
    T = rng.normal(size=(3, 5)) * 3
    Y = np.array([0.0, 1, 0, 0, 0]) if not bits else np.array([0.0, 1, 1, 0, 1])
    losses, p = log_losses(T, Y, bits)
    for row, loss in zip(T, losses, strict=True):
        q = 1 / (1 + np.exp(-row)) if bits else np.exp(row) / np.exp(row).sum()
        expected = -np.mean(np.log(np.where(Y > 0, q, 1 - q))) if bits else -math.log(q[1])
        assert loss == pytest.approx(expected)
    first = 1 / (1 + np.exp(-T[0])) if bits else np.exp(T[0]) / np.exp(T[0]).sum()
    assert p == pytest.approx(first)


@pytest.mark.parametrize("bits", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_pool_loses_no_more_than_its_best_member_and_the_bound(bits, seed):
    """On streams whose best expert changes, with one that leaves, and on hostile ones."""
    rng = np.random.default_rng(seed)
    pool = Pool(bits, np.array([0.5, 0.5, 0.3]))
    for i in range(400):
        Y = (rng.random(4) < 0.3).astype(float) if bits else np.eye(4)[rng.integers(4)]
        good = (2 * Y - 1) * rng.exponential(2) if i < 250 else rng.normal(size=4)
        bad = -3 * Y if seed % 2 else rng.normal(size=4) * 5
        Z = np.stack([good, bad, Y * 4 * rng.normal()])
        if seed >= 3 and i == 200:
            pool.leave(0)
        if not pool.present[0]:
            Z[0] = 0.0
        pool.learn(Z, Y, 1.0, True)
        reply = pool.certificate(["a", "b", "c"])
        assert reply["loss"] <= reply["best_loss"] + reply["bound"] + 1e-9
    assert reply["bound"] < 0.5 * reply["loss"] + 20


@pytest.mark.parametrize("bits", [True, False])
def test_the_bound_holds_where_the_leader_changes_before_any_gap(bits):
    """A lead of one unit in the last place takes all weight: the gap is against who leads next, not that leader alone."""
    pool = Pool(bits, np.array([0.5, 0.5]))
    pool.losses[:] = 0.5, 0.5, np.nextafter(0.5, 0.0)
    pool._refresh()
    assert pool.w.tolist() == [0.0, 0.0, 1.0]
    for i in range(30):
        Y = np.eye(2)[i % 2]
        pool.learn(np.stack([4 * Y - 2, 2 - 4 * Y]), Y, 1.0, True)
        proof = pool.certificate(["a", "b"])
        assert proof["loss"] <= proof["best_loss"] + proof["bound"] + 1e-9
    assert proof["best"] != "b"
    assert pool.w[2] < 0.1


def test_the_pool_finds_the_expert_that_is_right():
    rng = np.random.default_rng(0)
    pool = Pool(False, np.array([0.5, 0.5, 0.3]))
    for _ in range(300):
        Y = np.eye(3)[rng.integers(3)]
        pool.learn(
            np.stack([rng.normal(size=3), 4 * Y + rng.normal(size=3), rng.normal(size=3)]), Y, 1.0, True
        )
    assert pool.weights[1] > 3 * max(pool.weights[0], pool.weights[2])


def test_a_leader_that_is_too_sure_is_taken_back():
    rng = np.random.default_rng(0)
    calibration, p = Calibration("class"), np.array([0.95, 0.03, 0.02])
    for _ in range(2000):
        calibration.learn(p, int(rng.random() >= 0.6), np.zeros(3, dtype=bool))
    shown = calibration.apply(p)
    assert shown[0] == pytest.approx(0.6, abs=0.12)
    assert shown.sum() == pytest.approx(1)
    assert shown[1] / shown[2] == pytest.approx(1.5)


def test_calibration_never_changes_the_first_choice():
    calibration = Calibration("class")
    for _ in range(200):
        calibration.learn(np.array([0.4, 0.3, 0.3]), None, np.zeros(3, dtype=bool))
    for p in ([0.4, 0.35, 0.25], [0.5, 0.5], [1.0, 0.0], [0.34, 0.33, 0.33]):
        shown = calibration.apply(np.array(p))
        assert shown[0] >= shown.max() - 1e-15
        assert shown.sum() == pytest.approx(1)


def test_bits_that_are_too_sure_are_taken_back_and_stay_on_their_side():
    rng = np.random.default_rng(1)
    calibration, p = Calibration("set"), np.array([0.9, 0.1, 0.6, 0.5])
    for _ in range(1000):
        calibration.learn(p, None, rng.random(4) < [0.7, 0.3, 0.1, 0.1])
    shown = calibration.apply(p)
    np.testing.assert_allclose(shown, [0.7, 0.3, 0.5, 0.5], atol=0.12)
    assert ((shown >= 0.5) == (p >= 0.5)).all()
    assert Calibration("ranking").apply(p) is p


def test_the_drift_alarm_is_silent_on_steady_losses():
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drift = Drift()
        alarms += sum(drift.learn(float(rng.random() < 0.2)) for _ in range(2000))
    # 80,000 rounds: one false alarm in 100,000 is promised at most.
    assert alarms <= 1


def test_the_drift_alarm_hears_a_swap_within_a_few_dozen_rounds():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        drift = Drift()
        assert not any(drift.learn(float(rng.random() < 0.1)) for _ in range(500))
        heard = [drift.learn(float(rng.random() < 0.9)) for _ in range(60)]
        assert True in heard
        assert drift.alarms == sum(heard)
        assert drift.last is not None
        assert drift.last > 500
        assert drift.describe()["threshold"] == THRESHOLD


def test_a_lead_is_proved_by_better_losses_only():
    rng = np.random.default_rng(0)
    better, equal = Lead(), Lead()
    for _ in range(400):
        better.learn(float(rng.random() < 0.4), float(rng.random() < 0.2))
    assert better.proved
    proved = 0
    for _ in range(200):
        lead = equal = Lead()
        ever = False
        for _ in range(100):
            lead.learn(float(rng.random() < 0.3), float(rng.random() < 0.3))
            ever |= lead.proved
        proved += ever
    assert not equal.proved or proved <= 200 / 20
    assert proved <= 10 + 3 * math.sqrt(10)


def test_decisions_have_the_least_expected_cost():
    rng = np.random.default_rng(2)
    for _ in range(50):
        p = rng.dirichlet(np.ones(4))
        t = np.log(p)
        costs = rng.uniform(0.1, 2, 4)
        weighted, reject = Weighted(), WithReject()
        weighted.price(costs)
        reject.price(costs * 0.3)
        blocks = ByBlock()
        blocks.group([0, 0, -1, -1])
        for decider, options in ((weighted, range(4)), (reject, range(-1, 4)), (blocks, range(4))):
            expected = {sigma: sum(p[y] * decider.loss(sigma, y) for y in range(4)) for sigma in options}
            assert expected[decider.decide(t, p)] == pytest.approx(min(expected.values()))
            assert decider.margin(t, p) >= 0


def test_the_f_score_takes_the_most_probable_labels():
    decider = FScore()
    assert decider.decide(np.zeros(3), np.array([0.9, 0.05, 0.8])).tolist() == [True, False, True]
    assert not decider.decide(np.zeros(2), np.array([0.01, 0.02])).any()
    masks = [np.array(mask) for mask in itertools.product([False, True], repeat=3)]
    p = np.array([0.6, 0.45, 0.1])
    chance = [math.prod(q if on else 1 - q for q, on in zip(p, mask, strict=True)) for mask in masks]
    cost = {
        str(sigma): sum(c * decider.loss(sigma, y) for c, y in zip(chance, masks, strict=True))
        for sigma in masks
    }
    assert cost[str(decider.decide(np.zeros(3), p))] <= min(cost.values()) + 0.02


def test_ranks_within_a_list_are_shared_by_equals():
    F = inputs(np.array([[0.0, 1.0], [0.5, 1.0], [0.5, 1.0], [1.0, 1.0]]))
    assert F[:, 1].tolist() == [0.0, 0.5, 0.5, 1.0]
    assert F[:, 3].tolist() == [0.0] * 4
    assert F[:, 0].tolist() == [0.0, 0.5, 0.5, 1.0]


def test_least_squares_is_ridge_on_its_own_inputs():
    learner = build({"task": "binary", "labels": ["a", "b"], "algorithm": "least-squares", "bias": False})
    rng = np.random.default_rng(0)
    expert = learner.model.experts[0]
    rows, targets, grown = [], [], None
    for _ in range(40):
        x = rng.normal(size=2)
        instance = {"features": {"p": float(x[0]), "q": float(x[1])}}
        look = learner.transform.vector(learner._read(instance), learner.features)
        label = "b" if x[0] * x[1] > 0 else "a"
        if grown:
            decision = learner.model.decide(look)
            rows.append(decision.judged.inputs.kept["phi"].copy())
            targets.append([float(label == "a"), float(label == "b")])
        before = expert.P.copy(), expert.R.copy()
        learner.learn(instance, {"label": label})
        if not grown:
            grown = expert.P.copy(), expert.R.copy()
    del before
    X, Y = np.array(rows), np.array(targets)
    start_P, start_R = grown
    A = np.linalg.inv(start_P) + X.T @ X
    solution = np.linalg.solve(A, np.linalg.inv(start_P) @ start_R[:, :2] + X.T @ Y)
    assert np.allclose(expert.R[:, :2], solution, atol=1e-6)
    assert np.array_equal(expert.P, expert.P.T)
