"""Clicks as judgements: the two rules against position bias, alone and inside a learner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import SpecError, build, dump
from feedrank.learners.lessons import inverse_propensities, skip_above
from feedrank.learners.losses.rankings import pairwise_disagreement_loss

sessions = st.integers(1, 8).flatmap(
    lambda m: st.tuples(
        st.permutations(range(m)).map(lambda o: np.array(o, dtype=np.intp)),
        st.lists(st.integers(0, m - 1), unique=True),
    )
)


@given(sessions)
def test_what_stood_below_the_last_click_is_left_out(session):
    order, clicked = session
    kept, grades = skip_above(order, clicked)
    position = {item: p for p, item in enumerate(order.tolist())}
    last = max((position[c] for c in clicked), default=-1)
    assert kept.tolist() == sorted(item for item in position if position[item] <= last)
    assert grades.tolist() == [float(item in clicked) for item in kept.tolist()]


@given(sessions, st.lists(st.floats(0.05, 1.0), min_size=1, max_size=10))
def test_a_click_weighs_the_inverse_of_its_chance_to_be_seen(session, curve):
    order, clicked = session
    weights = inverse_propensities(order, clicked, curve)
    for p, item in enumerate(order.tolist()):
        expected = 1 / curve[min(p, len(curve) - 1)] if item in clicked else 0.0
        assert weights[item] == pytest.approx(expected)


ITEMS = [{"id": name, "features": {name: 1}} for name in "abcd"]
LISTNET = {"task": "subset-ranking", "algorithm": "listnet", "learning_rate": 0.5}


@pytest.mark.parametrize("algorithm", ["slam", "minimax-perceptron", "listnet", "predtron"])
def test_clicks_teach_what_the_same_grades_on_the_shorter_list_teach(algorithm):
    spec = {"task": "subset-ranking", "algorithm": algorithm}
    served = {"ranking": ["d", "b", "a", "c"]}
    clicked, judged = build(spec), build(spec)
    one = clicked.learn({"items": ITEMS}, {"clicks": ["a"]}, served=served)
    other = judged.learn({"items": [ITEMS[0], ITEMS[1], ITEMS[3]]}, {"relevance": {"a": 1}})
    assert (one.loss, one.updated) == (other.loss, other.updated)
    scores = dict(clicked.predict({"items": ITEMS}).ranking)
    assert scores == dict(judged.predict({"items": ITEMS}).ranking)
    assert scores["c"] == 0.0


def test_without_a_prediction_the_order_is_that_of_the_weights():
    learner = build(LISTNET)
    for _ in range(3):
        learner.learn({"items": ITEMS}, {"relevance": {"d": 1}})
    before = dict(learner.predict({"items": ITEMS}).ranking)
    outcome = learner.learn({"items": ITEMS}, {"clicks": ["a"]})  # d stands above a now, b and c below
    after = dict(learner.predict({"items": ITEMS}).ranking)
    assert outcome.mistake
    assert after["a"] > before["a"]
    assert after["d"] < before["d"]
    assert (after["b"], after["c"]) == (before["b"], before["c"])


def test_a_click_on_top_and_no_click_at_all_teach_nothing():
    learner = build({"task": "subset-ranking", "algorithm": "slam"})
    for clicks in ([], ["a"]):
        outcome = learner.learn({"items": ITEMS}, {"clicks": clicks})
        assert (outcome.loss, outcome.updated) == (0.0, False)
    assert learner.version == 2


def test_with_an_examination_curve_every_click_counts_on_the_whole_list():
    curve = [1.0, 0.5, 0.25]
    learner, judged = build({**LISTNET, "examination": curve}), build({**LISTNET, "learning_rate": 2.0})
    learner.learn({"items": ITEMS}, {"clicks": ["c"]})  # third: its weight is 4
    judged.learn({"items": ITEMS}, {"relevance": {"c": 1}})
    assert dict(learner.predict({"items": ITEMS}).ranking) == dict(judged.predict({"items": ITEMS}).ranking)


def test_several_clicks_are_several_judgements_of_the_same_scores():
    learner = build({**LISTNET, "examination": [1.0, 0.5]})
    learner.learn({"items": ITEMS}, {"clicks": ["b", "a"]})
    parts = []
    for name in "ab":
        single = build(LISTNET)
        single.learn({"items": ITEMS}, {"relevance": {name: 1}})
        parts.append(dict(single.predict({"items": ITEMS}).ranking))
    for name, score in learner.predict({"items": ITEMS}).ranking:
        assert score == pytest.approx(parts[0][name] + 2 * parts[1][name])


def test_the_examination_curve_is_checked():
    for curve in ([], [0.0], [1.5], [0.5, -1], "x"):
        with pytest.raises(SpecError):
            build({**LISTNET, "examination": curve})
    with pytest.raises(SpecError):
        build({"task": "label-ranking", "algorithm": "listnet", "examination": [1.0]})


def test_weighted_clicks_find_the_true_order_and_naive_ones_do_not():
    rng = np.random.default_rng(4)
    count = 8
    truth = np.linspace(0.1, 0.8, count)  # the engine serves the worst first, always
    curve = (1.0 / np.arange(1, count + 1)).tolist()
    items = [{"id": str(i), "features": {f"f{i}": 1}} for i in range(count)]
    served = {"ranking": [str(i) for i in range(count)]}
    spec = {**LISTNET, "learning_rate": 0.01}
    naive, weighted = build(spec), build({**spec, "examination": curve})
    for _ in range(3000):
        clicks = [str(i) for i in np.flatnonzero(rng.random(count) < truth * curve)]
        naive.learn({"items": items}, {"relevance": dict.fromkeys(clicks, 1)})
        weighted.learn({"items": items}, {"clicks": clicks}, served=served)
    wrong = {}
    for name, learner in (("naive", naive), ("weighted", weighted)):
        order = np.array([int(item) for item, _ in learner.predict({"items": items}).ranking])
        wrong[name] = pairwise_disagreement_loss(order, truth)
    assert wrong["weighted"] <= 0.15
    assert wrong["naive"] >= 0.5


def test_learning_from_clicks_is_deterministic():
    def run():
        learner = build({**LISTNET, "examination": [1.0, 0.3]})
        for clicks in (["c"], ["a", "d"], [], ["b"]):
            learner.learn({"items": ITEMS}, {"clicks": clicks})
        return dump(learner)

    assert run() == run()
