"""The promise: its inequalities on every sequence, its proof by simulation, and what it decides."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners.inference.assurance import (
    AUDIT,
    CREDIT,
    DECIDED,
    DRAWN,
    START,
    TRIAL,
    WATCHED,
    Assurance,
)


def run(chance_of, n, seed, precision=0.95, judges=lambda kind, c: True):
    """(record, kinds, chances of a mistake, certainties) of a stream that is judged at once."""
    rng, record, kinds, chances, sure = np.random.default_rng(seed), Assurance(precision), [], [], []
    decided = audits = 0
    for t in range(n):
        c = rng.random()
        e = chance_of(c, t)
        kind = record.kind(c, rng.random(), decided, audits)
        kinds.append(kind)
        chances.append(e)
        sure.append(c)
        if judges(kind, c):
            record.judge(kind, c, bool(rng.random() >= e))
        else:
            decided += kind == DECIDED
            audits += kind == AUDIT
    return record, np.array(kinds), np.array(chances), np.array(sure)


def easy(c, t):
    return 0.4 * (1 - c) ** 3


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), max_size=800), st.floats(0.5, 0.99)
)
@settings(max_examples=60, deadline=None)
def test_by_account_mistakes_stay_within_it_on_every_sequence(stream, precision):
    record, decided, wrong = Assurance.new(precision, account=True), 0, 0
    for c, chance, right in stream:
        kind = record.kind(c, chance, 0, 0)
        record.judge(kind, c, right)
        decided, wrong = decided + (kind == DECIDED), wrong + (kind == DECIDED and not right)
        assert wrong <= (1 - precision) * decided + (record.pauses + 1) * START + 1e-6
        assert (
            record == Assurance.load(record.dump()) or record.dump() == Assurance.load(record.dump()).dump()
        )


def test_by_account_it_decides_after_some_trials_and_stops_where_much_is_open():
    record = Assurance.new(0.95, account=True)
    kinds = []
    for _ in range(400):
        kinds.append(record.kind(0.9, 0.5, 0, 0))
        record.judge(kinds[-1], 0.9, True)
    assert set(kinds[:32]) == {WATCHED}
    assert kinds[32:72] == [TRIAL] * 40  # START / d
    assert set(kinds[73:]) == {DECIDED}
    assert record.kind(0.9, 0.01, 0, 0) == AUDIT
    assert record.kind(0.9, 0.5, 499, 0) == DECIDED
    assert record.kind(0.9, 0.5, 501, 0) == TRIAL
    assert record.kind(0.9, 0.5, 0, 61) == TRIAL
    for _ in range(6):
        record.judge(DECIDED, 0.9, False)
    assert (record.pauses, record.kind(0.9, 0.5, 0, 0)) == (1, WATCHED)


def test_it_decides_most_of_what_it_may_and_audits_a_share():
    record, kinds, chances, _ = run(easy, 4000, 1)
    late = kinds[2000:]
    assert (late == DECIDED).mean() > 0.35
    assert 0.3 * DRAWN < (late == AUDIT).sum() / (late == DECIDED).sum() < 2.5 * DRAWN
    assert chances[kinds == DECIDED].mean() < 0.05
    assert record.proved(0, 0) >= 0.95


def test_nothing_is_decided_before_it_is_proved_and_nothing_ever_by_a_learner_that_guesses():
    _, kinds, _, _ = run(easy, 100, 2)
    assert DECIDED not in kinds
    for seed in range(5):
        _, kinds, _, _ = run(lambda c, t: 0.3, 1500, seed)
        assert DECIDED not in kinds


def test_what_nobody_judges_is_decided_as_long_as_audits_are_answered():
    _, kinds, chances, _ = run(easy, 3000, 3, judges=lambda kind, c: kind != DECIDED)
    assert (kinds[1500:] == DECIDED).mean() > 0.2
    assert chances[kinds == DECIDED].mean() < 0.05
    _, kinds, _, _ = run(easy, 6000, 3, judges=lambda kind, c: kind in (WATCHED, TRIAL))
    assert (kinds == DECIDED).sum() < 1000  # audits without an answer count as mistakes
    assert (kinds[3000:] == DECIDED).mean() < 0.15


def test_it_stops_soon_after_the_stream_has_changed():
    _, kinds, _, _ = run(lambda c, t: easy(c, t) if t < 3000 else 0.5, 4000, 4)
    assert (kinds[3000:] == DECIDED).sum() <= 60


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([0.6, 0.9, 0.95, 0.99]))
def test_mistakes_are_bounded_on_every_sequence(seed, precision):
    """Adversarial: right until it decides, and then wrong as often as it likes."""
    chance, record, decided, wrong, d = random.Random(seed), Assurance(precision), 0, 0, 1 - precision
    spite = chance.random()
    stretch = [0.0]
    for _ in range(900):
        c = chance.random()
        kind, pauses = record.kind(c, chance.random(), 0, 0), record.pauses
        right = kind != DECIDED or chance.random() > spite
        record.judge(kind, c, right)
        if kind == DECIDED:
            decided += 1
            wrong += not right
            stretch.append(stretch[-1] + (not right) - d)
        assert wrong <= d * decided + START * (record.pauses + 1)
        assert stretch[-1] - min(stretch) <= CREDIT + 1e-9
        if record.pauses > pauses:
            stretch = [0.0]


def test_open_ones_count_as_wrong():
    record, *_ = run(easy, 2000, 5)
    least = [record.proved(n, 0) for n in (0, 10, 30)]
    assert least == sorted(least, reverse=True)
    assert record.kind(1.0, 0.5, 0, 0) == DECIDED
    assert record.kind(1.0, 0.01, 0, 0) == AUDIT
    assert record.kind(1.0, 0.5, 10**6, 10**6) == TRIAL


def test_it_is_kept_as_it_is():
    for n in (0, 50, 1500):
        record, *_ = run(easy, n, 6)
        again = Assurance.load(record.dump())
        for c in (0.2, 0.9, 1.0):
            assert again.kind(c, 0.5, 1, 0) == record.kind(c, 0.5, 1, 0)
        assert again.dump() == record.dump()
    with pytest.raises((KeyError, ValueError)):
        Assurance.load({"precision": 0.9, "counts": [1]})
