"""Laws that every learner keeps. A new algorithm joins with one line in `SPECS`."""

import copy
import json

import pytest
from task_events import run, stream, teach

from feedrank.learners import InputError, build, dump, fingerprint, load

LABELS = {"labels": ["low", "high"]}
PREDTRON = {"algorithm": "predtron"}
QUADRATIC = {"algorithm": "quadratic-surrogate"}
ASCENT = {"algorithm": "dual-ascent"}
THEORY = {"learning_rate": "theory", "R": 2}
GRADES = {"labels": ["1", "2", "3", "4"]}
MATRIX = {"a": {"b": 5, "never": 2}, "c": {"c": 0.25}, "later": {"a": 7}}

SPECS = [
    {"task": "binary", **LABELS},
    {"task": "binary", **LABELS, **PREDTRON},
    {"task": "binary", **LABELS, **PREDTRON, "loss": "weighted", "weights": {"low": 3}},
    {"task": "binary", **LABELS, **PREDTRON, "loss": "reject", "reject_costs": {"low": 0.2}},
    {"task": "multiclass"},
    {
        "task": "multiclass",
        "algorithm": "auto",
        "loss": "weighted",
        "weights": {"a": 2.5},
        "weighting": "none",
    },
    {"task": "multiclass", "algorithm": "auto", "loss": "reject", "reject_costs": {"b": 0.3}, "bias": False},
    {"task": "multiclass", "algorithm": "auto", "loss": "block-zero-one", "blocks": [["a", "b"]]},
    {"task": "multiclass", "algorithm": "auto", "experts": ["naive-bayes", "dual-ascent"]},
    {"task": "multilabel", "experts": ["class-means", "vector-ridge", "adagrad"]},
    {"task": "multilabel", "algorithm": "auto", "loss": "f-score"},
    {"task": "multilabel", "algorithm": "auto", "loss": "subset-zero-one"},
    {"task": "label-ranking", "algorithm": "auto", "loss": "precision", "cutoff": 2},
    {"task": "label-ranking", "algorithm": "naive-bayes", "loss": "ap"},
    {"task": "binary", **LABELS, "algorithm": "auto", "loss": "reject", "reject_costs": {"low": 0.2}},
    {"task": "binary", **LABELS, "algorithm": "least-squares"},
    {"task": "ordinal", "labels": ["1", "2", "3", "4"], "algorithm": "naive-bayes"},
    {"task": "multilabel", "algorithm": "least-squares"},
    {"task": "multiclass", "algorithm": "adagrad"},
    {"task": "multiclass", "algorithm": "trees"},
    {"task": "ordinal", "labels": ["1", "2", "3", "4"], "algorithm": "trees", "bias": False},
    {"task": "label-ranking", "algorithm": "trees", "loss": "ap"},
    {"task": "multilabel", "experts": ["trees", "adagrad"]},
    {"task": "label-ranking", "experts": ["entropy", "adagrad"]},
    {"task": "binary", **LABELS, "preset": "binary-1"},
    {"task": "multilabel", "algorithm": "adagrad", "bias": False},
    {"task": "multiclass", **PREDTRON, "normalize": "auto", "bias": True},
    {"task": "multiclass", **QUADRATIC, "normalize": "auto"},
    {"task": "label-ranking", **ASCENT, "update": "III", "normalize": "auto", "weighting": "idf"},
    {"task": "multiclass", **PREDTRON},
    {"task": "multiclass", **PREDTRON, "variant": "loss-driven", "bias": True, "weighting": "idf"},
    {"task": "multiclass", **PREDTRON, "loss": "weighted", "weights": {"a": 2.5}, "normalize": "unit"},
    {"task": "multiclass", **ASCENT, "update": "III", "weighting": "idf", "normalize": "blocks"},
    {"task": "multilabel", **PREDTRON, "loss": "hamming", "normalize": "blocks", "bias": True},
    {"task": "label-ranking", **ASCENT, "normalize": "blocks"},
    {
        "task": "multiclass",
        **ASCENT,
        "update": "III",
        "normalize": "blocks",
        "label_words": True,
        "labels": ["w1 w2", "w3", "W4/w1"],
    },
    {"task": "label-ranking", **ASCENT, "normalize": "blocks", "label_words": True, "bias": True},
    {"task": "multiclass", **PREDTRON, "loss": "reject", "reject_costs": {"b": 0.5}},
    {"task": "multiclass", **PREDTRON, "precision": "float32", "normalize": "unit"},
    {"task": "label-ranking", **ASCENT, "update": "III", "precision": "float32", "weighting": "idf"},
    {"task": "subset-ranking", "algorithm": "listnet", "precision": "float32"},
    {"task": "ordinal", "labels": ["1", "2", "3", "4"]},
    {"task": "multilabel"},
    {"task": "multilabel", **PREDTRON},
    {
        "task": "multilabel",
        **PREDTRON,
        "loss": "hamming",
        "weighting": "idf",
        "normalize": "unit",
        "bias": True,
    },
    {"task": "multilabel", **PREDTRON, "loss": "error-set-size"},
    {"task": "label-ranking"},
    {"task": "label-ranking", **PREDTRON},
    {"task": "label-ranking", **PREDTRON, "loss": "precision", "cutoff": 2, "position": "reciprocal"},
    {"task": "label-ranking", **PREDTRON, "loss": "ap", "position": "power", "exponent": 2},
    {
        "task": "binary",
        **LABELS,
        **PREDTRON,
        "loss": "weighted",
        "weights": {"low": 3},
        **THEORY,
        "kernel": "gaussian",
    },
    {
        "task": "binary",
        **LABELS,
        **PREDTRON,
        "loss": "reject",
        "kernel": "polynomial",
        "variant": "loss-driven",
    },
    {"task": "multiclass", **PREDTRON, "norm": "l1", **THEORY, "bias": True},
    {
        "task": "multiclass",
        **PREDTRON,
        "norm": "group",
        "variant": "loss-driven",
        "loss": "weighted",
        "weights": {"a": 2},
    },
    {"task": "multiclass", **PREDTRON, "kernel": "gaussian", "bandwidth": 0.7, "budget": 5},
    {"task": "multiclass", **PREDTRON, "kernel": "polynomial", "degree": 3, "bias": True},
    {
        "task": "ordinal",
        "labels": ["1", "2", "3", "4"],
        **PREDTRON,
        "norm": "l1",
        "variant": "loss-driven",
        **THEORY,
    },
    {"task": "multilabel", **PREDTRON, "loss": "hamming", "norm": "group", **THEORY},
    {
        "task": "multilabel",
        **PREDTRON,
        "loss": "error-set-size",
        "kernel": "gaussian",
        "variant": "loss-driven",
    },
    {"task": "label-ranking", **PREDTRON, "cutoff": 2, "norm": "group", **THEORY},
    {
        "task": "label-ranking",
        **PREDTRON,
        "loss": "ap",
        "kernel": "gaussian",
        "budget": 4,
        "variant": "loss-driven",
    },
    {"task": "subset-ranking", **PREDTRON, "norm": "l1", "bias": True, **THEORY},
    {"task": "subset-ranking", **PREDTRON, "norm": "group", "loss": "ap", "variant": "loss-driven", **THEORY},
    {
        "task": "subset-ranking",
        **PREDTRON,
        "kernel": "gaussian",
        "budget": 3,
        "loss": "precision",
        "cutoff": 2,
    },
    {"task": "subset-ranking", **PREDTRON, "kernel": "polynomial", "normalize": "unit", "position": "power"},
    {"task": "multiclass", **ASCENT, "bias": True},
    {"task": "binary", **LABELS, **ASCENT, "update": "III", "normalize": "unit"},
    {"task": "binary", **LABELS, **ASCENT, "update": "II", "complexity": "entropy"},
    {"task": "multiclass", **ASCENT, "update": "II", "complexity": "entropy", "dimension": 5},
    {
        "task": "multiclass",
        **ASCENT,
        "update": "III",
        "complexity": "entropy",
        "weighting": "idf",
        "normalize": "unit",
    },
    {"task": "label-ranking", **ASCENT, "complexity": "entropy", "dimension": 3, "bias": True},
    {"task": "label-ranking", **ASCENT, "update": "II", "normalize": "unit"},
    {"task": "label-ranking", **ASCENT, "update": "III", "complexity": "entropy", "C": 40, "gamma": 0.9},
    {"task": "label-ranking", "algorithm": "slam"},
    {"task": "label-ranking", "algorithm": "minimax-perceptron"},
    {"task": "label-ranking", "algorithm": "listnet"},
    {"task": "subset-ranking"},
    {"task": "subset-ranking", "preset": "subset-ranking-1"},
    {"task": "subset-ranking", "algorithm": "auto", "context": True, "below": 2},
    {"task": "subset-ranking", "algorithm": "auto", "loss": "ap", "examination": [1, 0.5, 0.2]},
    {"task": "subset-ranking", "algorithm": "auto", "bias": True, "loss": "precision", "cutoff": 2},
    {"task": "subset-ranking", **PREDTRON, "bias": True, "normalize": "unit"},
    {"task": "subset-ranking", **PREDTRON, "cutoff": 2, "variant": "loss-driven", "normalize": "list"},
    {"task": "subset-ranking", "algorithm": "slam", "normalize": "list"},
    {"task": "subset-ranking", "algorithm": "slam", "measure": "ap"},
    {"task": "subset-ranking", "algorithm": "minimax-perceptron"},
    {"task": "subset-ranking", "algorithm": "listnet", "normalize": "unit"},
    {"task": "subset-ranking", "algorithm": "slam", "cutoff": 2, **THEORY, "bias": True},
    {"task": "subset-ranking", "algorithm": "listnet", "learning_rate": 0.1, "examination": [1, 0.5, 0.2]},
    {"task": "subset-ranking", "algorithm": "minimax-perceptron", "measure": "ap", "examination": [0.5]},
    {"task": "label-ranking", "algorithm": "slam", "measure": "ap", "margin": 0.5, "learning_rate": 2},
    {"task": "multiclass", **QUADRATIC},
    {"task": "multiclass", **QUADRATIC, "loss": "weighted", "weights": {"a": 2.5}, "bias": True},
    {"task": "multiclass", **QUADRATIC, "loss": "block-zero-one", "blocks": [["a", "b"]], "weighting": "idf"},
    {"task": "multiclass", **QUADRATIC, "kernel": "gaussian", "budget": 8},
    {"task": "multiclass", **QUADRATIC, "budget": 6},
    {"task": "multilabel", **QUADRATIC},
    {"task": "multilabel", **QUADRATIC, "loss": "hamming", "normalize": "unit", "bias": True},
    {"task": "multilabel", **QUADRATIC, "loss": "f-score", "kernel": "gaussian"},
    {"task": "multilabel", **QUADRATIC, "loss": "precision", "cutoff": 2},
    {"task": "multilabel", **QUADRATIC, "loss": "block-zero-one", "blocks": [["a", "b"], ["c"]]},
    {"task": "label-ranking", **QUADRATIC, "cutoff": 3},
    {"task": "label-ranking", **QUADRATIC, "loss": "ap", "bias": True},
    {"task": "label-ranking", **QUADRATIC, "loss": "pairwise-disagreement", "regularization": 0.1},
    {"task": "subset-ranking", **QUADRATIC, "normalize": "list"},
    {"task": "subset-ranking", "algorithm": "listnet", "context": True, "normalize": "list", "bias": True},
    {"task": "subset-ranking", **QUADRATIC, "loss": "precision", "cutoff": 2, "budget": 10},
    {"task": "subset-ranking", **QUADRATIC, "loss": "ap", "kernel": "gaussian", "budget": 10},
    {"task": "subset-ranking", **QUADRATIC, "loss": "pairwise-disagreement", "bias": True},
    {"task": "binary", **LABELS, **PREDTRON, "loss": "matrix", "matrix": {"low": {"high": 4}}},
    {"task": "multiclass", **PREDTRON, "loss": "matrix", "matrix": MATRIX, "variant": "loss-driven"},
    {"task": "ordinal", **GRADES, **PREDTRON, "loss": "matrix", "matrix": {"1": {"4": 9}, "2": {"2": 0.5}}},
    {"task": "binary", **LABELS, "algorithm": "auto", "loss": "matrix", "matrix": {"high": {"low": 3}}},
    {"task": "multiclass", "algorithm": "auto", "loss": "matrix", "matrix": MATRIX},
    {"task": "ordinal", **GRADES, "algorithm": "auto", "loss": "matrix", "matrix": {"1": {"4": 9}}},
    {"task": "binary", **LABELS, **QUADRATIC},
    {"task": "binary", **LABELS, **QUADRATIC, "loss": "reject", "reject_costs": {"low": 0.2}},
    {"task": "binary", **LABELS, **QUADRATIC, "loss": "matrix", "matrix": {"high": {"low": 3}}},
    {"task": "multiclass", **QUADRATIC, "loss": "matrix", "matrix": MATRIX, "regularization": "auto"},
    {"task": "ordinal", **GRADES, **QUADRATIC, "kernel": "polynomial", "degree": 2, "budget": 12},
    {"task": "ordinal", **GRADES, **QUADRATIC, "loss": "matrix", "matrix": {"1": {"4": 9}}, "bias": True},
    {"task": "multilabel", **QUADRATIC, "regularization": "auto", "loss": "f-score"},
    {"task": "multilabel", **PREDTRON, "loss": "f-score"},
    {"task": "multilabel", **PREDTRON, "loss": "jaccard", "variant": "loss-driven"},
    {"task": "label-ranking", **PREDTRON, "gain": "linear", "discount": "reciprocal"},
    {"task": "subset-ranking", **PREDTRON, "gain": "linear", "cutoff": 2, **THEORY},
    {"task": "subset-ranking", **QUADRATIC, "discount": "reciprocal", "regularization": "auto"},
    {"task": "label-ranking", **QUADRATIC, "gain": "linear"},
    {"task": "multilabel", **PREDTRON, "norm": "trace", "loss": "hamming"},
    {"task": "multiclass", **PREDTRON, "norm": "trace", **THEORY, "labels": list("abcdefghi")},
    {"task": "label-ranking", **PREDTRON, "norm": "trace", "labels": list("abcdefghij"), "bias": True},
    {"task": "choice"},
    {"task": "choice", "algorithm": "inverse-gap", "forget": "auto"},
    {"task": "choice", "gamma": 3, "floor": 0.1, "range": [-1, 2], "baseline": 0.3},
]

every_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda s: "-".join(str(v) for v in s.values())[:60])


@every_spec
def test_equal_streams_give_equal_bytes(spec):
    one, two = build(spec), build(copy.deepcopy(spec))
    events = stream(spec, 1, 40)
    assert run(one, events) == run(two, json.loads(json.dumps(events)))
    assert dump(one) == dump(two)
    assert one.version == 40
    assert one.progress.rounds == 40
    assert one.progress.updates > 0, "the stream must teach something, or the laws say nothing"


@every_spec
def test_save_and_load_in_the_middle_changes_no_later_bit(spec):
    events = stream(spec, 2, 60)
    straight, broken = build(spec), build(spec)
    for cut, (instance, answer) in enumerate(events):
        outcome = teach(straight, instance, answer)
        if cut % 7 == 3:
            broken = load(dump(broken))
        assert teach(broken, instance, answer) == outcome
    assert dump(broken) == dump(straight)
    assert fingerprint(broken) == fingerprint(straight)
    assert broken.describe() == straight.describe()


@every_spec
def test_predicting_changes_nothing(spec):
    learner, silent = build(spec), build(spec)
    for instance, answer in stream(spec, 3, 25):
        teach(silent, instance, answer)
        before = dump(learner)
        first = learner.predict(instance)
        assert learner.predict(instance) == first
        learner.check(instance, answer, served=learner.predict(instance).served())
        assert dump(learner) == before
        teach(learner, instance, answer)
    assert dump(learner) == dump(silent)


@every_spec
def test_inputs_are_not_mutated(spec):
    learner = build(spec)
    events = stream(spec, 4, 25)
    kept = copy.deepcopy(events)
    given_spec = copy.deepcopy(spec)
    run(learner, events)
    for instance, _ in events:
        learner.predict(instance, top=2)
    assert events == kept
    assert spec == given_spec


@every_spec
def test_the_full_spec_reads_as_itself(spec):
    full = build(spec).spec
    assert build(full).spec == full
    assert json.loads(json.dumps(full)) == full


@every_spec
def test_an_event_of_weight_one_is_an_event_and_a_light_one_teaches_less(spec):
    plain, weighed, light, heavy = build(spec), build(spec), build(spec), build(spec)
    for instance, answer in stream(spec, 13, 12):
        assert teach(plain, instance, answer) == teach(weighed, instance, answer, weight=1)
        teach(light, instance, answer, weight=0.01)
        teach(heavy, instance, answer, weight=1000)
    assert dump(plain) == dump(weighed)
    assert dump(plain) != dump(light)
    assert heavy.progress.rounds == 12
    before = dump(heavy)
    for weight in (0, -1, 1000.5, True, "1", float("nan"), None):
        with pytest.raises(InputError) as caught:
            teach(heavy, instance, answer, weight=weight)
        assert caught.value.pointer == "/weight"
    assert dump(heavy) == before
