"""Presets are named, versioned lists of experts: a learner keeps the version that it was made with."""

import pytest

from feedrank.learners import build, dump, fingerprint, load
from feedrank.learners.algorithms.auto.expert_registry import PRESETS, experts_of, preset_names
from feedrank.learners.errors import SpecError
from feedrank.learners.spec import asks_for, completed

FIVE = ["dual-ascent", "least-squares", "naive-bayes", "adagrad", "recent-errors"]
NEWEST = len(PRESETS)
TASKS = [
    {"task": "binary", "labels": ["no", "yes"]},
    {"task": "multiclass"},
    {"task": "ordinal", "labels": ["1", "2", "3"]},
    {"task": "multilabel"},
    {"task": "label-ranking"},
    {"task": "subset-ranking"},
]


def of_release_02(spec):
    """The full spec as release 0.2 stored it."""
    full = build(spec).spec
    older = build(
        full | {"preset": f"{full['task']}-1"} | ({"experts": FIVE} if "experts" in full else {})
    ).spec
    return {name: value for name, value in older.items() if name != "preset"}


@pytest.mark.parametrize("spec", TASKS, ids=lambda spec: spec["task"])
def test_a_new_learner_has_the_newest_version_and_says_so(spec):
    reply = build(spec).describe()
    assert reply["preset"] == reply["spec"]["preset"] == f"{spec['task']}-{NEWEST}"
    if spec["task"] != "subset-ranking":
        assert reply["spec"]["experts"] == experts_of(reply["preset"])
        assert reply["tokenizer"] == reply["spec"]["tokenizer"]


@pytest.mark.parametrize("spec", TASKS, ids=lambda spec: spec["task"])
def test_a_stored_learner_without_the_field_is_of_version_1(spec):
    stored = of_release_02(spec)
    assert completed(stored)["preset"] == f"{spec['task']}-1"
    assert asks_for(spec, stored)
    assert asks_for(spec | {"preset": f"{spec['task']}-1"}, stored)
    assert not asks_for(spec | {"preset": f"{spec['task']}-{NEWEST}"}, stored)
    assert not asks_for(spec | {"algorithm": "predtron"}, stored)
    assert asks_for(build(spec).spec, build(spec).spec)


def test_version_1_is_what_release_02_had():
    assert experts_of("multiclass-1") == FIVE
    assert build({"task": "multiclass", "preset": "multiclass-1"}).spec["experts"] == FIVE


def test_a_list_of_nobody_has_no_preset():
    learner = build({"task": "multiclass", "algorithm": "auto", "experts": ["adagrad", "naive-bayes"]})
    assert learner.spec["preset"] is None
    assert "preset" not in learner.describe()
    assert build(learner.spec).spec == learner.spec
    assert asks_for({"task": "multiclass", "experts": ["adagrad", "naive-bayes"]}, learner.spec)
    assert not asks_for({"task": "multiclass"}, learner.spec)


@pytest.mark.parametrize("name", ["multiclass-0", f"multiclass-{NEWEST + 1}", "binary-1", "", 1])
def test_what_is_no_preset_of_the_task_is_refused(name):
    with pytest.raises(SpecError, match="multiclass-1") as refused:
        build({"task": "multiclass", "preset": name})
    assert refused.value.pointer == "/preset"


def test_other_algorithms_have_none():
    with pytest.raises(SpecError, match="parameter of auto"):
        build({"task": "multiclass", "algorithm": "predtron", "preset": "multiclass-1"})


@pytest.mark.parametrize("name", preset_names("multiclass"))
def test_every_version_is_learned_saved_and_loaded(name):
    learner = build({"task": "multiclass", "preset": name})
    for i in range(20):
        learner.learn({"features": [f"w{i % 3}", f"w{i % 5}"]}, {"label": f"l{i % 3}"})
    again = load(dump(learner))
    assert again.spec["preset"] == name
    assert fingerprint(again) == fingerprint(learner)
