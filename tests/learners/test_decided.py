"""`learn` says what `predict` would have decided just before, and changes nothing by saying so."""

import pytest
from task_events import stream
from test_laws import SPECS

from feedrank.learners import build, fingerprint, forms
from feedrank.learners.decided import DecisionBefore

LABELLED = [spec for spec in SPECS if not forms.of(spec["task"]).items]
every_spec = pytest.mark.parametrize(
    "spec", LABELLED, ids=lambda s: "-".join(str(v) for v in s.values())[:60]
)


def decision(form, prediction):
    """What a prediction names, with the probabilities of what is looked at of its ranking."""
    if prediction.abstained:
        return None
    ranking = prediction.ranking[: form.decision.looked]
    if form.ranks:
        labels = [name for name, _ in ranking]
    else:
        labels = prediction.labels if prediction.label is None else [prediction.label]
    stated = dict(zip([name for name, _ in ranking], prediction.probabilities, strict=False))
    return [(label, stated.get(label)) for label in labels]


@every_spec
def test_it_is_the_decision_that_predict_gives(spec):
    asked, judging, alone = build(spec), build(spec), build(spec)
    for instance, truth in stream(spec, 5, 30):
        judged = DecisionBefore()
        expected = decision(asked.form, asked.predict(instance))
        outcome = judging.learn(instance, truth, judged=judged)
        assert judged.named == expected
        assert outcome == asked.learn(instance, truth) == alone.learn(instance, truth)
    assert fingerprint(judging) == fingerprint(asked) == fingerprint(alone)


@pytest.mark.parametrize(
    ("spec", "truth", "other", "loss"),
    [
        ({"task": "multilabel", "loss": "hamming"}, {"labels": ["a"]}, {"labels": ["a", "b"]}, 1.0),
        ({"task": "multilabel", "loss": "hamming"}, {"labels": ["new"]}, {"labels": []}, 1.0),
        ({"task": "ordinal", "labels": ["1", "2", "3"]}, {"label": "3"}, {"label": "1"}, 2.0),
        (
            {"task": "multiclass", "algorithm": "auto", "loss": "weighted", "weights": {"a": 2.5}},
            {"label": "a"},
            {"label": "b"},
            2.5,
        ),
        ({"task": "multiclass"}, {"label": "a"}, {"label": "nobody knows it"}, 1.0),
    ],
)
def test_other_decisions_lose_what_they_lose(spec, truth, other, loss):
    learner = build(spec)
    for instance, first in stream(spec, 1, 12):
        learner.learn(instance, first)
    for instance, _ in stream(spec, 2, 3):
        judged = DecisionBefore([other, other])
        learner.learn(instance, truth, judged=judged)
        assert judged.losses == [loss, loss]
