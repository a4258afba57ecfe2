"""An expert without a round in the kernel takes part in whole rounds of those that have one: same bits, all or nothing."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import FEATURES
from test_accidents import Accident, attempt

from feedrank.learners import build, dump, kernel, load
from feedrank.learners.algorithms.auto import adagrad, naive_bayes, recent_errors

pytestmark = pytest.mark.skipif(kernel.NAME != "native", reason="NumPy does all rounds by their pieces")
EXPERTS = {
    "adagrad": adagrad.AdaGrad,
    "naive-bayes": naive_bayes.NaiveBayes,
    "recent-errors": recent_errors.RecentErrors,
}
TASKS = [
    {"task": "multiclass"},
    {"task": "binary", "labels": ["a", "b"]},
    {"task": "multilabel"},
    {"task": "ordinal", "labels": ["a", "b", "c"]},
    {"task": "multiclass", "loss": "weighted", "weights": {"a": 3.0}},
    {"task": "multiclass", "experts": ["dual-ascent", "adagrad", "naive-bayes", "recent-errors"]},
]
TRUTHS = {"multilabel": lambda label: {"labels": ["a", label]}}


@pytest.fixture(params=EXPERTS)
def pieces_only(request, monkeypatch):
    """One of the experts as if the kernel did not know it."""
    monkeypatch.setattr(EXPERTS[request.param], "kind", -1)
    return request.param


def learners(spec):
    whole, pieces = build(spec), build(spec)
    assert whole._fused is not None
    pieces._fused = None
    return whole, pieces


def truth(spec, label):
    label = min(label, spec.get("labels", ["d"])[-1])
    return TRUTHS.get(spec["task"], lambda one: {"label": one})(label)


@pytest.mark.parametrize("spec", TASKS)
@settings(max_examples=15, deadline=None)
@given(
    events=st.lists(st.tuples(FEATURES, st.sampled_from("abcd"), st.sampled_from([1.0, 2.5]), st.booleans()))
)
def test_they_leave_the_bits_of_the_pieces(spec, events):
    for name, kind in EXPERTS.items():
        own = kind.kind
        kind.kind = -1
        try:
            whole, pieces = learners(spec)
            for features, label, weight, ask in events:
                instance = {"features": features}
                if ask:
                    assert whole.predict(instance) == pieces.predict(instance)
                one, other = (
                    each.learn(instance, truth(spec, label), weight=weight) for each in (whole, pieces)
                )
                assert one == other, name
            assert dump(whole) == dump(pieces), name
        finally:
            kind.kind = own


def test_the_others_keep_their_whole_rounds(pieces_only):
    whole, pieces = learners(TASKS[-1])
    rng, commits = np.random.default_rng(1), 0
    for i in range(120):
        names = [f"w{j}" for j in rng.integers(0, 300, 12)] + ["always"]
        for each in (whole, pieces):
            each.learn({"features": names}, {"label": "abc"[i % 3]})
        commits += whole._fused._bound
    assert commits > 80
    assert dump(whole) == dump(pieces)
    assert dump(load(dump(whole))) == dump(whole)


def test_one_that_leaves_as_labels_join_leaves_the_bits_of_the_pieces(pieces_only):
    whole, pieces = learners(TASKS[0])
    for i in range(80):
        for each in (whole, pieces):
            each.learn({"features": [f"w{i % 9}", "x"]}, {"label": str(i % 40)})
    assert dump(whole) == dump(pieces)


def test_an_accident_at_any_call_leaves_no_trace(pieces_only):
    learner, other = (build(TASKS[-1]) for _ in range(2))
    for i in range(20):
        for one in (learner, other):
            one.learn({"features": [f"w{i % 7}", f"v{i % 5}"]}, {"label": "ab"[i % 2]})
    instance, truth = {"features": ["w1", "new", "v2", "newer"]}, {"label": "b"}
    before, failed, learned = dump(learner), 0, False
    while not learned:
        try:
            attempt(learner, instance, truth, failed + 1)
            learned = True
        except (Accident, TypeError):
            failed += 1
            assert dump(learner) == before, failed
    other.learn(instance, truth)
    assert failed > 10
    assert dump(learner) == dump(other)


def test_a_learner_of_them_is_freed(pieces_only):
    learner = build(TASKS[-1])
    learner.learn({"features": ["v"]}, {"label": "a"})
    learner.predict({"features": ["v"]})
    gone = weakref.ref(learner.model)
    del learner
    gc.collect()
    assert gone() is None
