"""Whole rounds of the automatic learner in the kernel: the same bits as round by pieces, and all or nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import FEATURES
from scarce_memory import learn_without_memory
from test_accidents import Accident, attempt

from feedrank.learners import InstanceError, build, dump, kernel, load, reading

pytestmark = pytest.mark.skipif(kernel.NAME != "native", reason="NumPy does all rounds by their pieces")

SPECS = [
    {"task": "multiclass"},
    {"task": "multiclass", "weighting": "none", "bias": False},
    {"task": "multiclass", "experts": ["naive-bayes", "recent-errors", "dual-ascent"]},
    {"task": "multiclass", "experts": ["dual-ascent", "naive-bayes"]},
    {"task": "binary", "labels": ["a", "b"], "experts": ["dual-ascent", "adagrad", "naive-bayes"]},
    {
        "task": "multiclass",
        "experts": ["naive-bayes", "adagrad"],
        "loss": "reject",
        "reject_costs": {"a": 0.3, "c": 0.0},
    },
    {"task": "multiclass", "algorithm": "least-squares"},
    {"task": "multiclass", "algorithm": "adagrad"},
    {"task": "multiclass", "algorithm": "trees"},
    {"task": "binary", "labels": ["a", "b"], "algorithm": "trees"},
    {"task": "multiclass", "preset": "multiclass-1"},
    {"task": "multiclass", "loss": "weighted", "weights": {"a": 0.5, "b": 3.0}},
    {"task": "multiclass", "loss": "reject", "reject_costs": {"a": 0.3, "b": 0.1, "c": 0.0}},
    {"task": "binary", "labels": ["a", "b"]},
    {"task": "binary", "labels": ["a", "b"], "loss": "reject", "reject_costs": {"a": 0.2, "b": 0.3}},
    {"task": "multilabel"},
    {"task": "multilabel", "loss": "subset-zero-one", "experts": ["naive-bayes", "adagrad"]},
    {"task": "multilabel", "algorithm": "least-squares", "bias": False},
    {"task": "ordinal", "labels": ["a", "b", "c", "d"]},
    {"task": "label-ranking"},
    {"task": "label-ranking", "cutoff": 2, "bias": False},
    {
        "task": "label-ranking",
        "loss": "precision",
        "cutoff": 2,
        "experts": ["naive-bayes", "dual-ascent", "adagrad"],
    },
    {"task": "label-ranking", "loss": "ap", "experts": ["adagrad", "recent-errors", "trees"]},
    {"task": "label-ranking", "algorithm": "trees"},
    {"task": "label-ranking", "loss": "ap", "experts": ["entropy", "adagrad"]},
    {"task": "multiclass", "experts": ["entropy"]},
    {"task": "label-ranking", "algorithm": "naive-bayes"},
]
# No least squares.
PLAIN = {"task": "multiclass", "labels": ["a", "b"], "experts": ["dual-ascent", "naive-bayes"]}
# As many labels as a truth may name.
TRUTHS = {
    "binary": lambda drawn: {"label": "ab"[drawn > "b"]},
    "multilabel": lambda drawn: {"labels": list("abcd"[: "abcd".index(drawn)])},
    "label-ranking": lambda drawn: {
        "a": {"label": "a"},
        "b": {"labels": ["b", "d"]},
        "c": {"labels": []},
        "d": {"relevance": {"d": 2, "a": 1}},
    }[drawn],
}
EVENTS = st.lists(
    st.tuples(FEATURES, st.sampled_from("abcd"), st.sampled_from([1.0, 1.0, 2.5]), st.booleans()), max_size=25
)


def pair(spec):
    whole, pieces = build(spec), build(spec)
    assert whole._fused is not None
    pieces._fused = None
    return whole, pieces


def both_learn(whole, pieces, instance, truth, weight=1.0):
    one, other = (learner.learn(instance, truth, weight=weight) for learner in (whole, pieces))
    assert one == other


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SPECS), EVENTS, st.booleans())
def test_a_whole_round_has_the_bits_of_its_pieces(spec, events, read):
    whole, pieces = pair(spec)
    for features, drawn, weight, ask in events:
        instance, truth = (
            {"features": features},
            TRUTHS.get(spec["task"], lambda label: {"label": label})(drawn),
        )
        if read:  # a text may have no words
            instance = reading.instance(whole.spec, instance if features else {"text": ""})
        if ask:
            for options in ({"top": 3}, {"min_margin": 0.5}, {}):
                assert whole.predict(instance, **options) == pieces.predict(instance, **options)
        both_learn(whole, pieces, instance, truth, weight)
        assert whole.describe() == pieces.describe()
    assert dump(whole) == dump(pieces)


def streams():
    """Words that keep joining, and a few dense numbers with curves; 40 labels, at which AdaGrad leaves."""
    rng = np.random.default_rng(3)
    words, numbers = [], []
    for i in range(260):
        label = int(rng.integers(40)) if i > 60 else int(rng.integers(3))
        drawn = [f"w{j}" for j in rng.integers(40 * label, 40 * label + 60, 12)] + [f"c{rng.integers(30)}"]
        words.append((drawn, str(label)))
        x = rng.normal(size=7)
        numbers.append(
            ({f"x{j}": v for j, v in enumerate(x.tolist())}, str(int(x[0] * x[1] > 0) + 2 * int(x[2] > 1)))
        )
    return {"words": words, "numbers": numbers}


LONG = [
    (task, kind)
    for task in ("multiclass", "multilabel", "ordinal", "label-ranking")
    for kind in ("words", "numbers")
]


@pytest.mark.parametrize(("task", "kind"), LONG if kernel.NAME == "native" else LONG[:1])
def test_a_long_stream_goes_through_the_kernel_and_leaves_the_bits_of_the_pieces(task, kind):
    grades = {"labels": [str(i) for i in range(40)]} if task == "ordinal" else {}
    whole, pieces = pair({"task": task, **grades})
    commits = 0
    for at, (features, label) in enumerate(streams()[kind]):
        instance, truth = {"features": features}, {"label": label}
        if task in ("multilabel", "label-ranking"):
            truth = {"labels": [label, "even"][: 1 + (at % 2)]}
        assert whole.predict(instance, top=5) == pieces.predict(instance, top=5)
        both_learn(whole, pieces, instance, truth)
        commits += whole._fused._bound  # a piece would have cleared it
        if at == 130:
            whole = load(dump(whole))
    assert commits > (150 if kernel.NAME == "native" else 80)
    assert whole.describe() == pieces.describe()
    assert dump(whole) == dump(pieces)


@pytest.mark.parametrize(
    "spec",
    [
        {"task": "multiclass"},
        {"task": "multiclass", "weighting": "none"},
        {"task": "multiclass", "bias": False},
        {"task": "multiclass", "loss": "weighted", "weights": {"a": 3.0}},
        {"task": "binary", "labels": ["a", "b"]},
    ],
)
def test_names_alone_with_a_constant_among_them_leave_the_bits_of_the_pieces(spec):
    whole, pieces = pair(spec)
    rng, commits = np.random.default_rng(1), 0
    for i in range(120):
        names = [f"w{j}" for j in rng.integers(0, 600, 16)] + ["always"] + ["odd"] * (i % 2)
        assert whole.predict({"features": names}) == pieces.predict({"features": names})
        both_learn(whole, pieces, {"features": names}, {"label": "ab"[i % 2]})
        commits += whole._fused._bound
    assert commits > 80  # least squares leaves at 300 features
    assert dump(whole) == dump(pieces)


@pytest.mark.parametrize("spec", [{"task": "multiclass", "labels": ["a", "b"]}, PLAIN])
def test_an_alarm_of_drift_is_left_to_the_pieces(spec):
    whole, pieces = pair(spec)
    noise = np.random.default_rng(0).integers(2, size=400).tolist()
    for i in range(400):
        label = "ab"[i % 2 if i < 200 else noise[i]]
        both_learn(whole, pieces, {"features": ["uv"[i % 2]]}, {"label": label})
    assert whole.describe()["drift"]["alarms"] > 0
    assert dump(whole) == dump(pieces)


def test_nothing_is_done_that_was_not_planned_on_this_state():
    learner = build(PLAIN)
    learner.predict({"features": ["v"]})
    with pytest.raises(RuntimeError, match="no round was planned"):
        learner._fused.rounds.commit()
    assert learner._fused.plan({"features": ["v"]}, 0, 1.0) is None  # there is no room for it yet
    learner.learn({"features": ["v"]}, {"label": "a"})
    assert learner._fused.plan({"features": ["v"]}, 0, 1.0) is not None
    learner._fused.clear()
    with pytest.raises(RuntimeError, match="no round was planned"):
        learner._fused.rounds.commit()


@pytest.mark.parametrize("instance", [["v"], [1.0], {"v": 1.0}])
def test_features_that_are_no_instance_are_refused(instance):
    learner = build({"task": "multiclass", "labels": ["a", "b"]})
    learner.learn({"features": ["v", "0"]}, {"label": "a"})
    before = dump(learner)
    for refused in (lambda: learner.predict(instance), lambda: learner.learn(instance, {"label": "a"})):
        with pytest.raises(InstanceError):
            refused()
    assert dump(learner) == before


def test_what_was_planned_is_not_done_on_a_table_that_has_grown():
    learner = build(PLAIN)
    learner.learn({"features": ["v"]}, {"label": "a"})
    assert learner._fused.plan({"features": ["v"]}, 0, 1.0) is not None
    learner.features.add("u")
    with pytest.raises(RuntimeError, match="no round was planned"):
        learner._fused.rounds.commit()


@pytest.mark.parametrize("spec", [{"task": "multiclass", "labels": ["a", "b"]}, PLAIN])
@pytest.mark.parametrize("where", ["key", "name"])
def test_text_that_teaches_the_learner_while_it_is_compared_does_no_harm(where, spec):
    """The arrays that the round was shown are replaced in the midst of it."""
    learner = build(spec)
    lessons = [{"features": [f"w{i}" for i in range(40)]}]

    class Text(str):
        __slots__ = ()

        def __eq__(self, other):
            while lessons:
                learner.learn(lessons.pop(), {"label": "b"})
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    for i in range(3):
        learner.learn({"features": ["uv"[i % 2]]}, {"label": "ab"[i % 2]})
    learner.predict({"features": ["u"]})
    shown = learner.predict({Text("features"): ["v"]} if where == "key" else {"features": [Text("u")]})
    assert not lessons
    assert shown == load(dump(learner)).predict({"features": ["v" if where == "key" else "u"]})


def test_the_kernel_refuses_arrays_that_do_not_fit():
    learner = build({"task": "multiclass", "labels": ["a", "b"]})
    rounds, blend = learner._fused.rounds, learner.model
    for wrong in (np.zeros(1), np.zeros((4, 3))):
        learner.transform.scaling.statistics = wrong
        with pytest.raises(ValueError, match="columns"):
            learner._fused._bind()
    learner.transform.scaling.statistics = np.zeros((16, 4))
    blend.experts[1].R = np.zeros((3, 2))
    with pytest.raises(ValueError, match="parts"):
        learner._fused._bind()
    with pytest.raises(TypeError):
        rounds.bind([])


@pytest.mark.parametrize("more", [[], ["adagrad", "recent-errors"]])
def test_an_accident_at_any_call_of_a_whole_round_leaves_no_trace(more):
    spec = {**PLAIN, "experts": [*PLAIN["experts"], *more]}
    learner, other = build(spec), build(spec)
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
    assert failed > 3
    assert learner._fused._bound  # it was a whole round
    assert dump(learner) == dump(other)


@pytest.mark.parametrize("spec", SPECS)
def test_a_lack_of_memory_inside_a_round_leaves_no_trace(spec):
    learner = build({"labels": ["a", "b"], **spec})
    several = spec["task"] == "multilabel"
    for i in range(40):
        truth = {"labels": ["a", "b"][i % 2 :]} if several else {"label": "ab"[i % 2]}
        learner.learn({"features": [f"w{i % 7}", f"v{i % 5}"]}, truth)
    instance = {"features": ["w1", "v2", "v3"]}
    assert learn_without_memory(learner, instance, truth) > 3
    assert learner.version == 41
