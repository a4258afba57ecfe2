"""Honest counting: what is reported of an event is the loss of the decision made without the labels that join with it."""

import pytest

from feedrank.learners import build

PREDTRON, ASCENT = {"algorithm": "predtron"}, {"algorithm": "dual-ascent"}
QUADRATIC, LISTNET = {"algorithm": "quadratic-surrogate"}, {"algorithm": "listnet"}
NDCG_THIRD_AND_FOURTH = 0.42935828104467993  # 1 - (1 / log2(4) + 1 / log2(5)) / (1 + 1 / log2(3))


def lessons(spec, events):
    learner = build(spec)
    return learner, [learner.learn({"features": [f"w{i}"]}, truth) for i, truth in enumerate(events)]


@pytest.mark.parametrize("algorithm", [{}, PREDTRON, ASCENT, QUADRATIC, {"algorithm": "least-squares"}])
def test_twelve_wrong_predictions_are_twelve_mistakes(algorithm):
    learner, outcomes = lessons({"task": "multiclass", **algorithm}, [{"label": f"l{i}"} for i in range(12)])
    assert [outcome.loss for outcome in outcomes] == [1.0] * 12
    assert all(outcome.mistake for outcome in outcomes)
    progress = learner.describe()["progress"]
    assert (progress["mistakes"], progress["cumulative_loss"], progress["recent_loss"]) == (12, 12.0, 1.0)


def test_the_preset_and_its_drift_alarm_learn_from_the_same_losses():
    learner, _ = lessons({"task": "multiclass"}, [{"label": f"l{i}"} for i in range(12)])
    assert {row["mean_loss"] for row in learner.describe()["experts"]} <= {1.0, None}
    assert learner.model.drift_alarm.sum == 12.0
    assert learner.certificate["loss"] == 0.0  # no label was right that anyone could give probability to


def test_certificates_keep_the_theory_s_counts():
    learner, _ = lessons({"task": "multiclass", **ASCENT}, [{"label": f"l{i}"} for i in range(12)])
    assert learner.certificate["mistakes"] == 11  # the first event had no pair of labels to get wrong
    assert learner.progress.mistakes == 12


@pytest.mark.parametrize("algorithm", [{"algorithm": "auto"}, PREDTRON])
@pytest.mark.parametrize(
    ("loss", "losses"),
    [
        ({"loss": "weighted", "weights": {"a": 3.0, "c": 0.5}}, [3.0, 1.0, 0.5]),
        ({"loss": "reject", "reject_costs": {"a": 0.25, "b": 0.5}}, [0.25, 1.0, 1.0]),
    ],
)
def test_without_any_label_the_dearest_decision_or_rejecting_is_charged(algorithm, loss, losses):
    _, outcomes = lessons(
        {"task": "multiclass", **algorithm, **loss}, [{"label": "a"}, {"label": "b"}, {"label": "c"}]
    )
    assert [outcome.loss for outcome in outcomes] == losses


@pytest.mark.parametrize("algorithm", [{"algorithm": "auto"}, QUADRATIC])
def test_a_new_label_of_the_block_decided_for_costs_nothing(algorithm):
    spec = {"task": "multiclass", **algorithm, "loss": "block-zero-one", "blocks": [["a", "b"]]}
    _, outcomes = lessons(spec, [{"label": "a"}, {"label": "b"}, {"label": "c"}])
    assert [outcome.loss for outcome in outcomes] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("spec", "losses"),
    [
        ({}, [2.0, 2.0]),
        ({"loss": "f-score"}, [1.0, 1.0]),
        ({**PREDTRON}, [1.0, 1.0]),
        # Scores of 0 are on the wrong side: each of two known labels, with each of two new ones.
        ({**PREDTRON, "loss": "error-set-size"}, [1.0, 4.0]),
        ({**QUADRATIC, "loss": "hamming"}, [1.0, 0.5]),
    ],
)
def test_new_labels_of_a_set_are_out(spec, losses):
    learner, outcomes = lessons(
        {"task": "multilabel", **spec}, [{"labels": ["a", "b"]}, {"labels": ["c", "d"]}]
    )
    assert [outcome.loss for outcome in outcomes] == losses
    assert learner.progress.mistakes == 2


def test_a_set_with_nothing_in_it_was_right():
    _, outcomes = lessons({"task": "multilabel"}, [{"labels": []}, {"labels": ["a"]}])
    assert [(outcome.loss, outcome.mistake) for outcome in outcomes] == [(0.0, False), (1.0, True)]


@pytest.mark.parametrize("algorithm", [{}, PREDTRON, LISTNET, QUADRATIC])
def test_new_labels_of_a_ranking_are_below_all_that_were_known(algorithm):
    learner = build({"task": "label-ranking", **algorithm})
    seen = []
    for labels in (["a", "b"], ["c", "d"]):
        served = learner.predict({"features": ["w"]}).served()
        outcome = learner.learn({"features": ["w"]}, {"labels": labels}, served=served)
        seen.append((outcome.loss, outcome.served_loss))
    assert seen[0] == (1.0, None)
    assert seen[1] == pytest.approx((NDCG_THIRD_AND_FOURTH, NDCG_THIRD_AND_FOURTH))


def test_an_irrelevant_new_label_takes_nothing_from_a_ranking():
    learner = build({"task": "label-ranking", **ASCENT})
    learner.learn({"features": ["w"]}, {"label": "a"})
    assert learner.learn({"features": ["w"]}, {"relevance": {"a": 1, "b": 0}}).loss == 0.0
    assert learner.learn({"features": ["w"]}, {"relevance": {"b": 0, "c": 1}}).loss == 1.0


def test_labels_of_the_spec_are_known():
    learner = build({"task": "multiclass", "labels": ["a", "b"]})
    assert learner.predict({"features": ["w"]}).label == "a"
    assert learner.learn({"features": ["w"]}, {"label": "a"}).loss == 0.0
