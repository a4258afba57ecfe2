"""Slots: draws without replacement with the probabilities they say, a reward for each, none left empty without need."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import InputError, build, dump, load
from feedrank.learners.choice.slots import chance_for, openings

SPEC = {"task": "choice"}
ITEMS = [{"id": name, "features": {}} for name in "abcd"]
PAGE = {"items": ITEMS, "slots": [{"id": "top"}, {"id": "side", "features": ["small"]}]}


def served_of(prediction):
    return [(one["id"], one["choice"], one["probability"]) for one in prediction.served()["slots"]]


def test_every_pair_of_items_is_drawn_as_often_as_the_probabilities_say():
    learner = build(SPEC)
    chance = np.random.default_rng(0)
    for _ in range(30):
        shown = learner.predict(PAGE, chance=chance.random())
        rewards = {slot: float(choice == "b") for slot, choice, _ in served_of(shown)}
        learner.learn(PAGE, {"reward": rewards}, served=shown.served())
    counts, expected, n = {}, {}, 4000
    for i in range(n):
        (_, one, p), (_, two, q) = served_of(learner.predict(PAGE, chance=(i + 0.5) / n))
        assert one != two
        counts[one, two] = counts.get((one, two), 0) + 1
        expected[one, two] = n * p * q
    assert sum(expected.values()) == pytest.approx(n, rel=0.02)
    for pair, count in counts.items():
        assert abs(count - expected[pair]) < 5 * np.sqrt(expected[pair]) + 2
    assert chance_for(0.25, 0) == 0.25
    assert len({chance_for(0.25, i) for i in range(100)}) == 100


@given(st.integers(1, 4), st.integers(4, 5), st.randoms(use_true_random=False))
def test_an_opening_is_what_leaves_every_slot_an_item(slots, items, chance):
    allowed = [np.array([float(chance.random() < 0.5) for _ in range(items)]) for _ in range(slots)]
    free = np.array([float(chance.random() < 0.9) for _ in range(items)])
    # Brute force: every way to give the slots free items of their own.
    ways = [
        way
        for way in permutations(range(items), slots)
        if all(allowed[i][item] and free[item] for i, item in enumerate(way))
    ]
    possible = {way[0] for way in ways}
    assert set(np.flatnonzero(openings(allowed, 0, free)).tolist()) == possible


def test_each_place_learns_its_own_reward():
    learner = build({**SPEC, "range": [0, 2]})
    chance = np.random.default_rng(1)
    right = {"top": "c", "side": "a"}
    for _ in range(300):
        shown = learner.predict(PAGE, chance=chance.random())
        rewards = {slot: 2.0 * (choice == right[slot]) for slot, choice, _ in served_of(shown)}
        outcome = learner.learn(PAGE, {"reward": rewards}, served=shown.served())
        assert outcome.loss == 1.0 - sum(rewards.values()) / 4
    late = [served_of(learner.predict(PAGE, chance=(i + 0.5) / 100)) for i in range(100)]
    assert np.mean([{slot: choice for slot, choice, _ in one} == right for one in late]) > 0.8
    assert learner.version == 300
    assert learner.pairs == 600


def test_slots_are_equal_to_choices_one_by_one_where_there_is_one():
    """One slot, apart from its name in the context, is a choice: the draw and the evidence are the same."""
    one = build({**SPEC, "baseline": 0.3})
    page = {"items": ITEMS, "slots": [{"id": "top", "exclude": ["a"], "baseline": "c"}]}
    shown = one.predict(page, chance=0.5)
    (kept,) = shown.served()["draw"]["slots"]
    assert kept["baseline"]["id"] == "c"
    assert kept["exclude"] == ["a"]
    assert kept["probabilities"] == pytest.approx([0.0, 0.1, 0.8, 0.1])
    one.learn(page, {"reward": {"top": 1}}, served=shown.served())
    assert one.describe()["choice"]["apprentice"]["rounds"] == 1


def test_a_slot_without_a_reward_gets_the_default_one_or_teaches_nothing():
    for default, pairs in ((None, 1), (0.0, 2)):
        learner = build({**SPEC, "default_reward": default})
        shown = learner.predict(PAGE, chance=0.3)
        assert learner.learn(PAGE, {"reward": {"side": 1.0}}, served=shown.served()).updated
        assert learner.pairs == pairs


def test_a_learner_of_slots_saved_in_mid_stream_goes_on_with_the_same_bits():
    learner, chance = build({**SPEC, "baseline": 0.2}), np.random.default_rng(2)
    other = None
    for i in range(80):
        if i == 40:
            other = load(dump(learner))
        shown = learner.predict(PAGE, chance=chance.random())
        event = (PAGE, {"reward": {"top": float(chance.random()), "side": 0.5}})
        learner.learn(*event, served=shown.served())
        if other is not None:
            other.learn(*event, served=shown.served())
    assert dump(learner) == dump(other)


@pytest.mark.parametrize(
    ("slots", "where"),
    [
        ([], "/slots"),
        ([{"id": str(i)} for i in range(5)], "/slots"),
        ([{"id": "x"}, {"id": "x"}], "/slots/1/id"),
        ([{"id": ""}], "/slots/0/id"),
        ([3], "/slots/0"),
        ([{"id": "x", "more": 1}], "/slots/0/more"),
        ([{"id": "x", "exclude": ["z"]}], "/slots/0/exclude/0"),
        ([{"id": "x", "baseline": "z"}], "/slots/0/baseline"),
        ([{"id": "x", "features": {"u": float("nan")}}], "/slots/0/features/u"),
        ([{"id": "x", "exclude": ["a", "b", "c", "d"]}], "/slots/0/exclude"),
        (
            [{"id": "x", "exclude": ["a", "b", "c"]}, {"id": "y", "exclude": ["a", "b", "c"]}],
            "/slots/0/exclude",
        ),
    ],
)
def test_slots_that_cannot_be_filled_are_refused_with_the_place(slots, where):
    with pytest.raises(InputError) as refused:
        build(SPEC).predict({"items": ITEMS, "slots": slots})
    assert refused.value.pointer == where


@pytest.mark.parametrize(
    ("truth", "change", "where"),
    [
        ({"reward": 1}, {}, "/reward"),
        ({"reward": {}}, {}, "/reward"),
        ({"reward": {"none": 1}}, {}, "/reward/none"),
        ({"reward": {"top": 7}}, {}, "/reward/top"),
        ({"reward": {"top": 1}}, {"id": "a", "probability": 0.5}, "/served"),
        ({"reward": {"top": 1}}, {"slots": []}, "/served/slots"),
        ({"reward": {"top": 1}}, {"slots": [{"id": "none", "choice": "a", "probability": 1}]}, "/served/slots/0/id"),
        ({"reward": {"top": 1}}, {"slots": [{"id": "top", "choice": "z", "probability": 1}]}, "/served/slots/0/choice"),
        ({"reward": {"top": 1}}, {"slots": [{"id": "side", "choice": "a", "probability": 1}]}, "/reward/top"),
    ],
)  # fmt: skip
def test_rewards_that_do_not_fit_the_slots_are_refused(truth, change, where):
    learner = build(SPEC)
    served = change or learner.predict(PAGE).served()
    with pytest.raises(InputError) as refused:
        learner.learn(PAGE, truth, served=served)
    assert refused.value.pointer == where
    assert learner.version == 0
    with pytest.raises(InputError):
        learner.learn({"items": ITEMS}, {"reward": {"top": 1}}, served={"id": "a", "probability": 1})
