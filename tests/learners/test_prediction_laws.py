"""Laws that the predictions of every learner keep: how they are ranked, judged and explained."""

import json
from itertools import pairwise

import pytest
from task_events import snapshot, stream
from test_laws import every_spec

from feedrank.learners import InputError, build, instances, load


@every_spec
def test_a_round_is_judged_as_it_would_have_been_predicted(spec):
    """`served_loss` of a prediction made just before is the loss, where no label joins and no tie counts against us."""
    learner = load(snapshot(spec, 5, 30))
    for instance, answer in stream(spec, 6, 30):
        prediction = learner.predict(instance)
        outcome = learner.learn(instance, answer, served=prediction.served())
        if prediction.abstained and learner.spec.get("loss") != "reject":
            continue
        if answer.get("clicks") == []:
            assert outcome.served_loss is None
            assert outcome.loss == 0
        elif spec.get("loss") == "error-set-size" or learner.spec["algorithm"] == "dual-ascent":
            assert outcome.served_loss <= outcome.loss
        else:
            assert outcome.served_loss == pytest.approx(outcome.loss, abs=1e-12)


@every_spec
def test_every_label_or_item_is_ranked_best_first(spec):
    learner = load(snapshot(spec, 5, 30))
    searched = learner.spec.get("loss") in ("ap", "pairwise-disagreement")
    for instance, _ in stream(spec, 8, 15):
        prediction = learner.predict(instance)
        names = [name for name, _ in prediction.ranking]
        everything = (
            list(instances.read_items(instance["items"]).ids) if "items" in instance else list(learner.labels)
        )
        assert sorted(names) == sorted(everything)
        if not (searched and learner.spec["algorithm"] == "quadratic-surrogate"):
            assert all(one[1] >= two[1] for one, two in pairwise(prediction.ranking))
        assert learner.predict(instance, top=2).ranking == prediction.ranking[:2]
        assert prediction.margin is None or prediction.margin >= 0
        if prediction.margin is not None:
            assert learner.predict(instance, min_margin=1e30).abstained
        json.dumps(prediction.to_json(), allow_nan=False)


@every_spec
def test_contributions_sum_to_the_score(spec):
    learner = load(snapshot(spec, 5, 30))
    for instance, _ in stream(spec, 10, 10):
        if learner.spec.get("kernel", "linear") != "linear":
            with pytest.raises(InputError):
                learner.predict(instance, explain=True)
            continue
        prediction = learner.predict(instance, explain=True)
        for (_, score), parts in zip(prediction.ranking, prediction.contributions, strict=True):
            assert sum(parts.values()) == pytest.approx(score, abs=1e-9)


def test_before_the_first_label_there_is_nothing_to_choose():
    empty = {"features": ["x"]}
    assert build({"task": "multiclass"}).predict(empty).to_json()["label"] is None
    assert build({"task": "multiclass"}).predict(empty).abstained
    sets = build({"task": "multilabel"}).predict(empty)
    assert sets.labels == []
    assert not sets.abstained
    assert build({"task": "label-ranking"}).predict(empty).ranking == []
