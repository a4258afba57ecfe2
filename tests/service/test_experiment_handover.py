"""The rule that hands traffic over: its bound against every bias, its speed, its caps; and the fold of behaviour."""

import random

import orjson
import pytest

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.experiments import plan as plans
from feedrank.service.experiments.behaviour import HALF, MOST, NAMES, Behaviour, looked
from feedrank.service.experiments.handover import (
    BUDGET,
    DRAFT,
    FEW,
    FIRST,
    GENERATION,
    LEAST,
    MARGIN,
    PROBE,
    SECOND,
    SLACK,
    WATCH,
    Handover,
)
from feedrank.service.experiments.interleave import chances, draft, gain

SPEC = {"task": "subset-ranking", "algorithm": "listnet", "labels": []}
WON, LOST = {"gain": 1.0}, {"gain": -1.0}


def warm(events=(), **options):
    rule = Handover(0.05, lessons=LEAST, **options)
    for event in events:
        rule.take(event)
    return rule


def test_nothing_is_shown_before_there_are_lessons():
    rule = Handover(0.05)
    for _ in range(LEAST):
        assert rule.mode(0.0) == FIRST
        rule.take({})
    assert rule.mode(0.999) == DRAFT


def test_a_better_arm_is_proved_and_takes_nearly_all_pages():
    rule = warm([WON] * 30)
    assert rule.proved
    assert rule.shares == (WATCH, 1 - WATCH)
    assert (rule.mode(0.5), rule.mode(0.99)) == (SECOND, DRAFT)
    assert rule.report()["share"] == 0.9


def test_a_bad_arm_spends_its_budget_within_a_few_pages_and_can_come_back():
    rule = warm([LOST] * (int(BUDGET) - 1))
    assert rule.shares == (1.0, 0.0)
    rule.take(LOST)
    assert rule.shares[0] < PROBE
    assert rule.mode(0.999) == FIRST
    for event in [LOST] * 50 + [WON] * (int(BUDGET) + 1):
        rule.take(event)
    assert rule.shares == (1.0, 0.0)


def test_a_worse_arm_is_probed_less_and_less_but_never_given_up():
    rule = warm([LOST] * 100)
    assert not rule.proved
    assert 0.01 < rule.shares[0] < 0.1


def test_a_slow_starter_is_judged_without_its_first_pages():
    rule = warm([LOST] * 200)
    pages = 0
    while not rule.proved:
        rule.take(WON)
        pages += 1
        assert pages < 100


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 6.0])
def test_clicks_by_place_alone_prove_nothing_whatever_the_bias(exponent):
    """40 courses of 300 drafted pages, each proving with a chance of at most 5 % that the second arm is better where both
    are equally good, and that it is safe where it loses MARGIN of the pages: more than 6 have a chance of 0.3 %."""
    rng, better, proved = random.Random(1), 0, 0
    ids = [str(i) for i in range(10)]
    for course in range(40):
        equal, losing, highest = warm(), warm(), 1.0
        for number in range(300):
            one, other = rng.sample(ids, 10), rng.sample(ids, 10)
            drafted = draft([one, other], "key", f"{course} {number}", 5)
            places = [k for k in range(5) if rng.random() < (k + 1.0) ** -exponent]
            if places:
                shown = drafted.names
                Q, clicked = chances([one, other], 5), [shown[place] for place in places]
                event = {"gain": gain([one, other], Q, shown, clicked)}
                equal.take(event)
                highest = max(highest, equal.value)
                # (1 - m) E X - m = -MARGIN, with E X = 0
                losing.take(LOST if rng.random() < MARGIN else event)
        better += highest >= 20
        proved += losing.proved
    assert better <= 6
    assert proved <= 6


def test_an_arm_that_becomes_worse_loses_its_share_again():
    rule = warm([WON] * 40)
    pages = 0
    while rule.shares == (WATCH, 1 - WATCH):
        rule.take(LOST)
        pages += 1
    assert rule.shares == (1.0, 0.0)  # in doubt: compared on every page, until the one or the other is sure
    doubting = warm([WON] * 40 + [LOST] * pages + [WON] * 10)
    assert doubting.shares == (WATCH, 1 - WATCH)
    while rule.proved:
        rule.take(LOST)
        pages += 1
        assert pages < 60
    assert (rule.restarts, rule.value, rule.pages) == (1, 1.0, 0)


def test_what_is_safe_is_handed_over_and_goes_on_to_prove_that_it_is_better():
    rule = warm()
    while not rule.proved:
        rule.take({"gain": 0.1 * (-1) ** rule.pages})
    assert rule.value < 20
    assert not rule.better
    while not rule.better:
        rule.take({"gain": 0.2})
        assert rule.pages < 500
    assert rule.report()["better"]
    for _ in range(2000):  # without an end to what it might say
        rule.take(WON)
    while rule.proved:
        rule.take(LOST)
    assert not rule.better


def test_one_unit_counts_only_for_its_part():
    rule = warm({"unit": 100 + number} for number in range(400))
    for number in range(40):
        rule.take({**WON, "unit": 7, "coins": number})
    assert rule.pages == 1
    assert not rule.may_count(7)
    assert rule.may_count(8)
    assert rule.may_count(None)
    for number in range(2 * GENERATION):
        rule.take({"unit": 1000 + number})
    assert rule.may_count(7)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_units_that_click_at_will_have_no_more_pages_than_their_number_allows(share):
    """20 units send a share h of the pages: at most 20 max(1, SLACK / (1 - h)) of theirs count, and a few of the first."""
    rng, rule, counted = random.Random(5), warm(), 0
    for number in range(GENERATION):
        bot = rng.random() < share
        event = {**WON, "unit": number % 20 if bot else 1000 + number, "coins": number}
        counted += rule.take(event) and bot
    assert 20 <= counted <= FEW + 20 * max(1.0, SLACK / (1 - share))


def test_a_page_without_a_click_is_neither_evidence_nor_a_lesson():
    rule = Handover(0.05)
    for _ in range(500):
        assert not rule.take({"truth": {"clicks": []}, "credits": [0.0, 0.0]})
    assert (rule.lessons, rule.pages, rule.safety) == (0, 0, 1.0)


def test_a_small_team_is_no_attack():
    rule = warm({**WON, "unit": number % 4, "coins": number} for number in range(400))
    assert rule.proved
    assert rule.alarm is None
    assert all(rule.may_count(unit) for unit in range(4))


def test_the_same_list_by_the_same_coins_counts_once():
    rule = warm([{**WON, "unit": 7, "coins": 1}, {**WON, "unit": 7, "coins": 1}])
    assert rule.pages == 1


def test_a_crowd_from_few_units_raises_the_alarm_and_takes_the_share_back():
    rule = warm([WON] * 40)
    assert rule.alarm is None
    for number in range(300):
        rule.take({"unit": number if number % 3 else 0})
    assert rule.alarm
    assert rule.shares[1] == 0
    for number in range(2 * GENERATION):
        rule.take({"unit": 5000 + number})
    assert rule.alarm is None
    assert rule.shares[1] == 0.9


def test_the_state_survives_as_json_bit_by_bit():
    rng = random.Random(3)
    events = [
        {"gain": 2 * x - 1, "unit": rng.randrange(50), "coins": i}
        for i, x in enumerate(map(rng.betavariate, [1] * 200, [1] * 200))
    ]
    whole = warm(events)
    half = warm(events[:100])
    half = Handover.from_json(0.05, orjson.loads(orjson.dumps(half.to_json())))
    for event in events[100:]:
        half.take(event)
    assert half.to_json() == whole.to_json()


@pytest.mark.parametrize(
    "definition",
    [
        {"arms": ["a", "b"], "handover": True},
        {"arms": ["a", "b", "c"], "method": "interleave", "handover": True},
        {"arms": ["a", "b"], "method": "interleave", "handover": 1},
        {"arms": ["a", "b"], "method": "interleave", "behaviour": "yes"},
    ],
)
def test_definitions_that_are_refused(definition):
    with pytest.raises(Unprocessable):
        plans.read("e", definition, [SPEC] * len(definition["arms"]))


# Behaviour


def page(shown, clicked, query=None):
    record = {"served": {"ranking": shown}} | ({} if query is None else {"query": query})
    return looked(record, {"clicks": clicked})


def test_only_places_down_to_the_last_click_were_looked_at():
    assert page(["a", "b", "c"], ["b"], 5) == {"looked": ["a", "b"], "clicked": ["b"], "query": 5}
    assert page(["a", "b"], []) is None
    assert page(["a", "b"], ["x"]) is None


def test_rates_are_shrunk_and_belong_to_items_queries_and_units():
    fold = Behaviour()
    for unit in range(20):
        fold.take(page(["a", "b"], ["b"], 1), unit)
    mean = (20 + 1) / (40 + 10)
    rate = (20 + 10 * mean) / (20 + 10)
    assert fold.features("b", 1, 9) == [rate, (20 + 10 * rate) / 30, 1.0]
    assert fold.features("b", 2, 88) == [rate, rate, 0.0]
    assert fold.features("new", 1, 9) == pytest.approx([mean, mean, 0.0])
    assert fold.features("a", 1, 9)[1] < fold.features("a", 2, 9)[1] < mean


def test_nobody_clicks_an_item_up_by_clicking_it_often():
    fold = Behaviour()
    fold.take(page(["a", "b"], ["b"], 1), unit=9)
    once = fold.features("b", 1, 8)
    for _ in range(50):
        fold.take(page(["b"], ["b"], 1), unit=9)
    assert fold.features("b", 1, 8) == once
    fold.take(page(["b"], ["b"], 1), unit=10, rates=False)
    assert fold.features("b", 1, 8) == once
    assert fold.features("b", 1, 10)[2] == 1.0


def test_old_clicks_fade_and_tables_are_bounded():
    fold = Behaviour(pages=HALF - 1)
    fold.items["old"] = [8.0, 8.0]
    fold.take(page(["a"], ["a"]), None)
    assert fold.items["old"] == [4.0, 4.0]
    for number in range(MOST + 10):
        fold.take(page([f"i{number}"], [f"i{number}"]), None)
    assert len(fold.items) == MOST
    assert "old" not in fold.items
    assert Behaviour.from_json(orjson.loads(orjson.dumps(fold.to_json()))) == fold


def test_columns_are_added_and_what_is_no_table_is_left_to_be_refused():
    fold = Behaviour()
    table = {"ids": ["a"], "columns": ["x"], "rows": [[1.0]]}
    extended = fold.extended(table, None, None)
    assert extended["columns"] == ["x", *NAMES]
    assert len(extended["rows"][0]) == 4
    for odd in ({"ids": ["a"]}, {"ids": ["a"], "columns": ["x"], "rows": []}, [{"id": "a"}], None):
        assert fold.extended(odd, None, None) == odd
