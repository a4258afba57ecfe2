"""Ids and contexts that are not met again leave the pairs, the sooner the less they taught; who stays is not touched."""

import numpy as np
import pytest

from feedrank.learners import build, dump, load
from feedrank.learners.choice import chooser, presence
from feedrank.learners.choice.presence import Presence


@pytest.fixture
def hasty(monkeypatch):
    """Little patience: what was met once leaves after 50 rewards."""
    monkeypatch.setattr(presence, "PATIENCE", 50)
    monkeypatch.setattr(chooser, "SWEEP", 10)


def visit(learner, id, context, reward=1.0):
    shown = {
        "items": [{"id": name, "features": {}} for name in dict.fromkeys(("other", id))],
        "features": [context, "always"],
    }
    learner.learn(shown, {"reward": reward}, served={"id": id, "probability": 0.5})
    return shown


def pairs(learner):
    """(context, id) of every pair that is kept."""
    kept = learner.model.weights.pairs
    contexts = ["", *learner._views.contexts]
    columns = list(learner._views.columns)
    return {(contexts[key >> 32], columns[key & 0xFFFFFFFF][1:]) for key in kept.keys[: kept.count].tolist()}


def test_what_was_met_often_is_waited_for_longer():
    seen = Presence()
    seen.grow(3)
    for now in range(4):
        seen.meet(np.array([0]), now)
    seen.meet(np.array([1]), 4)
    assert seen.idle(5).tolist() == []
    assert seen.idle(presence.PATIENCE + 5).tolist() == [1]
    assert seen.idle(4 * presence.PATIENCE + 3).tolist() == [1]
    assert seen.idle(4 * presence.PATIENCE + 4).tolist() == [0, 1]


@pytest.mark.parametrize("forget", ["auto", 0.01])
def test_fresh_ids_and_contexts_do_not_pile_up(hasty, forget):
    learner = build({"task": "choice", "forget": forget})
    for n in range(600):
        visit(learner, f"news {n}", f"user {n}") if n % 2 else visit(learner, "stays", "regular")
    met = pairs(learner)
    assert {("", "stays"), ("regular", "stays"), ("always", "stays")} <= met
    assert ("", "news 1") not in met
    assert ("", "news 599") in met
    assert len(met) < 4 * 40
    # A slow one, with much learned from it, is still known.
    score = dict(learner.predict(visit(learner, "stays", "regular")).ranking)["stays"]
    assert score > 1.0


def test_who_comes_back_starts_anew(hasty):
    learner = build({"task": "choice"})
    shown = visit(learner, "old", "once")
    assert dict(learner.predict(shown).ranking)["old"] > 0.0
    for _ in range(80):
        visit(learner, "stays", "regular", reward=0.0)
    assert dict(learner.predict({"items": shown["items"]}).ranking)["old"] == 0.0
    visit(learner, "old", "regular")
    assert dict(learner.predict(shown).ranking)["old"] > 0.0


def test_saving_anywhere_changes_nothing_and_a_failed_event_leaves_no_trace(hasty, monkeypatch):
    learner, chance = build({"task": "choice"}), np.random.default_rng(2)
    for n in range(300):
        if n % 37 == 0:
            learner = load(dump(learner))
        if n in (149, 209, 250):
            before = dump(learner)
            with monkeypatch.context() as patch:
                patch.setattr(type(learner.progress), "after", lambda self, loss: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    visit(learner, "broken", "broken")
            assert dump(learner) == before
        visit(learner, f"{chance.integers(40)}", f"c{chance.integers(60)}", float(chance.random() < 0.3))
    again, chance = build({"task": "choice"}), np.random.default_rng(2)
    for _ in range(300):
        visit(again, f"{chance.integers(40)}", f"c{chance.integers(60)}", float(chance.random() < 0.3))
    assert dump(again) == dump(learner)


def test_slots_that_cross_a_sweep_are_swept_once(hasty):
    learner = build({"task": "choice"})
    items = [{"id": name, "features": {}} for name in "abc"]
    for n in range(60):
        visit(learner, f"news {n}", "c")
        page = {"items": items, "slots": [{"id": "1"}, {"id": "2"}, {"id": "3"}]}
        served = learner.predict(page, chance=0.5).served()
        learner.learn(page, {"reward": {"1": 1.0, "2": 0.0, "3": 0.0}}, served=served)
    assert ("", "news 0") not in pairs(learner)
    assert dump(load(dump(learner))) == dump(learner)
