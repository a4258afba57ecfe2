"""The automatic learner as a whole: what it learns, what it shows, and that it keeps to its bound on streams."""

import numpy as np
import pytest

from feedrank.learners import build, dump, load
from feedrank.learners.errors import InstanceError

LABELS = ["no", "yes"]


def words(rng, topic, count=12):
    own = [f"{topic}{i}" for i in rng.integers(0, 30, count // 2)]
    return sorted({*own, *(f"w{i}" for i in rng.integers(0, 200, count))})


def mail(seed, rounds, topics=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        topic = str(rng.choice(list(topics)))
        yield {"features": words(rng, topic)}, {"label": topic}


def circle(seed, rounds):
    """Two numbers; the label is whether they lie within a circle: no linear learner can tell."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        x = rng.normal(size=2)
        inside = float(x @ x) < 1.4
        yield {"features": {"p": float(x[0]), "q": float(x[1])}}, {"label": LABELS[inside]}


def losses(learner, events):
    return [learner.learn(instance, truth).loss for instance, truth in events]


def test_words_are_learned_and_every_expert_is_shown():
    learner = build({"task": "multiclass"})
    assert np.mean(losses(learner, mail(0, 300))[150:]) < 0.1
    reply = learner.describe()
    assert [expert["name"] for expert in reply["experts"]] == learner.spec["experts"]
    assert sum(expert["weight"] for expert in reply["experts"]) == pytest.approx(1)
    assert all(set(expert) == {"name", "weight", "mean_loss"} for expert in reply["experts"])
    assert reply["drift"]["alarms"] == 0


def test_a_curve_is_learned():
    learner = build({"task": "binary", "labels": LABELS})
    assert np.mean(losses(learner, circle(0, 600))[300:]) < 0.12
    weights = {expert["name"]: expert["weight"] for expert in learner.describe()["experts"]}
    assert weights["least-squares"] + weights["trees"] > 0.5  # no other expert bends


def runs(seed, rounds, stay):
    """Labels that stay as they were with probability `stay`, whatever the features say."""
    rng = np.random.default_rng(seed)
    label = 0
    for _ in range(rounds):
        label = label if rng.random() < stay else int(rng.integers(2))
        yield {"features": {"p": float(rng.normal())}}, {"label": LABELS[label]}


def test_labels_that_repeat_are_followed_and_chance_is_not():
    without = {"algorithm": "auto", "experts": ["dual-ascent", "least-squares", "naive-bayes", "adagrad"]}
    lost, weights = {}, {}
    for stay in (0.9, 0.0):
        learner = build({"task": "binary", "labels": LABELS})
        plain = build({"task": "binary", "labels": LABELS, **without})
        lost[stay] = [np.mean(losses(one, runs(3, 600, stay))) for one in (learner, plain)]
        weights[stay] = learner.model.pool.weights[4]
        again = load(dump(learner))
        assert again.predict({"features": {"p": 0.3}}) == learner.predict({"features": {"p": 0.3}})
    assert lost[0.9][0] < 0.6 * lost[0.9][1]
    assert abs(lost[0.0][0] - lost[0.0][1]) < 0.02
    assert weights[0.9] > 3 * weights[0.0]


def test_an_expert_leaves_for_good_when_features_are_too_many():
    learner = build({"task": "multiclass"})
    losses(learner, mail(0, 200))
    assert len(learner.features) < 301
    many = {"features": [f"new{i}" for i in range(300)]}
    learner.learn(many, {"label": "a"})
    for state in (learner, load(dump(learner))):
        squares = state.describe()["experts"][1]
        assert (squares["weight"], squares["mean_loss"]) == (0.0, None)
    losses(learner, mail(1, 5))


def test_experts_leave_the_pool_when_labels_are_too_many_but_not_a_learner_of_its_own():
    pool, alone = build({"task": "multiclass"}), build({"task": "multiclass", "algorithm": "adagrad"})
    for learner in (pool, alone):
        for i in range(33):
            learner.learn({"features": [f"w{i}"]}, {"label": f"l{i}"})
    for state in (pool, load(dump(pool))):
        for i in (3, 4):  # AdaGrad and the recent errors
            assert (state.describe()["experts"][i]["weight"], state.model.experts[i].present) == (0.0, False)
    assert load(dump(alone)).predict({"features": ["w7"]}).label == "l7"


def test_zeros_may_be_left_out():
    rng = np.random.default_rng(3)
    whole, sparse = (build({"task": "binary", "labels": LABELS}) for _ in range(2))
    mistakes = [0.0, 0.0]
    for _ in range(500):
        x = np.maximum(rng.normal(size=6), 0.0)  # half of the numbers are 0
        truth = {"label": LABELS[bool(x[:3].sum() > x[3:].sum())]}
        named = {f"n{i}": float(v) for i, v in enumerate(x)}
        mistakes[0] += whole.learn({"features": named}, truth).loss
        mistakes[1] += sparse.learn({"features": {k: v for k, v in named.items() if v}}, truth).loss
    assert mistakes[1] <= 1.1 * mistakes[0] + 5


@pytest.mark.parametrize(
    ("change", "name"),
    [(lambda x: {**x, "p": x["p"] * 1000}, "scale"), (lambda x: {**x, "k": 1000.0}, "constant")],
    ids=["one feature times 1000", "a constant of 1000"],
)
def test_units_and_constants_change_next_to_nothing(change, name):
    plain, changed = build({"task": "binary", "labels": LABELS}), build({"task": "binary", "labels": LABELS})
    events = list(circle(1, 400))
    one = sum(losses(plain, events))
    two = sum(losses(changed, [({"features": change(x["features"])}, y) for x, y in events]))
    assert two <= 1.1 * one + 3


def test_probabilities_are_there_and_mean_what_they_say():
    learner = build({"task": "multiclass"})
    rng = np.random.default_rng(3)
    sure, right = [], []
    for instance, truth in mail(2, 700):
        label = truth["label"] if rng.random() < 0.7 else str(rng.choice(["a", "b", "c"]))
        reply = learner.predict(instance)
        if reply.probabilities:
            assert sum(reply.probabilities) == pytest.approx(1)
            entry = reply.to_json()["ranking"][0]
            assert entry["probability"] == pytest.approx(max(reply.probabilities))
            sure.append(entry["probability"])
            right.append(entry["label"] == label)
        learner.learn(instance, {"label": label})
    assert abs(np.mean(sure[200:]) - np.mean(right[200:])) < 0.05


def test_grades_have_probabilities_that_sum_to_one():
    learner = build({"task": "ordinal", "labels": ["1", "2", "3", "4"]})
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = float(rng.uniform(0, 4))
        learner.learn({"features": {"x": x}}, {"label": str(int(x) + 1)})
    reply = learner.predict({"features": {"x": 2.5}})
    assert reply.label == "3"
    assert reply.ranking[0][0] == "3"
    assert sum(reply.probabilities) == pytest.approx(1)
    assert max(reply.probabilities) == reply.probabilities[0]


def test_labels_that_swap_are_learned_again():
    learner = build({"task": "multiclass"})
    losses(learner, mail(4, 400))
    after = {"a": "b", "b": "c", "c": "a"}
    swapped = [(x, {"label": after[y["label"]]}) for x, y in mail(5, 400)]
    lost = losses(learner, swapped)
    assert learner.describe()["drift"]["alarms"] >= 1
    assert np.mean(lost[200:]) < 0.15


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "ordinal"])
def test_the_certificate_holds_on_streams(task):
    closed = (
        {"labels": ["a", "b", "c"][: 2 if task == "binary" else 3]} if task in ("binary", "ordinal") else {}
    )
    learner = build({"task": task, **closed})
    topics = ("a", "b") if task == "binary" else ("a", "b", "c")
    for instance, truth in mail(6, 250, topics):
        learner.learn(instance, {"labels": [truth["label"]]} if task == "multilabel" else truth)
        reply = learner.certificate
        assert reply["loss"] <= reply["best_loss"] + reply["bound"] + 1e-9
        assert reply["regret"] == pytest.approx(reply["loss"] - reply["best_loss"])


def test_label_ranking_follows_dual_ascent_until_a_lead_is_proved():
    learner = build({"task": "label-ranking"})
    alone = build({"task": "label-ranking", "algorithm": "auto", "experts": ["dual-ascent"]})
    for instance, truth in mail(7, 60):
        weights = {expert["name"]: expert["weight"] for expert in learner.describe()["experts"]}
        if not learner.model.lead.proved:
            assert weights["dual-ascent"] == 1.0
            assert [name for name, _ in learner.predict(instance).ranking] == [
                name for name, _ in alone.predict(instance).ranking
            ]
        learner.learn(instance, truth)
        alone.learn(instance, truth)


def test_costs_move_the_decision():
    events = list(mail(8, 150, ("a", "b")))
    plain = build({"task": "multiclass"})
    dear = build({"task": "multiclass", "algorithm": "auto", "loss": "weighted", "weights": {"a": 50}})
    careful = build(
        {"task": "multiclass", "algorithm": "auto", "loss": "reject", "reject_costs": {"a": 0.01, "b": 0.01}}
    )
    for learner in (plain, dear, careful):
        losses(learner, events)
    unclear = {"features": ["w1", "w2", "a1", "b1"]}
    assert dear.predict(unclear).label == "a"
    assert careful.predict(unclear).abstained
    assert not plain.predict(unclear).abstained


def test_a_list_is_ranked_by_what_was_preferred_and_explained():
    learner = build({"task": "subset-ranking"})
    rng = np.random.default_rng(0)
    lost = []
    for _ in range(80):
        X = rng.normal(size=(8, 3)) * [1, 100, 0.01]
        grades = (X[:, 0] + 0.01 * X[:, 1] > 0.5).astype(float)
        rows = {"items": {"ids": list("abcdefgh"), "columns": ["p", "q", "r"], "rows": X.tolist()}}
        reply = learner.predict(rows, explain=True)
        for (_, score), parts in zip(reply.ranking, reply.contributions, strict=True):
            assert sum(parts.values()) == pytest.approx(score, abs=1e-9)
        truth = {"relevance": dict(zip("abcdefgh", grades.tolist(), strict=True))}
        lost.append(learner.learn(rows, truth).loss)
        proof = learner.certificate
        assert proof["loss"] <= proof["best_loss"] + proof["bound"] + 1e-9
    assert np.mean(lost[40:]) < 0.05
    assert proof["bound"] > 0.0
    assert load(dump(learner)).certificate == proof
    names = [expert["name"] for expert in learner.describe()["experts"]]
    assert names == ["ridge", "list", "pair", "coin", "mean", "stack"]


def test_the_context_is_crossed_in_where_asked():
    learner = build({"task": "subset-ranking", "algorithm": "auto", "context": True})
    rng = np.random.default_rng(1)
    lost = []
    for _ in range(120):
        likes = str(rng.choice(["red", "blue"]))
        X = (rng.random((6, 1)) < 0.5).astype(float)
        grades = X[:, 0] if likes == "red" else 1 - X[:, 0]
        items = [{"id": str(i), "features": {"red": float(v)}} for i, v in enumerate(X[:, 0])]
        truth = {"relevance": {str(i): float(g) for i, g in enumerate(grades)}}
        lost.append(learner.learn({"items": items, "features": [likes]}, truth).loss)
    assert np.mean(lost[60:]) < 0.1


def test_who_leaves_in_a_round_says_nothing_in_it_any_more():
    """The same in both kernels: log-odds of 0, a loss of ln 2."""
    learner = build({"task": "multilabel", "labels": ["a", "b"], "algorithm": "least-squares"})
    for _ in range(5):
        learner.learn({"features": ["u"]}, {"labels": ["a"]})
    before = learner.model.pool.losses[1]
    learner.learn({"features": ["u", *(f"w{i}" for i in range(400))]}, {"labels": ["a"]})
    assert not learner.model.pool.present[0]
    assert learner.model.pool.losses[1] - before == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_on_ordinary_words(seed):
    """The first losses differ in their last bits alone, by rounding."""
    rng = np.random.default_rng(seed)
    learner = build({"task": "binary", "labels": ["a", "b"]})
    for _ in range(60):
        y = int(rng.integers(2))
        hint = y if rng.random() < 0.8 else 1 - y
        words = [f"w{i}" for i in rng.integers(0, 60, 6)]
        learner.learn({"features": [*words, f"y{hint}{rng.integers(3)}"]}, {"label": "ab"[y]})
        proof = learner.certificate
        assert proof["loss"] <= proof["best_loss"] + proof["bound"] + 1e-9


@pytest.mark.parametrize("task", ["multiclass", "label-ranking"])
def test_what_equals_the_instance_predicted_last_is_refused_all_the_same_if_it_is_no_number(task):
    learner, truth = build({"task": task}), {"label": "b"} if task == "multiclass" else {"labels": ["b"]}
    for features in ({"u": 1, "v": 2.0}, {"u": 1.0, "v": 2}):
        learner.learn({"features": features}, truth)
    learner.predict({"features": {"u": 1, "v": 2.0}})
    with pytest.raises(InstanceError, match="must be a number"):
        learner.learn({"features": {"u": True, "v": 2.0}}, truth)
    assert learner.learn({"features": {"u": 1.0, "v": 2}}, truth).updated
