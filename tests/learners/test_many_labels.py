"""Presets of many labels: memory grows with the pairs that met, and lists instead of rows leave all bits as they are."""

import numpy as np
import pytest

from feedrank.learners import build, dump, kernel, load

MANY = 700
SPECS = [
    {"task": "multiclass"},
    {"task": "multiclass", "algorithm": "naive-bayes"},
    {"task": "multilabel", "experts": ["naive-bayes", "dual-ascent"]},
    {"task": "label-ranking"},
]


def events(spec, count, seed=5):
    rng = np.random.default_rng(seed)
    for at in range(count):
        label = f"l{int(rng.integers(MANY))}"
        names = [*sorted({f"w{int(j)}" for j in rng.pareto(0.7, 12)})[:12], label[:2]]
        one = {"label": label} if spec["task"] == "multiclass" else {"labels": [label, f"l{at % 9}"]}
        yield {"features": names}, one


def learner_of(spec):
    return build({**spec, "labels": [f"l{k}" for k in range(MANY)]})


@pytest.mark.skipif(kernel.NAME != "native", reason="NumPy does all rounds by their pieces")
@pytest.mark.parametrize("spec", SPECS)
def test_whole_rounds_have_the_bits_of_the_pieces(spec):
    whole, pieces = learner_of(spec), learner_of(spec)
    pieces._fused = None
    for at, (instance, truth) in enumerate(events(spec, 60)):
        assert whole.predict(instance, top=4) == pieces.predict(instance, top=4)
        assert whole.learn(instance, truth) == pieces.learn(instance, truth)
        if at == 30:
            assert dump(whole) == dump(pieces)
            whole = load(dump(whole))
    assert dump(whole) == dump(pieces)


@pytest.mark.parametrize("spec", SPECS)
def test_an_event_that_is_taken_back_leaves_no_trace(spec):
    learner = learner_of(spec)
    for instance, truth in events(spec, 20):
        learner.learn(instance, truth)
    before = dump(learner)
    model, teach = learner.model, learner.model.learn

    def fail(*arguments):
        teach(*arguments)
        raise MemoryError

    model.learn, learner._fused = fail, None
    for instance, truth in events(spec, 5, seed=8):
        with pytest.raises(MemoryError):
            learner.learn(instance, truth)
        assert dump(learner) == before


@pytest.mark.skipif(kernel.NAME != "native", reason="NumPy keeps whole rows")
def test_memory_grows_with_the_pairs_that_met():
    spec = {"task": "multiclass", "algorithm": "naive-bayes"}
    learner = learner_of(spec)
    for instance, truth in events(spec, 300):
        learner.learn(instance, truth)
    weights = learner.model.experts[0]._kept
    pairs = np.count_nonzero(weights.theta)
    assert weights.nbytes() < 64 * pairs < weights.theta.nbytes
    explained = learner.predict({"features": ["w0", "w1"]}, explain=True, top=2)
    for (_, score), parts in zip(explained.ranking, explained.contributions, strict=True):
        assert sum(parts.values()) == pytest.approx(score)
