"""The examination curve: chances of places against drafts by brute force, the exponent found again, what a click counts."""

import random
from collections import Counter
from itertools import pairwise

import orjson
import pytest

from feedrank.service.experiments.examination import MOST, PRIOR, Examination, moves
from feedrank.service.experiments.interleave import DISCOUNTS, PLACES, WIDE, chances, draft, gain

ORDERS = [
    (list("abcdef"), list("abcdef")),
    (list("abcdef"), list("badcfe")),
    (list("abcdef"), list("fedcba")),
    (list("abcdef"), list("acbdef")),
    (list("abcdef"), list("abdcfe")),
    (list("a"), list("a")),
]


@pytest.mark.parametrize("places", [1, 3, 6])
@pytest.mark.parametrize("orders", ORDERS)
def test_chances_are_those_of_the_draft(orders, places):
    rounds = 800
    seen = Counter()
    for number in range(rounds):
        for place, name in enumerate(draft(orders, "key", str(number), places).names):
            seen[name, place] += 1
    Q = chances(orders, places)
    for place in range(min(places, len(orders[0]))):
        assert sum(row[place] for row in Q.values()) == 1
    for name, row in Q.items():
        for place, chance in enumerate(row):
            assert seen[name, place] / rounds == pytest.approx(chance, abs=0.08)
    assert {name for name, _ in seen} <= set(Q)


@pytest.mark.parametrize("orders", ORDERS[1:5])
@pytest.mark.parametrize("places", [(0,), (1,), (0, 3), (0, 1, 2, 3, 4, 5)])
def test_clicks_by_place_gain_nothing_on_average_whatever_the_places(orders, places):
    """The mean over all drafts of two orders, by the chances of their lists; each is in [-1, 1]."""
    rounds, total = 800, 0.0
    Q = chances(orders)
    for number in range(rounds):
        shown = draft(orders, "key", str(number)).names
        x = gain(orders, Q, shown, [shown[place] for place in places])
        assert -1 <= x <= 1
        total += x
    assert total / rounds == pytest.approx(0, abs=0.08)


def test_a_click_gains_by_how_far_up_the_second_order_moves_it():
    first, second = list("abcdefgh"), list("habcdegf")  # h from the end to the top, g above f
    Q = chances([first, second])
    drafts = {tuple(draft([first, second], "key", str(number)).names) for number in range(60)}
    for shown in drafts:
        x = {name: gain([first, second], Q, shown, [name]) for name in first}
        assert x["h"] > 0 or shown.index("h") > 1
        assert abs(x["g"]) < 0.2
        assert gain([first, second], Q, shown, ["h", "g"]) == pytest.approx((x["h"] + x["g"]) / 2)
        assert gain([second, first], Q, shown, ["h"]) == pytest.approx(-x["h"])
    assert max(gain([first, second], Q, shown, [shown[0]]) for shown in drafts) == 1.0


def test_a_page_that_could_say_little_counts_in_proportion():
    """Two orders that swap neighbours: what a click says is the difference of discounts, in units of WIDE."""
    first = list("abcdef")
    for place, discounts in enumerate(pairwise(DISCOUNTS[: len(first)])):
        second = [*first[:place], first[place + 1], first[place], *first[place + 2 :]]
        Q, x = chances([first, second]), (discounts[0] - discounts[1]) / WIDE
        for number in range(8):
            shown = draft([first, second], "key", str(number)).names
            assert gain([first, second], Q, shown, [first[place + 1]]) == pytest.approx(x)
            assert gain([first, second], Q, shown, [first[place]]) == pytest.approx(-x)


def test_a_page_without_clicks_or_with_one_order_gains_nothing():
    order = list("abc")
    assert gain([order, order], chances([order, order]), order, ["a"]) == 0
    assert gain([order, order[::-1]], chances([order, order[::-1]]), order, []) == 0


def harvested(exponent, pages, seed=0, attraction=lambda item: 0.9 if item < 3 else 0.2):
    """Drafts of an order and a shuffled one; items by number are more attractive, so relevance and place go together."""
    rng, state = random.Random(seed), Examination()
    for number in range(pages):
        one = [str(i) for i in range(10)]
        other = [str(i) for i in sorted(range(10), key=lambda i: i + rng.gauss(0, 2))]
        shown = draft([one, other], "key", f"{seed} {number}", 10).names
        clicked = [
            name
            for place, name in enumerate(shown)
            if rng.random() < (place + 1.0) ** -exponent and rng.random() < attraction(int(name))
        ]
        state.take(moves(chances([one, other], 10), shown, clicked))
    return state


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_is_found_though_what_is_relevant_stands_high(exponent):
    eta, precision = harvested(exponent, 1500).posterior
    assert eta == pytest.approx(exponent, abs=0.25)
    assert precision > 50


def test_without_clicks_it_is_the_prior_and_the_correction_is_cautious():
    state = Examination()
    assert state.posterior[0] == pytest.approx(PRIOR)
    assert 0 < state.exponent < PRIOR
    assert state.curve()[0] == 1
    assert sorted(state.curve(), reverse=True) == state.curve()


def test_a_click_counts_as_rare_as_a_look_at_its_place_is_and_never_more_than_a_limit():
    state = harvested(2.0, 1000)
    shown = [str(i) for i in range(20)]
    grades = state.grades(shown, ["0", "1", "19"])
    assert list(grades) == ["0", "1", "19"]
    assert grades["0"] == 1
    assert 2 < grades["1"] < MOST
    assert grades["19"] == MOST


def test_an_item_that_could_stand_nowhere_else_says_nothing():
    same = [str(i) for i in range(5)]
    assert moves(chances([same, same]), same, same) == []
    (move, back) = moves(chances([list("abc"), list("bac")]), ["b", "a", "c"], ["a", "b"])
    assert (move, back) == ((0, 1, 1.0), (1, 0, 1.0))


def test_places_beyond_the_curve_are_left_out():
    one = [str(i) for i in range(30)]
    harvest = moves(chances([one, one[::-1]], 30), draft([one, one[::-1]], "k", "1", 30).names, one)
    assert harvest
    assert all(j < PLACES and k < PLACES for j, k, _ in harvest)


def test_the_state_survives_as_json_bit_by_bit():
    state = harvested(1.0, 50)
    again = Examination.from_json(orjson.loads(orjson.dumps(state.to_json())))
    assert again == state
    assert again.report() == state.report()
    assert set(state.report()) == {"curve", "exponent", "deviation", "clicks"}
