"""The directions of SLAM, the minimax perceptron and ListNet against loops over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.algorithms.listnet import ListNet
from feedrank.learners.algorithms.minimax import Minimax
from feedrank.learners.algorithms.slam import Slam
from feedrank.learners.losses.rankings import ap_loss, ndcg_loss
from feedrank.learners.model import Round

# Few distinct scores and grades, so that ties are the rule.
scores = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0])
pairs = st.lists(st.tuples(scores, st.integers(0, 3)), min_size=1, max_size=9)
lists = pairs.map(lambda rows: (np.array([r[0] for r in rows]), np.array([float(r[1]) for r in rows])))
measures = st.one_of(
    st.tuples(st.just("ndcg"), st.one_of(st.none(), st.integers(1, 10))), st.just(("ap", None))
)


def slam_by_pairs(t, y, measure, cutoff, margin):
    """phi, its subgradient and RML from Eq. (8)-(16), item by item."""
    m = len(t)
    order = sorted(range(m), key=lambda i: (-t[i], i))
    if measure == "ap":
        rml = ap_loss(np.array(order), y)
        y = [float(grade > 0) for grade in y]
    else:
        rml = ndcg_loss(np.array(order), y, cutoff)
    places = sorted(range(m), key=lambda i: (-y[i], -t[i], i))
    if measure == "ap":
        raw = [float(y[i]) for i in places]
    else:
        raw = [
            (2 ** y[i] - 1) / np.log2(p + 2) if cutoff is None or p < cutoff else 0.0
            for p, i in enumerate(places)
        ]
    phi, g = 0.0, np.zeros(m)
    for p, i in enumerate(places):
        v = raw[p] / sum(raw) if sum(raw) else 0.0
        lower = [j for j in order if y[j] < y[i]]
        if lower and margin + t[lower[0]] - t[i] > 0:
            phi += v * (margin + t[lower[0]] - t[i])
            g[lower[0]] += v
            g[i] -= v
    return phi, g, rml


@given(lists, measures, st.sampled_from([0.3, 1.0, 2.0]))
def test_slam_equals_the_sum_over_pairs(case, asked, margin):
    (t, y), (measure, cutoff) = case, asked
    phi, expected, rml = slam_by_pairs(t, y, measure, cutoff, margin)
    g = Slam(measure, cutoff, margin).direction(Round(t, y))
    if rml == 0.0:
        assert g is None
    else:
        assert g is not None
        assert g == pytest.approx(expected, abs=1e-12)
        if margin >= 1.0:
            assert phi >= rml - 1e-12  # Theorem 4: the surrogate bounds the loss


@given(lists, st.lists(scores, min_size=9, max_size=9))
def test_the_direction_of_ap_is_a_subgradient(case, elsewhere):
    (t, y), other = case, np.array(elsewhere[: len(case[0])])
    g = Slam("ap").direction(Round(t, y))
    if g is not None:
        here, there = (slam_by_pairs(s, y, "ap", None, 1.0)[0] for s in (t, other))
        assert there >= here + g @ (other - t) - 1e-9


@given(lists, measures)
def test_minimax_takes_the_worst_pair(case, asked):
    (t, y), (measure, cutoff) = case, asked
    g = Minimax(measure, cutoff).direction(Round(t, y))
    order = np.argsort(-t, kind="stable")
    loss = ap_loss(order, y) if measure == "ap" else ndcg_loss(order, y, cutoff)
    if loss == 0.0:
        assert g is None
        return
    level = (y > 0).astype(float) if measure == "ap" else y
    worst = max(
        ((t[j] - t[i], -i, -j) for i in range(len(t)) for j in range(len(t)) if level[i] > level[j]),
        default=None,
    )
    assert worst is not None
    expected = np.zeros(len(t))
    expected[-worst[1]], expected[-worst[2]] = -1.0, 1.0
    assert g is not None
    assert np.array_equal(g, expected)


@given(lists)
def test_listnet_is_the_gradient_of_its_cross_entropy(case):
    t, y = case
    g = ListNet().direction(Round(t, y))
    if len(set(y)) == 1:
        assert g is None
        return
    target = np.exp(y) / np.exp(y).sum()

    def entropy(s):
        return -(target @ (s - np.log(np.exp(s).sum())))

    assert g is not None
    for i in range(len(t)):
        step = np.zeros(len(t))
        step[i] = 1e-6
        assert g[i] == pytest.approx((entropy(t + step) - entropy(t - step)) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("surrogate", [Slam(), Slam("ap"), Slam(cutoff=3), Minimax("ap"), ListNet()])
@pytest.mark.parametrize("grade", [0.0, 1.0, 30.0])
def test_lists_of_one_level_teach_nothing(surrogate, grade):
    assert surrogate.direction(Round(np.array([0.0, 2.0, 1.0]), np.full(3, grade))) is None
    assert surrogate.direction(Round(np.array([1.0]), np.array([grade]))) is None


@pytest.mark.parametrize("surrogate", [Slam(), Slam("ap"), Slam(cutoff=3), Minimax(), ListNet()])
def test_high_grades_give_finite_directions_that_sum_to_zero(surrogate):
    g = surrogate.direction(Round(np.array([1.2, 0.5, 1.0, 5.0]), np.array([30.0, 2000.0, 0.0, 1.0])))
    assert g is not None
    assert np.isfinite(g).all()
    assert g.sum() == pytest.approx(0.0, abs=1e-12)
    assert g[1] < 0


def test_average_precision_reads_every_grade_above_zero_as_relevant():
    t = np.array([3.0, 1.0, 2.0, 0.0])
    graded, flat = np.array([0.0, 3.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 0.0])
    for surrogate in (Slam("ap"), Minimax("ap")):
        assert np.array_equal(surrogate.direction(Round(t, graded)), surrogate.direction(Round(t, flat)))


def test_ten_thousand_items_take_no_quadratic_time():
    rng = np.random.default_rng(1)
    y = rng.random(10_000)  # as many levels as items
    for surrogate in (Slam(), Minimax(), ListNet()):
        g = surrogate.direction(Round(rng.normal(size=10_000), y))
        assert g is not None  # an m x m table of pairs would take 800 MB and run into the time limit
        assert g.sum() == pytest.approx(0.0, abs=1e-9)
