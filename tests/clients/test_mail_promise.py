"""The precision that is promised for filed mail is kept, whatever the predictions are worth."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.clients.mail.promise import (
    START,
    WINDOW,
    Credit,
    Judgement,
    certainty,
    earned,
    judged,
    may_file,
    risk,
)


def bound(precision, filed):
    """d N, and at most 3 more before 20 / d messages were filed."""
    d = 1 - precision
    return d * filed + START * max(0.0, 1 - d * filed / 20)


def play(luck, rounds, rate, precision=0.95):
    """File by the rule in a world where a prediction of certainty c is wrong with chance rate(t, c); what was filed."""
    record, filed, credit = [], [], Credit()
    for t in range(rounds):
        sureness = luck.random()
        right = luck.random() >= rate(t, sureness)
        chance = risk(record[-WINDOW:], "a", sureness)
        if may_file(chance, credit, 0.0, precision):
            filed.append(right)
            credit = judged(credit, right, precision)
        else:
            credit = earned(credit, chance, right, precision)
        record.append(Judgement("a", sureness, right))
    return filed


@pytest.mark.parametrize("precision", [0.9, 0.95])
def test_the_promise_holds_on_a_stream_and_much_is_filed(precision):
    filed = play(random.Random(3), 2000, lambda t, c: (1 - c) / 2, precision)
    assert len(filed) > (300 if precision == 0.9 else 100)
    for end in range(1, len(filed) + 1):
        assert filed[:end].count(False) <= bound(precision, end)


def test_the_promise_holds_when_everything_changes():
    """First all is right above 0.3; from then on nothing is better than chance, and the record knows that only later."""
    filed = play(random.Random(5), 1500, lambda t, c: (0.01 if c > 0.3 else 0.6) if t < 700 else 0.5)
    assert len(filed) > 300
    for end in range(1, len(filed) + 1):
        assert filed[:end].count(False) <= bound(0.95, end)


@given(st.lists(st.booleans(), max_size=300), st.floats(0.5, 0.99))
def test_mistakes_never_exceed_the_bound_whatever_the_estimate_says(outcomes, precision):
    credit, wrong, filed = Credit(), 0, 0
    for right in outcomes:
        if may_file(0.0, credit, 0.0, precision):  # the estimate always says that there is no risk at all
            credit = judged(credit, right, precision)
            filed += 1
            wrong += not right
            assert wrong <= bound(precision, filed) + 1e-9


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=600), st.floats(0.5, 0.99))
def test_mistakes_stay_within_the_debt_and_loans_grow_with_the_logarithm(outcomes, precision):
    d = 1 - precision
    credit, wrong, filed, watched = Credit(), 0, 0, 0
    for right, risky in outcomes:
        chance = 0.4 if risky else 0.0
        if may_file(chance, credit, 0.0, precision):
            credit = judged(credit, right, precision)
            filed, wrong = filed + 1, wrong + (not right)
        else:
            watched += credit.left < 1
            credit = earned(credit, chance, right, precision)
        assert wrong <= d * filed + credit.debt + 1e-9
        assert 2**credit.loans <= 1 + d * watched + 1e-6
        assert credit.debt <= START + credit.loans


def test_a_pause_ends_when_the_predictions_are_good_again_and_the_next_proof_is_twice_as_long():
    paused = Credit(0.5, 2.0)
    assert not may_file(0.0, paused, 0.0, 0.95)
    assert (
        earned(paused, 0.06, True, 0.95) == paused
    )  # too risky to be filed with a loan, so it proves nothing
    assert earned(paused, 0.05, True, 0.95).proof == pytest.approx(0.05)
    assert earned(Credit(-0.5, 2.0), 0.03, True, 0.95).proof == pytest.approx(0.05)
    credit = earned(paused, 0.0, False, 0.95)
    for length in (20, 40):
        for _ in range(length):
            assert not may_file(0.0, credit, 0.0, 0.95)
            credit = earned(credit, 0.0, True, 0.95)
        assert may_file(0.0, credit, 0.0, 0.95)
        credit = judged(credit, False, 0.95)
    assert (credit.loans, credit.proof) == (2, 0.0)


def test_without_a_record_nothing_is_filed():
    assert risk([Judgement("a", 1.0, True)] * 19, "a", 9.0) == 1.0
    assert not may_file(1.0, Credit(1e9), 0.0, 0.95)
    assert not may_file(0.0, Credit(), START, 0.95)  # all credit is reserved for what is not judged yet


def test_a_folder_has_a_record_of_its_own():
    record = [Judgement("a", 0.5, True), Judgement("b", 0.5, False)] * 30
    assert risk(record, "a", 0.5) < risk(record, "new", 0.5) < risk(record, "b", 0.5)
    assert certainty(record, "a", 1.0) == 31 / 32
    assert certainty(record, "b", 1.0) == 1 / 32
    assert certainty(record, "new", 1.0) == 1 / 2


def test_a_message_less_certain_than_all_before_is_a_guess():
    record = [Judgement("a", 0.1 + 0.01 * step, True) for step in range(90)]
    assert risk(record, "a", 0.099) >= 0.5
    assert risk(record, "a", 0.99) < 0.05
