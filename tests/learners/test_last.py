"""What a learner keeps of its last prediction never stands for another instance."""

import base64

import numpy as np
import pytest

from feedrank.learners import ItemList, build, fingerprint
from feedrank.learners import last as kept

SPECS = [{"task": "subset-ranking"}, {"task": "subset-ranking", "algorithm": "listnet"}]


def table(rows):
    packed = base64.b64encode(np.asarray(rows, dtype="<f4").tobytes()).decode()
    return {"items": {"ids": ["a", "b", "c"], "columns": ["x", "y"], "rows": packed}}


def two(spec):
    learners = build(spec), build(spec)
    for learner in learners:
        learner.learn(table([[1, 2], [3, 4], [5, 0]]), {"relevance": {"c": 2, "a": 1}})
    return learners


@pytest.mark.parametrize("spec", SPECS)
def test_feedback_after_its_prediction_teaches_what_it_teaches_alone(spec):
    one, other = two(spec)
    instance = table([[2, 1], [0, 3], [4, 4]])
    one.predict(instance)
    for learner in (one, other):
        learner.learn(table([[2, 1], [0, 3], [4, 4]]), {"relevance": {"b": 1}})
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("spec", SPECS)
def test_what_the_caller_changes_after_the_prediction_counts(spec):
    one, other = two(spec)
    names, values = ["a", "b", "c"], np.array([[2.0, 1.0], [0.0, 3.0], [4.0, 4.0]])
    listed = ItemList(names, ["x", "y"], values)
    one.predict(listed)
    values[0, 0] = 9.0
    names[2] = "d"
    one.learn(listed, {"relevance": {"d": 1}})
    other.learn(ItemList(["a", "b", "d"], ["x", "y"], values.copy()), {"relevance": {"d": 1}})
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("change", [{"ids": ["a", "b", "d"]}, {"columns": ["x", "z"]}])
def test_a_table_with_other_names_is_another_one(change):
    one, other = two(SPECS[0])
    instance = table([[2, 1], [0, 3], [4, 4]])
    one.predict(instance)
    changed = {"items": {**instance["items"], **change}}
    for learner in (one, other):
        learner.learn(changed, {"relevance": {"b": 1}})
    assert fingerprint(one) == fingerprint(other)


def test_a_long_list_is_not_kept(monkeypatch):
    learner, _ = two(SPECS[0])
    learner.predict(table([[2, 1], [0, 3], [4, 4]]))
    assert learner._last is not None
    monkeypatch.setattr(kept, "LARGEST_LIST", 5)
    learner.predict(table([[2, 1], [0, 3], [4, 5]]))
    assert learner._last is None
