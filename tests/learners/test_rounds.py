"""Whole rounds in the kernel: the same bits as round by pieces, and all or nothing. NumPy has the pieces alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import FEATURES
from scarce_memory import learn_without_memory

from feedrank.learners import build, dump, kernel

pytestmark = pytest.mark.skipif(kernel.NAME != "native", reason="NumPy does all rounds by their pieces")

SPECS = [
    {"algorithm": "predtron"},
    {"algorithm": "predtron", "variant": "loss-driven", "loss": "weighted", "weights": {"a": 0.5, "b": 3.0}},
    {"algorithm": "predtron", "precision": "float32", "bias": True, "learning_rate": 0.3},
    *(
        {"algorithm": "dual-ascent", "update": update, "weighting": "idf", "normalize": "unit", "bias": True}
        for update in ("I", "II", "III")
    ),
    {"algorithm": "dual-ascent", "update": "III", "C": 0.3, "gamma": 0.2},
    {"algorithm": "dual-ascent", "update": "III", "weighting": "idf", "normalize": "blocks"},
    {"algorithm": "dual-ascent", "update": "I", "normalize": "blocks", "bias": True},
    {
        "algorithm": "dual-ascent",
        "update": "III",
        "weighting": "idf",
        "normalize": "blocks",
        "label_words": True,
        "labels": ["x:y a", "über", "y", "A b"],
    },
    {
        "algorithm": "dual-ascent",
        "update": "II",
        "normalize": "blocks",
        "label_words": True,
        "bias": True,
        "precision": "float32",
    },
    {"algorithm": "predtron", "precision": "float32", "bias": True, "normalize": "blocks"},
]
EVENTS = st.lists(
    st.tuples(FEATURES, st.sampled_from("abcd"), st.sampled_from([1.0, 1.0, 2.5]), st.booleans()), max_size=25
)
SERVED = st.sampled_from([None, {"label": None}, *({"label": name} for name in "abz")])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SPECS), EVENTS, st.data())
def test_a_whole_round_has_the_bits_of_its_pieces(spec, events, data):
    whole, pieces = build({"task": "multiclass", **spec}), build({"task": "multiclass", **spec})
    assert whole._fused is not None
    pieces._fused = None
    for features, label, weight, ask in events:
        instance = {"features": features}
        if ask:
            one, other = whole.predict(instance, top=3), pieces.predict(instance, top=3)
            assert one == other
            assert whole.predict(instance, min_margin=0.5) == pieces.predict(instance, min_margin=0.5)
        how = {"weight": weight, "served": data.draw(SERVED)}
        one, other = (each.learn(instance, {"label": label}, **how) for each in (whole, pieces))
        assert one == other
        assert whole.certificate == pieces.certificate
    assert dump(whole) == dump(pieces)


RIGHT = st.one_of(
    st.lists(st.sampled_from("abcd"), max_size=5).map(lambda names: {"labels": names}),
    st.sampled_from("abcd").map(lambda name: {"label": name}),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0, 1, 2.5])).map(
        lambda grades: {"relevance": grades}
    ),
)
SHOWN = st.sampled_from([None, {"ranking": ["b", "a"]}, {"ranking": []}])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["I", "II", "III"]),
    st.sampled_from(["unit", "blocks"]),
    st.lists(st.tuples(FEATURES, RIGHT, SHOWN, st.booleans())),
)
def test_a_whole_round_on_an_order_has_the_bits_of_its_pieces(update, normalize, events):
    spec = {"task": "label-ranking", "algorithm": "dual-ascent", "update": update, "normalize": normalize}
    whole, pieces = build(spec), build(spec)
    assert whole._fused is not None
    pieces._fused = None
    for features, truth, served, ask in events:
        instance = {"features": features}
        for options in ({"top": 2}, {"min_margin": 0.1}) if ask else ():
            assert whole.predict(instance, **options) == pieces.predict(instance, **options)
        one, other = (each.learn(instance, truth, served=served) for each in (whole, pieces))
        assert one == other
        assert whole.certificate == pieces.certificate
    assert dump(whole) == dump(pieces)


ORDERS = [
    {"algorithm": "predtron"},
    {"algorithm": "predtron", "cutoff": 2, "position": "reciprocal", "learning_rate": 0.3},
    {
        "algorithm": "predtron",
        "gain": "linear",
        "discount": "reciprocal",
        "position": "power",
        "exponent": 0.4,
    },
    {"algorithm": "predtron", "loss": "precision", "cutoff": 2},
    {"algorithm": "predtron", "loss": "ap", "normalize": "blocks"},
    {"algorithm": "slam"},
    {"algorithm": "slam", "cutoff": 2, "margin": 0.2, "learning_rate": 0.7},
    {"algorithm": "slam", "measure": "ap", "precision": "float32"},
    {"algorithm": "listnet", "normalize": "unit"},
    {"algorithm": "minimax-perceptron"},
    {"algorithm": "minimax-perceptron", "measure": "ap", "weighting": "idf"},
    {"algorithm": "minimax-perceptron", "cutoff": 1},
]
SEVERAL = st.one_of(
    RIGHT, st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True).map(lambda names: {"labels": names})
)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(ORDERS),
    st.lists(st.tuples(FEATURES, SEVERAL, st.sampled_from([1.0, 2.5]), SHOWN, st.booleans()), max_size=25),
)
def test_a_round_of_a_loss_on_orders_has_the_bits_of_its_pieces(spec, events):
    whole, pieces = (build({"task": "label-ranking", "labels": list("hgfe"), **spec}) for _ in range(2))
    assert whole._fused is not None
    pieces._fused = None
    for features, truth, weight, served, ask in events:
        instance = {"features": features}
        for options in ({"top": 2}, {"min_margin": 0.1}) if ask else ():
            assert whole.predict(instance, **options) == pieces.predict(instance, **options)
        one, other = (each.learn(instance, truth, weight=weight, served=served) for each in (whole, pieces))
        assert one == other
    assert dump(whole) == dump(pieces)


@pytest.mark.parametrize("spec", ORDERS)
def test_many_labels_of_which_many_are_right_leave_the_bits_of_the_pieces(spec):
    names = [f"l{i}" for i in range(90)]
    whole, pieces = (build({"task": "label-ranking", "labels": names, **spec}) for _ in range(2))
    pieces._fused = None
    rng = np.random.default_rng(4)
    for i in range(40):
        features = {
            f"w{j}": float(v) for j, v in zip(rng.permutation(30)[:9], rng.normal(size=9), strict=True)
        }
        truth = {"labels": [names[k] for k in rng.permutation(90)[: rng.integers(1, [4, 88][i % 2])]]}
        one, other = (each.learn({"features": features}, truth) for each in (whole, pieces))
        assert one == other
        assert whole.predict({"features": features}) == pieces.predict({"features": features})
    assert dump(whole) == dump(pieces)


def test_nothing_is_done_that_was_not_planned_on_this_state():
    table, weights = kernel.Table(), kernel.Weights()
    weights.grow(0, 2)
    one = kernel.Rounds(table, weights)
    with pytest.raises(RuntimeError, match="no round was planned"):
        one.commit()
    assert one.plan({"features": ["w"]}, 1, 1.0, 1.0, ()) == (True, True, ())
    one.clear()
    with pytest.raises(RuntimeError, match="no round was planned"):
        one.commit()
    assert len(table) == weights.features == table.events == 0
    assert one.plan({"features": ["w"]}, 1, 1.0, 1.0, ()) == (True, True, ())
    one.commit()
    assert weights.theta.tolist() == [[-1.0, 1.0]]
    with pytest.raises(RuntimeError, match="no round was planned"):
        one.commit()


def test_features_whose_blocks_are_not_known_yet_are_left_to_the_pieces():
    table, weights, own = kernel.Table(), kernel.Weights(), kernel.FeatureBlocks()
    one = kernel.Rounds(table, weights, blocks=own)
    table.add("s:a")
    weights.grow(1, 2)
    assert one.plan({"features": ["s:a"]}, 1, 1.0, 1.0, ()) is None
    own.grow(table)
    assert one.plan({"features": ["s:a", "t:a"]}, 1, 1.0, 1.0, ()) == (True, True, ())
    one.commit()
    assert list(own) == ["s", "t"]
    assert own.numbers.tolist() == [0, 1]
    assert one.plan({"features": ["s:a", "t:a"]}, 0, 1.0, 1.0, ()) == (True, True, ())
    one.commit()
    assert own.wrong.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "instance", [{}, {"text": "w"}, {"features": [1, "w"]}, {"features": ["w", ""]}, ["w"], [1.0], 3, None]
)
def test_what_is_unusual_is_left_to_the_pieces(instance):
    table, weights = kernel.Table(), kernel.Weights()
    weights.grow(0, 2)
    one = kernel.Rounds(table, weights)
    assert one.predict(instance, -1, ["a", "b"]) is None
    assert one.plan(instance, 0, 1.0, 1.0, ()) is None


def test_scores_that_are_not_finite_are_left_to_the_pieces():
    table, weights = kernel.Table(), kernel.Weights()
    table.add("w")
    weights.grow(1, 2)
    weights.theta[0] = [np.inf, 1.0]
    one = kernel.Rounds(table, weights)
    assert one.predict({"features": ["w"]}, -1, ["a", "b"]) is None


def test_a_list_that_was_changed_after_its_prediction_is_read_anew():
    learner = build({"task": "multiclass", "algorithm": "predtron", "labels": ["a", "b"]})
    features = ["v"]
    learner.predict({"features": features})
    features.append("w")
    learner.learn({"features": features}, {"label": "b"})
    assert list(learner.features) == ["v", "w"]


@pytest.mark.parametrize("spec", SPECS)
def test_a_lack_of_memory_inside_a_round_leaves_no_trace(spec):
    learner = build({"task": "multiclass", "labels": ["a", "b"], **spec})
    learner.learn({"features": ["v", "w"]}, {"label": "b"})
    instance, truth = {"features": [f"{i}:new{i}" for i in range(40)]}, {"label": "a"}
    assert learn_without_memory(learner, instance, truth) > 3
    assert learner.version == 2
