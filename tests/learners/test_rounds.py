"""Whole rounds in the kernel: the same bits as round by pieces, on both kernels, and all or nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import FEATURES, as_reference, bits
from scarce_memory import learn_without_memory

from feedrank.learners import build, dump, kernel
from feedrank.learners.kernel import feature_blocks, reference, rounds, theta

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


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.booleans(), st.booleans(), st.booleans(), st.booleans(), EVENTS)
def test_both_kernels_do_the_same_rounds(update, idf, single, by_blocks, named, events):
    native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")
    names, labels = list("abcd"), 4
    unit = idf and not by_blocks
    tables = reference.Table(idf, unit, True), native.Table(idf, unit, True)
    counted = (
        (feature_blocks.FeatureBlocks(named), native.FeatureBlocks(named)) if by_blocks else (None, None)
    )
    for table, own in zip(tables, counted, strict=True):
        if own is not None:
            own.grow(table)
        for words in (["a"], ["x:y", "a", "über"], [], ["b", "a"]) if own is not None and named else ():
            own.name(table, words)
    weights = theta.Weights(single), native.Weights(single)
    both = (
        rounds.Rounds(tables[0], weights[0], update, 0.7, 0.9, 0.3, blocks=counted[0]),
        native.Rounds(tables[1], weights[1], update, 0.7, 0.9, 0.3, blocks=counted[1]),
    )
    for each in weights:
        each.grow(1, labels)
    sums = (0, 0.0, 0.0, 0.0, True) if update else ()
    for features, label, weight, ask in events:
        pair = as_reference(features), native.read(features)
        if ask:
            one, other = (each.predict(x, 2, names) for each, x in zip(both, pair, strict=True))
            assert one == other
        one, other = (
            each.plan(x, names.index(label), weight, 1.5, sums) for each, x in zip(both, pair, strict=True)
        )
        assert one == other
        if one is None:
            for each in both:
                each.clear()
            continue
        sums = one[2]
        for each in both:
            each.commit()
        assert bits(weights[0].theta.copy()) == bits(weights[1].theta.copy())
        assert list(tables[0]) == list(tables[1])
        assert bits(tables[0].counts) == bits(tables[1].counts)
        for array in ("numbers", "right", "wrong", *(["words", "shared"] * named)) if by_blocks else ():
            assert bits(getattr(counted[0], array)) == bits(getattr(counted[1], array))


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


@pytest.mark.skipif(kernel.NAME != "native", reason="NumPy itself fails otherwise where memory lacks")
@pytest.mark.parametrize("spec", SPECS)
def test_a_lack_of_memory_inside_a_round_leaves_no_trace(spec):
    learner = build({"task": "multiclass", "labels": ["a", "b"], **spec})
    learner.learn({"features": ["v", "w"]}, {"label": "b"})
    instance, truth = {"features": [f"{i}:new{i}" for i in range(40)]}, {"label": "a"}
    assert learn_without_memory(learner, instance, truth) > 3
    assert learner.version == 2
