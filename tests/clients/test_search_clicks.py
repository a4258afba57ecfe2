"""What clicks say, and how far the learned order may take over: pure functions, and the bound that the rule promises."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.clients.search import EXAMINATION, Evidence, clicks, examination
from feedrank.clients.search.evidence import advantage, coin

PAGE = list("abcdef")


def test_skip_above_leaves_out_what_stood_below_the_last_click():
    assert clicks.skip_above(PAGE, ["d", "b"]) == {"a": 0, "b": 1, "c": 0, "d": 1}
    assert clicks.skip_above(PAGE, []) == {}


def test_last_click_sets_one_result_against_all_above_it():
    assert clicks.last_click(PAGE, ["d", "b"]) == {"a": 0, "b": 0, "c": 0, "d": 1}
    assert clicks.last_click(PAGE, []) == {}


def test_naive_takes_clicks_at_their_word():
    assert clicks.naive(PAGE, ["b"]) == {"a": 0, "b": 1, "c": 0, "d": 0, "e": 0, "f": 0}


def test_inverse_propensities_weigh_a_click_by_how_unlikely_its_place_is_seen():
    assert clicks.inverse_propensities(PAGE, ["a", "d"]) == {"a": 1, "d": pytest.approx(4)}
    assert clicks.inverse_propensities(PAGE, ["f"], [1.0, 0.5]) == {
        "f": 2
    }  # beyond the curve: its last value


@pytest.mark.parametrize(
    "rule", [clicks.naive, clicks.skip_above, clicks.last_click, clicks.inverse_propensities]
)
def test_only_what_was_shown_can_be_clicked(rule):
    with pytest.raises(ValueError, match="'z' was clicked but not shown"):
        rule(PAGE, ["z"])


@given(st.lists(st.sampled_from(PAGE), unique=True), st.permutations(PAGE))
def test_skip_above_says_nothing_of_places_below_and_last_click_agrees_with_it(clicked, shown):
    found = clicks.skip_above(shown, clicked)
    last = max((shown.index(id) for id in clicked), default=-1)
    assert list(found) == shown[: last + 1]
    assert {id for id, grade in found.items() if grade} == set(clicked)
    assert list(clicks.last_click(shown, clicked)) == list(found)


def test_the_default_curve_falls_and_bounds_the_weight_of_a_click():
    assert EXAMINATION[0] == 1
    assert sorted(EXAMINATION, reverse=True) == EXAMINATION
    assert min(EXAMINATION) == pytest.approx(0.1)
    assert examination(3, steepness=0) == [1, 1, 1]
    with pytest.raises(ValueError, match="curve"):
        examination(0)


def test_the_value_of_an_order_is_estimated_without_bias_from_any_page():
    """The mean over clicks on one page of the estimate for another order is the true value of that order."""
    rng = random.Random(0)
    truth = {id: rng.random() for id in PAGE}
    other = PAGE[::-1]
    expected = sum(truth[id] / place for place, id in enumerate(other, 1))
    total, rounds = 0.0, 40_000
    for _ in range(rounds):
        clicked = [id for p, id in zip(EXAMINATION, PAGE, strict=False) if rng.random() < p * truth[id]]
        total += clicks.value(other, clicks.inverse_propensities(PAGE, clicked))
    assert total / rounds == pytest.approx(expected, rel=0.02)


@given(st.permutations(PAGE), st.permutations(PAGE), st.permutations(PAGE), st.sets(st.sampled_from(PAGE)))
def test_advantage_is_bounded_odd_and_zero_for_equal_orders(shown, engine, learned, clicked):
    found = advantage(shown, clicked, engine, learned)
    assert -1 <= found <= 1
    assert advantage(shown, clicked, learned, engine) == pytest.approx(-found)
    assert advantage(shown, clicked, engine, engine) == 0


@given(
    st.lists(st.floats(-1, 1), max_size=300),
    st.floats(0.001, 0.5),
    st.floats(0.05, 0.95),
)
def test_never_more_than_a_constant_is_lost_against_the_engine(gains, start, rate):
    """sum of share_t d_t >= -ln(1 / (1 - start)) / rate, whatever the gains are."""
    evidence = Evidence(start, rate)
    had = 0.0
    for gain in gains:
        had += evidence.share * gain
        evidence.add(gain)
    assert had >= -evidence.most_lost - 1e-9
    assert evidence.pages == len(gains)


@given(st.lists(st.floats(-1, 1), max_size=100), st.floats(0, 1))
def test_a_better_page_never_lowers_the_share(gains, better):
    worse, improved = Evidence(), Evidence()
    for gain in gains:
        worse.add(gain)
        improved.add(max(gain, better))
    assert improved.share >= worse.share


def test_the_share_grows_no_faster_than_the_evidence():
    evidence = Evidence()
    assert evidence.share == pytest.approx(0.01)
    for _ in range(20):
        evidence.add(0.0)
    assert evidence.share == pytest.approx(0.01)  # pages that say nothing change nothing
    pages = 0
    while evidence.share < 0.5:
        evidence.add(0.1)
        pages += 1
    assert pages == math.ceil(math.log(99) / math.log1p(0.09))
    for _ in range(200):
        evidence.add(-0.1)
    assert evidence.share < 1e-3  # and it can be lost again


def test_evidence_survives_a_restart_and_refuses_what_it_cannot_use():
    evidence = Evidence()
    evidence.add(0.25)
    assert Evidence(**json.loads(json.dumps(evidence.to_json()))) == evidence
    for wrong in ({"start": 0}, {"rate": 1}):
        with pytest.raises(ValueError, match="between 0 and 1"):
            Evidence(**wrong)
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        evidence.add(1.5)


def test_coins_are_fair_and_belong_to_their_text():
    drawn = [coin(f"query {i}") for i in range(4000)]
    assert all(0 <= one < 1 for one in drawn)
    assert coin("query 7") == drawn[7]
    assert sum(one < 0.3 for one in drawn) / 4000 == pytest.approx(0.3, abs=0.03)
