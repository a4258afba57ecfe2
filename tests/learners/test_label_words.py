"""Words of labels' names: what they say, by hand; learned once for all labels; nothing is left behind by an accident."""

import math

import numpy as np
import pytest

from feedrank.learners import SpecError, build, dump, fingerprint, load
from feedrank.learners.blocks import WORDS, block_of, words_of
from feedrank.learners.kernel.label_words import MOST, word_of

SPEC = {
    "task": "multiclass",
    "algorithm": "dual-ascent",
    "update": "III",
    "normalize": "blocks",
    "label_words": True,
}
LABELS = ["Travel/Hotel bills", "hotel", "eolAccess", "Re: x", "team"]
NAMES = [
    "hotel",
    "subject:hotel",
    "bills",
    "subject:eol",
    "to:access",
    "copy:Re: x",
    "copy:hotel",
    "w",
    ":team",
]


def events(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        names = [name for name in NAMES if rng.integers(2)] + [f"w{rng.integers(20)}"]
        yield {"features": names}, {"label": LABELS[rng.integers(len(LABELS))]}


def matched(learner, instance):
    """m_b(x, l) as the docstring has it, from the x of the learner."""
    x = learner.transform.vector(learner._read(instance), learner.features)
    features = [learner.features[row] for row in x.rows.tolist()] + list(x.unknown)
    values = [*x.values.tolist(), *x.unseen.tolist()]
    m = {}
    for name, value in zip(features, values, strict=True):
        having = [label for label in learner.labels if word_of(name) in words_of(label)]
        for label in having:
            key = block_of(name), label
            m[key] = m.get(key, 0.0) + value / math.sqrt(len(having))
    return x, m


def shared(learner):
    blocks = learner.transform.blocks
    return dict(zip(blocks.names, blocks.arrays()["shared"].tolist(), strict=True))


def test_the_words_of_a_name():
    assert words_of("Travel/Hotel_bills2001") == [
        "Travel/Hotel_bills2001",
        "travel",
        "hotel",
        "bills2001",
        "travel hotel",
        "hotel bills2001",
        "bills",
        "2001",
        "hotel bills",
        "bills 2001",
    ]
    assert {"eolaccess", "eol", "access"} < set(words_of("eolAccess"))
    assert {"hpl", "gas"} < set(words_of("HPLGas"))
    assert words_of("a") == ["a"]  # as it is; a letter is no word
    assert "x" not in words_of("plan x")
    assert "部" in words_of("営業部")


def test_the_words_of_an_odd_name_are_bounded():
    for name in ("x" * 10**6, "a b " * 10**5, " ".join(f"w{i}" for i in range(10**4)), "/" * 10**5, "\ud800"):
        words = words_of(name)
        assert words[0] == name
        assert len(words) <= WORDS
        assert len(set(words)) == len(words)


@pytest.mark.parametrize("update", ["I", "II", "III"])
def test_scores_and_steps_are_those_of_the_formula(update):
    learner = build({**SPEC, "update": update})
    moved = 0
    for instance, truth in events(1, 120):
        if truth["label"] not in learner.labels:
            learner.learn(instance, truth)
            continue
        x, m = matched(learner, instance)
        s, W = shared(learner), learner.model.weights.theta.copy()
        t = {
            label: float(x.values @ W[x.rows, i])
            + sum(s.get(b, 0.0) * v for (b, of), v in m.items() if of == label)
            for i, label in enumerate(learner.labels)
        }
        prediction = learner.predict(instance, explain=True)
        assert dict(prediction.ranking) == pytest.approx(t, abs=1e-12)
        for (label, score), parts in zip(prediction.ranking, prediction.contributions, strict=True):
            assert sum(parts.values()) == pytest.approx(score, abs=1e-12), label
        learner.learn(instance, truth)
        # g from the row of one feature that x has, by what theta did
        row, value = int(x.rows[-1]), float(x.values[-1])
        g = (W[row] - learner.model.weights.theta[row]) / value
        for block, weight in shared(learner).items():
            along = sum(m.get((block, label), 0.0) * g[i] for i, label in enumerate(learner.labels))
            assert weight == pytest.approx(s.get(block, 0.0) - along, abs=1e-9)
        moved += bool(g.any())
    assert moved > 20


@pytest.mark.parametrize("update", ["I", "II", "III"])
def test_the_certificate_holds_with_words(update):
    learner = build({**SPEC, "update": update})
    for instance, truth in events(2, 200):
        learner.learn(instance, truth)
        certificate, s = learner.certificate, np.array(list(shared(learner).values()))
        total = learner.model.surrogate.sums[1]
        norm = float((learner.model.weights.theta**2).sum() + (s**2).sum())
        assert certificate["dual_objective"] <= total - 0.5 * norm + 1e-9
        assert certificate["promised"] <= certificate["dual_objective"] + 1e-9


def test_what_names_mean_is_learned_on_some_labels_and_known_of_a_new_one():
    learner = build(SPEC)
    for i in range(60):
        name = f"project{'abcdef'[i % 6]}"
        learner.learn({"features": [f"subject:{name}", f"w{i}", f"from:{i % 7}"]}, {"label": name})
    learner.learn({"features": ["w1", "from:3"]}, {"label": "projectnew"})
    assert learner.predict({"features": ["subject:projectnew", "from:2"]}).label == "projectnew"
    plain = build({key: value for key, value in SPEC.items() if key != "label_words"})
    for i in range(60):
        name = f"project{'abcdef'[i % 6]}"
        plain.learn({"features": [f"subject:{name}", f"w{i}", f"from:{i % 7}"]}, {"label": name})
    plain.learn({"features": ["w1", "from:3"]}, {"label": "projectnew"})
    assert plain.predict({"features": ["subject:projectnew", "from:2"]}).label != "projectnew"


def test_it_is_all_the_same_whether_the_label_or_the_feature_joined_first():
    early, late = build({**SPEC, "labels": LABELS}), build(SPEC)
    for learner in (early, late):
        learner.learn({"features": NAMES}, {"label": "other"})
        for label in LABELS:
            learner.learn({"features": ["w"]}, {"label": label})
    for name in NAMES:
        matching = [
            {learner.labels[label] for label in blocks.labels_of(word)} if word >= 0 else set()
            for learner in (early, late)
            for blocks in [learner.transform.blocks.kernel]
            for word in [int(blocks.words[learner.features.find(name)])]
        ]
        assert matching[0] == matching[1] == {label for label in LABELS if word_of(name) in words_of(label)}


def test_a_word_of_too_many_labels_matches_none():
    learner = build(
        {**SPEC, "labels": [f"common{'abcdefghijklmnopqrstuvwxyz'[i]}/common" for i in range(MOST)]}
    )
    blocks = learner.transform.blocks.kernel
    word = blocks.find_word("common")
    assert blocks.labels_of(word) == list(range(MOST))
    learner.learn({"features": ["common"]}, {"label": "one more common"})
    assert blocks.labels_of(word) == []


def test_an_event_that_fails_leaves_no_name(monkeypatch):
    learner = build(SPEC)
    for instance, truth in events(3, 40):
        learner.learn(instance, truth)
    before = fingerprint(learner)
    blocks = learner.transform.blocks.kernel
    matching = blocks.labels_of(blocks.find_word("hotel"))

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(learner.model, "learn", fail)
    with pytest.raises(MemoryError):
        learner.learn({"features": ["hotel", "new"]}, {"label": "new hotel"})
    monkeypatch.undo()
    assert fingerprint(learner) == before
    assert blocks.labels == len(learner.labels)
    assert blocks.labels_of(blocks.find_word("hotel")) == matching
    again = load(dump(learner))
    for one in (learner, again):
        one.learn({"features": ["hotel", "new"]}, {"label": "new hotel"})
        for instance, truth in events(4, 30):
            one.learn(instance, truth)
    assert dump(learner) == dump(again)


def test_a_spec_without_the_field_does_not_name_it():
    plain = {key: value for key, value in SPEC.items() if key != "label_words"}
    assert build(plain).spec == build({**plain, "label_words": False}).spec
    assert "label_words" not in build(plain).spec
    for spec in (
        {**SPEC, "normalize": "unit"},
        {**SPEC, "complexity": "entropy"},
        {**SPEC, "label_words": 1},
    ):
        with pytest.raises(SpecError) as refused:
            build(spec)
        assert refused.value.pointer == "/label_words"
    with pytest.raises(SpecError):
        build({**SPEC, "task": "binary", "labels": ["a", "b"]})


def test_damaged_weights_of_words_are_refused():
    learner = build(SPEC)
    learner.learn({"features": ["a:hotel"]}, {"label": "hotel"})
    blocks, features = learner.transform.blocks, learner.features
    for array in (np.zeros(7), np.array([math.inf]), np.zeros(1, dtype=np.int64)):
        with pytest.raises(ValueError):
            blocks.restore(features, {**blocks.arrays(), "shared": array})
