"""The apprentice is released by evidence of its own draws alone, and gives the share back when it becomes worse."""

import numpy as np
import pytest

from feedrank.learners import TruthError, build, dump, load
from feedrank.learners.choice.apprentice import RELEASED, Apprentice
from feedrank.learners.choice.draw_records import DrawEvidence


def items(*ids):
    return [{"id": name, "features": {}} for name in ids]


def drawn(apprentice, policy, baseline, chance):
    """An item, and the evidence that its draw leaves."""
    p = apprentice.mixed(policy, baseline)
    item = int(chance.choice(len(p), p=p))
    own = float(policy[item])
    return item, DrawEvidence(own, item == baseline, apprentice.present_share, apprentice.phase.since)


def visits(learner, count, earns, chance, exclude=lambda i, chance: ()):
    """`count` visits to a learner; `earns[id]` is the chance of a reward."""
    for i in range(count):
        shown = learner.predict(
            {"items": items(*earns)}, exclude=exclude(i, chance), chance=chance.random()
        ).served()
        reward = float(chance.random() < earns[shown["id"]])
        learner.learn({"items": items(*earns)}, {"reward": reward}, served=shown)


def state(learner):
    return learner.describe()["choice"]["apprentice"]


def test_one_that_is_better_is_released_and_one_that_is_worse_is_not():
    chance = np.random.default_rng(5)
    policy = np.array([0.1, 0.9])
    for means, released in (((0.3, 0.7), True), ((0.7, 0.3), False)):
        apprentice = Apprentice(0.2)
        for version in range(1, 1501):
            item, evidence = drawn(apprentice, policy, 0, chance)
            before = apprentice.interval()
            apprentice.add([(evidence, float(chance.random() < means[item]))], version)
            if apprentice.released:
                break
        assert bool(apprentice.released) == released
        true = 0.1 * means[0] + 0.9 * means[1] - means[0]
        assert before[0] <= true <= before[1]


@pytest.mark.parametrize("seed", range(10))
def test_a_worse_one_is_not_released_where_the_first_item_is_excluded_in_some_visits(seed):
    """The baseline is the first item that was allowed, not the first of the list."""
    chance = np.random.default_rng(seed)
    # A learner that never learns from its rewards: as bad as chance, beside a baseline that is good.
    learner = build({"task": "choice", "baseline": 0.2, "floor": 1.0})
    visits(
        learner,
        150,
        {"good": 0.8, "fair": 0.7, "bad": 0.05, "worse": 0.0},
        chance,
        lambda i, chance: ["good"] if chance.random() < 0.3 else [],
    )
    assert state(learner)["released"] is None
    assert state(learner)["rounds"] == 150
    assert state(learner)["difference"] < 0


def test_what_was_served_elsewhere_teaches_and_proves_nothing():
    learner = build({"task": "choice", "baseline": 0.2})
    shown = {"items": items("mine", "other")}
    for _ in range(200):
        learner.learn(shown, {"reward": 1.0}, served={"id": "other", "probability": 0.01})
        learner.learn(shown, {"reward": 0.0}, served={"id": "mine", "probability": 1.0})
    assert state(learner) == {
        "share": 0.2,
        "rounds": 0,
        "difference": None,
        "lower": -1.0,
        "upper": 1.0,
        "released": None,
        "taken_back": None,
    }
    assert learner.predict(shown).ranking[0][0] == "other"


def test_draws_of_another_learner_prove_nothing():
    one, other = build({"task": "choice", "baseline": 0.2}), build({"task": "choice", "baseline": 0.3})
    shown = {"items": items("mine", "other")}
    for _ in range(20):
        served = one.predict(shown).served()
        one.learn(shown, {"reward": 1.0}, served=served)
        other.learn(shown, {"reward": 1.0}, served=served)
    assert state(one)["rounds"] == 20
    assert state(other)["rounds"] == 0


def test_draws_of_an_earlier_phase_prove_nothing():
    apprentice = Apprentice(0.2)
    apprentice.add([(DrawEvidence(0.5, False, 0.2, since=7), 1.0)], 9)
    apprentice.add([(DrawEvidence(0.5, False, RELEASED, since=0), 1.0)], 10)
    assert apprentice.phase.rounds == 0
    apprentice.add([(DrawEvidence(0.5, False, 0.2, since=0), 1.0)], 11)
    assert apprentice.phase.rounds == 1


def test_a_draw_that_no_learner_made_is_refused():
    learner = build({"task": "choice", "baseline": 0.2})
    shown = {"items": items("mine", "other")}
    served = learner.predict(shown).served()
    served["draw"]["baseline"]["policy"][0] = 1.5
    with pytest.raises(TruthError, match="no learner gives"):
        learner.learn(shown, {"reward": 1.0}, served=served)
    assert learner.version == 0


def test_once_released_a_tenth_stays_with_the_baseline_and_a_learner_that_becomes_worse_loses_its_share():
    chance = np.random.default_rng(2)
    good, bad = np.array([0.1, 0.9]), np.array([0.05, 0.95])
    apprentice, version = Apprentice(0.2), 0
    while not apprentice.released:
        version += 1
        item, evidence = drawn(apprentice, good, 0, chance)
        apprentice.add([(evidence, float(chance.random() < (0.3, 0.7)[item]))], version)
    assert apprentice.mixed(good, 0).tolist() == pytest.approx([0.1 + 0.9 * 0.1, 0.81])
    assert apprentice.describe()["share"] == RELEASED
    for _ in range(5000):  # While it is better, it keeps what it has.
        version += 1
        item, evidence = drawn(apprentice, good, 0, chance)
        apprentice.add([(evidence, float(chance.random() < (0.3, 0.7)[item]))], version)
    released, changed = apprentice.released, version
    assert released
    while apprentice.released and version < changed + 20_000:
        version += 1
        item, evidence = drawn(apprentice, bad, 0, chance)
        apprentice.add([(evidence, float(chance.random() < (0.5, 0.107)[item]))], version)
    assert apprentice.taken_back == version
    # The good rounds before weigh as nothing: an alarm that has none to gain starts from 1 with each round.
    assert version - changed < 500
    assert apprentice.present_share == 0.2
    assert apprentice.phase.rounds == 0


def test_the_first_item_that_is_allowed_is_served_but_for_the_share():
    learner = build({"task": "choice", "baseline": 0.1})
    prediction = learner.predict({"items": items("mine", "other")})
    by_id = dict(zip([name for name, _ in prediction.ranking], prediction.probabilities, strict=True))
    assert by_id["mine"] == pytest.approx(0.9 + 0.1 * 0.5)
    kept = learner.predict({"items": items("mine", "other", "third")}, exclude=["mine"]).served()["draw"]
    assert kept["exclude"] == ["mine"]
    assert kept["probabilities"] == pytest.approx([0.0, 0.95, 0.05])
    assert kept["baseline"]["id"] == "other"
    assert kept["baseline"]["policy"][1] == pytest.approx(0.5)


def test_a_released_learner_saved_in_mid_stream_goes_on_with_the_same_bits():
    chance = np.random.default_rng(1)
    learner = build({"task": "choice", "baseline": 0.5})
    visits(learner, 400, {"mine": 0.2, "other": 0.9}, chance)
    assert state(learner)["released"]
    again = load(dump(learner))
    visits(learner, 50, {"mine": 0.9, "other": 0.1}, np.random.default_rng(3))
    visits(again, 50, {"mine": 0.9, "other": 0.1}, np.random.default_rng(3))
    assert dump(learner) == dump(again)
