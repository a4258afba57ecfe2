"""Choices: the implicit step is the minimum it claims to be, probabilities are exact, and what is learned comes back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from feedrank.learners import OptionError, SpecError, TruthError, build, dump, load
from feedrank.learners.choice.bilinear import FORGET, PRIOR, implicit, stepped
from feedrank.learners.choice.exploration import draw, inverse_gap
from feedrank.learners.choice.item_scaling import scaled_rows
from feedrank.learners.choice.pairs import Pairs
from feedrank.learners.instances import FeatureVector
from feedrank.learners.kernel import Table
from feedrank.learners.scaling import Scaling

SPEC = {"task": "choice"}


def items(*ids):
    return [{"id": name, "features": {}} for name in ids]


def test_the_step_is_the_minimum_of_its_objective():
    chance = np.random.default_rng(1)
    W, A = chance.normal(size=(4, 3)), chance.uniform(0.1, 3, size=(4, 3))
    x, a, reward, weight = chance.normal(size=4), chance.normal(size=3), 0.7, 2.5
    f = np.outer(x, a)

    def objective(flat):
        new = flat.reshape(4, 3)
        s = float((new * f).sum())
        return 0.5 * float((A * (new - W) ** 2).sum()) + weight * (np.logaddexp(0, s) - reward * s)

    best = minimize(objective, W.ravel(), method="BFGS", options={"gtol": 1e-10}).x.reshape(4, 3)
    moved, curved = stepped(W, A, f, reward, weight, PRIOR, FORGET)
    assert np.allclose(moved, best, atol=1e-6)
    p = 1 / (1 + np.exp(-float((best * f).sum())))
    kept = PRIOR + (1 - FORGET) * (A - PRIOR)
    assert np.allclose(curved, kept + weight * p * (1 - p) * f * f, rtol=1e-6)


def test_what_earned_for_long_is_given_up_when_it_earns_no_more():
    def late_reward(forget):
        learner = build({**SPEC, "algorithm": "inverse-gap", "forget": forget})
        chance = np.random.default_rng(3)
        earned = []
        for event in range(2000):
            instance = {"items": items("a", "b"), "features": ["morning" if event % 2 else "evening"]}
            shown = learner.predict(instance, chance=chance.random())
            right = "ab"[(event + (event >= 1700)) % 2]
            earned.append(float(shown.decision[0] == right))
            learner.learn(instance, {"reward": earned[-1]}, served=shown.served())
        return np.mean(earned[1700:]), np.mean(earned[1000:1700])

    after, before = late_reward(FORGET)
    assert before > 0.97
    assert after > 0.6
    never = late_reward(0.0)[0]
    assert never < after - 0.2
    # The pool turns to who forgets, once it foretells better.
    assert late_reward("auto")[0] > never + 0.1


def test_items_are_scaled_as_a_context_of_the_same_features_would_be():
    """`scaled_rows` does for all items at once what `Scaling.vector` does for one vector."""
    chance = np.random.default_rng(5)
    names = [f"f{j}" for j in range(6)]
    table, scaling = Table(), Scaling(idf=True, bias=False)
    for events in range(60):
        raw = np.where(chance.random((4, 6)) < [1, 1, 0.97, 0.7, 0.3, 0.02], chance.normal(3, 2, (4, 6)), 0.0)
        scaled = scaled_rows(scaling, table.rows(names), raw, events)
        for i in range(4):
            here = np.flatnonzero(raw[i])
            look = table.look(FeatureVector([names[j] for j in here], raw[i, here]))
            alone = scaling.vector(look, len(table), events)
            by_name = dict(zip([table[row] for row in alone.rows.tolist()], alone.values, strict=True))
            by_name |= dict(zip(look.unknown, alone.unseen, strict=True))
            assert np.allclose(scaled[i, here], [by_name[names[j]] for j in here], rtol=1e-12)
            assert (np.delete(scaled[i], here) == 0.0).all()
        joined = alone.joined(table.join(look))
        scaling.count(joined, len(table))


@given(st.floats(-50, 50), st.floats(0, 1e6), st.floats(0, 1))
def test_the_implicit_score_solves_its_equation(s, v, reward):
    y = implicit(s, v, reward)
    left = y - s + v * (1 / (1 + np.exp(-y)) - reward)
    assert abs(left) <= 1e-6 * max(1.0, v)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=9),
    st.integers(0, 10_000),
    st.floats(0.1, 1000),
    st.floats(0, 1),
    st.randoms(use_true_random=False),
)
def test_probabilities_sum_to_one_and_favour_what_seems_better(q, events, gamma, floor, chance):
    q = np.array(q)
    allowed = np.array([float(chance.random() < 0.7) for _ in q])
    allowed[chance.randrange(len(q))] = 1.0
    p = inverse_gap(q, allowed, events, gamma, floor)
    assert p.sum() == pytest.approx(1.0)
    assert (p[allowed == 0] == 0).all()
    assert (p[allowed == 1] >= floor / allowed.sum() * 0.999).all()
    inside = np.flatnonzero(allowed)
    order = inside[np.argsort(-q[inside], kind="stable")]
    assert (np.diff(p[order]) <= 1e-12).all()


def test_the_draw_gives_every_item_its_share():
    p = np.array([0.5, 0.0, 0.3, 0.2])
    counts = np.bincount([draw(p, (i + 0.5) / 1000) for i in range(1000)], minlength=4)
    assert counts.tolist() == [500, 0, 300, 200]
    assert draw(p, 0.9999999999999999) == 3


def test_it_learns_which_item_a_context_wants():
    learner = build(SPEC)
    chance = np.random.default_rng(0)
    earned = []
    for _ in range(600):
        context = str(chance.choice(["morning", "evening"]))
        instance = {"items": items("coffee", "tea", "wine"), "features": [context]}
        prediction = learner.predict(instance, chance=chance.random())
        wanted = {"morning": "coffee", "evening": "wine"}[context]
        reward = float(prediction.decision[0] == wanted)
        earned.append(reward)
        learner.learn(instance, {"reward": reward}, served=prediction.served())
    assert np.mean(earned[-200:]) > 0.9
    assert np.mean(earned[:10]) < np.mean(earned[-200:])


def test_an_item_that_was_never_seen_is_judged_by_its_features():
    learner = build(SPEC)
    chance = np.random.default_rng(0)
    for i in range(300):
        made = [
            {"id": f"{i}-{j}", "features": {"cheap": float(j == i % 3), "size": float(chance.normal())}}
            for j in range(3)
        ]
        prediction = learner.predict({"items": made}, chance=chance.random())
        reward = float(prediction.decision[0] == f"{i}-{i % 3}")
        learner.learn({"items": made}, {"reward": reward}, served=prediction.served())
    new = [{"id": "x", "features": {"size": 1.0}}, {"id": "y", "features": {"cheap": 1.0}}]
    assert learner.predict({"items": new}).ranking[0][0] == "y"


def test_a_learner_saved_in_mid_stream_goes_on_with_the_same_bits():
    one = build({**SPEC, "baseline": 0.2})
    chance = np.random.default_rng(3)
    other = None
    for i in range(120):
        if i == 60:
            other = load(dump(one))
            assert dump(other) == dump(one)
        made = [
            {"id": f"i{j}", "features": {f"f{chance.integers(9)}": float(chance.normal())}} for j in range(4)
        ]
        instance = {"items": made, "features": {f"c{chance.integers(9)}": float(chance.normal()), "d": 1.0}}
        prediction = one.predict(instance)
        event = (instance, {"reward": float(chance.random())})
        one.learn(*event, served=prediction.served())
        if other is not None:
            assert other.predict(instance).ranking == load(dump(other)).predict(instance).ranking
            other.learn(*event, served=prediction.served())
    assert dump(one) == dump(other)


def test_a_snapshot_of_release_0_2_is_read_and_its_apprentice_starts_anew(monkeypatch):
    old = build({**SPEC, "baseline": 0.3, "forget": FORGET})
    shown = {"items": items("a", "b"), "features": ["morning"]}
    for _ in range(30):
        old.learn(shown, {"reward": 1.0}, served=old.predict(shown).served())
    arrays, counters = old.model.arrays(), old.model.counters()
    del arrays["alarms"]
    # It kept a matrix of all rows and columns.
    rows, columns = old.model.weights.rows, old.model.weights.columns
    keys = arrays.pop("pairs")
    for name, fill in (("weights", 0.0), ("precision", PRIOR)):
        matrix = np.full((rows, columns), fill)
        matrix[keys >> 32, keys & 0xFFFFFFFF] = arrays[name][0]
        arrays[name] = matrix
    before = {"explored": counters["explored"], "apprentice": {"rounds": 9, "sum": 1.5, "released": 7}}
    monkeypatch.setattr(old.model, "arrays", lambda: arrays)
    monkeypatch.setattr(old.model, "counters", lambda: before)
    spec = {name: value for name, value in old.spec.items() if name != "forget"}
    monkeypatch.setattr(old, "spec", spec)
    again = load(dump(old))
    assert again.spec["forget"] == FORGET
    trial = again.describe()["choice"]["apprentice"]
    assert (trial["rounds"], trial["released"], trial["share"]) == (0, None, 0.3)
    one, other = (learner.predict(shown, chance=0.9).ranking for learner in (old, again))
    assert one == other
    assert (again.model.arrays()["pairs"] == keys).all()


def test_contributions_sum_to_the_score():
    learner = build(SPEC)
    instance = {
        "items": [{"id": "a", "features": {"p": 2.0}}, {"id": "b", "features": {"q": 1.0}}],
        "features": {"u": 1.0, "v": -3.0},
    }
    for i in range(20):
        prediction = learner.predict(instance, chance=i / 20)
        learner.learn(instance, {"reward": float(i % 3 == 0)}, served=prediction.served())
    explained = learner.predict(instance, explain=True)
    for (_, score), parts in zip(explained.ranking, explained.contributions, strict=True):
        assert sum(parts.values()) == pytest.approx(score)
    assert any(" * " in name for name in explained.contributions[0])


def test_excluded_items_are_never_chosen_and_the_reply_has_a_probability_for_each():
    learner = build(SPEC)
    instance = {"items": items("a", "b", "c")}
    chosen = {learner.predict(instance, exclude=["b"], chance=i / 50).decision[0] for i in range(50)}
    assert chosen == {"a", "c"}
    reply = learner.predict(instance, exclude=["b"]).to_json()
    assert [entry["probability"] for entry in reply["ranking"] if entry["id"] == "b"] == [0.0]
    assert reply["probability"] == next(
        e["probability"] for e in reply["ranking"] if e["id"] == reply["choice"]
    )
    with pytest.raises(OptionError, match="nothing is left to choose"):
        learner.predict(instance, exclude=["a", "b", "c"])
    with pytest.raises(OptionError, match="not an item"):
        learner.predict(instance, exclude=["z"])


def test_rewards_outside_their_range_and_unserved_ones_are_refused():
    learner = build({**SPEC, "range": [-1, 1]})
    instance = {"items": items("a", "b")}
    served = {"id": "a", "probability": 0.5}
    for truth, how in (({"reward": 2}, served), ({"reward": True}, served), ({"reward": 0.5}, None)):
        with pytest.raises(TruthError):
            learner.learn(instance, truth, served=how)
    with pytest.raises(TruthError, match="not an item"):
        learner.learn(instance, {"reward": 1}, served={"id": "z", "probability": 0.5})
    assert learner.version == 0
    assert learner.learn(instance, {"reward": -1}, served=served).loss == 1.0


def test_a_reward_outside_of_the_range_is_clipped_where_the_spec_says_so():
    learner, other = build({**SPEC, "range": [-2, 8], "outside": "clip"}), build({**SPEC, "range": [-2, 8]})
    page = {"items": items("a", "b"), "slots": [{"id": "s"}, {"id": "t"}]}
    shown = {"items": items("a", "b")}
    for instance, sent, counted in (
        (shown, 1000, 8),
        (shown, -7.5, -2),
        (shown, 3, 3),
        (page, {"s": 90, "t": -90}, {"s": 8, "t": -2}),
    ):
        served = learner.predict(instance, chance=0.4).served()
        one = learner.learn(instance, {"reward": sent}, served=served)
        assert one == other.learn(instance, {"reward": counted}, served=served)
    assert learner.predict(shown).ranking == other.predict(shown).ranking
    assert "outside" not in other.spec
    with pytest.raises(TruthError):
        other.learn(shown, {"reward": 9}, served={"id": "a", "probability": 0.5})


@pytest.mark.parametrize(
    "bad",
    [
        {"range": [1, 0]},
        {"range": [0]},
        {"default_reward": 2},
        {"baseline": 1},
        {"floor": -0.1},
        {"forget": 1},
        {"forget": -0.1},
        {"forget": "always"},
        {"forget": True},
        {"bias": True},
    ],
)
def test_a_spec_that_cannot_be_is_refused(bad):
    with pytest.raises(SpecError):
        build({**SPEC, **bad})


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=60))
def test_pairs_are_found_as_a_dictionary_finds_them(blocks):
    """Joined in blocks, taken back in some: what is known, by a plain dictionary."""
    pairs, known = Pairs(2, PRIOR), {}
    for row, column, kept in blocks:
        rows, columns = np.array([row, row + 1]), np.array([column, column + 2, column + 50])
        count = pairs.count
        pairs.mark()
        numbers = pairs.join(rows, columns)
        block = {(i, j): int(numbers[a, b]) for a, i in enumerate(rows) for b, j in enumerate(columns)}
        assert all(block[pair] == known[pair] for pair in block.keys() & known.keys())
        if kept:
            known |= block
        else:
            pairs.rewind(count)
    assert pairs.count == len(known) == len(set(known.values()))
    found = pairs.find(np.arange(45), np.arange(100))
    assert {(i, j): int(found[i, j]) for i, j in zip(*np.nonzero(found >= 0), strict=True)} == known


def test_only_pairs_that_were_met_take_room():
    learner = build(SPEC)
    for visit in range(300):
        shown = {"items": items(*(f"{visit}-{i}" for i in range(50))), "features": [f"v{visit % 20}"]}
        learner.learn(shown, {"reward": 1.0}, served=learner.predict(shown).served())
    assert learner.model.weights.pairs.count == 600  # of 21 contexts x 300 ids, those that were shown
