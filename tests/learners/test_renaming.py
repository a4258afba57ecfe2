"""Renamed labels: truths, decisions and specs read as if the old names had never been there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank import learners
from feedrank.learners import renaming
from feedrank.learners.errors import InputError, SnapshotError, SpecError

TASKS = {
    "multiclass": lambda names: {"label": names[0]},
    "multilabel": lambda names: {"labels": list(names)},
    "label-ranking": lambda names: {"relevance": {name: i + 0.5 for i, name in enumerate(names)}},
}
names = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)
renames = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("abcdz"), max_size=4)


@given(task=st.sampled_from(sorted(TASKS)), truths=st.lists(names, max_size=12), stated=renames)
def test_the_learner_is_the_one_that_never_heard_the_old_names(task, truths, stated):
    try:
        resolved = renaming.composed({}, stated)
    except InputError:
        return
    one, other = learners.build({"task": task}, resolved), learners.build({"task": task})
    for i, named in enumerate(truths):
        instance, truth = {"features": {f"w{i % 3}": 1.0, "x": 0.5}}, TASKS[task](named)
        new = [resolved.get(name, name) for name in named]
        said = {"label": new[0]} if task == "multiclass" else {"labels": list(dict.fromkeys(new))}
        if task == "label-ranking":
            said = {"relevance": {}}
            for name, grade in zip(new, truth["relevance"].values(), strict=True):
                said["relevance"][name] = max(grade, said["relevance"].get(name, 0.0))
        served = one.predict(instance).served()
        outcome = one.learn(instance, truth, served=served)
        assert outcome == other.learn(instance, said, served=served)
    again = learners.load(learners.dump(one))
    assert again.renames == resolved
    assert learners.dump(again) == learners.dump(one)
    other.renames = resolved
    assert learners.dump(other) == learners.dump(one)


def test_renames_are_followed_to_their_end_and_not_round():
    assert renaming.composed({"a": "b"}, {"b": "c"}) == {"a": "c", "b": "c"}
    assert renaming.composed({"a": "b"}, {"c": "a"}) == {"a": "b", "c": "b"}
    for stated in ({"a": "a"}, {"b": "a"}):
        with pytest.raises(InputError, match="circle"):
            renaming.composed({"a": "b"}, stated)


def test_what_a_spec_says_of_the_new_name_counts_before_what_it_says_of_the_old():
    spec = {"task": "multiclass", "algorithm": "predtron", "labels": ["a", "b", "c"], "loss": "weighted"}
    priced = learners.build({**spec, "weights": {"a": 3.0, "b": 2.0}}, {"a": "b"}).spec
    assert (priced["labels"], priced["weights"]) == (["b", "c"], {"b": 2.0})
    priced = learners.build({**spec, "weights": {"a": 3.0}}, {"a": "b"}).spec
    assert priced["weights"] == {"b": 3.0}
    matrix = {"a": {"b": 9.0, "c": 4.0}, "b": {"c": 5.0}, "c": {"a": 7.0}}
    charged = learners.build({**spec, "loss": "matrix", "matrix": matrix}, {"a": "b"}).spec
    assert charged["matrix"] == {"b": {"c": 5.0}, "c": {"b": 7.0}}  # nothing to mistake a for b
    blocks = {"task": "multiclass", "algorithm": "quadratic-surrogate", "loss": "block-zero-one"}
    grouped = learners.build({**blocks, "blocks": [["a"], ["b", "c"]]}, {"a": "b"}).spec
    assert grouped["blocks"] == [["b"], ["c"]]


def test_labels_in_an_order_of_their_own_merge_with_neighbours_only():
    ordinal = {"task": "ordinal", "labels": ["low", "mid", "high"]}
    assert learners.build(ordinal, {"mid": "low"}).spec["labels"] == ["low", "high"]
    assert learners.build(ordinal, {"mid": "fair"}).spec["labels"] == ["low", "fair", "high"]
    with pytest.raises(SpecError, match="cannot become one"):
        learners.build(ordinal, {"low": "high"})
    with pytest.raises(SpecError, match="exactly two"):
        learners.build({"task": "binary", "labels": ["no", "yes"]}, {"no": "yes"})


def test_a_forged_snapshot_has_no_renames_that_lead_nowhere():
    learner = learners.build({"task": "multiclass", "labels": ["b"]})
    for wrong in ({"a": ""}, {"a": "c", "c": "b"}, {"b": "c"}, {"a": 1}):
        learner.renames = wrong
        with pytest.raises(SnapshotError):
            learners.load(learners.dump(learner))
