"""Features of folded text: the kernel's against kernel/words.py, on any script, cut anywhere; and in rounds as raw text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import build, dump, kernel, text
from feedrank.learners.errors import InstanceError
from feedrank.learners.kernel import words

SPECIAL = [
    *(
        "a",
        "b",
        "9",
        "_",
        " ",
        "word ",
        "^",
        "$",
        "~",
        ":",
        "\x00",
        "\n",
        "x" * 70,
        "ab" * 40,
        "é",
        "ß",
        "²",
        "ⅷ",
    ),
    *(
        "\u0301",
        "\u0345",
        "\u0300\u0316",
        "\u3042",
        "\u30fb",
        "漢",
        "가",
        "\u1161",
        "नि",
        "ก็",
        "ٱل",
        "\u09be",
    ),
    *("\ud800", "😀", "\U00020001", "\U0003fffd", "\U0003fffe", "\U0010ffff"),
]
PIECES = st.lists(
    st.one_of(st.lists(st.sampled_from(SPECIAL), max_size=9).map("".join), st.text(max_size=9)), max_size=5
)
PREFIXES = st.sampled_from(["", "subject:", "é:", "a:b:"])


@given(st.dictionaries(PREFIXES, PIECES, max_size=3), st.booleans())
def test_the_kernel_finds_the_features_that_the_rule_states(fields, parts):
    ours = kernel.text_features(list(fields.items()), parts)
    theirs = words.text_features(list(fields.items()), parts)
    assert list(ours.names) == list(theirs.names)
    assert len(set(ours.names)) == len(ours.names)
    whole = words.text_features([(prefix, ["".join(pieces)]) for prefix, pieces in fields.items()], parts)
    assert list(whole.names) == list(theirs.names)


@given(PIECES, st.dictionaries(st.sampled_from(["a", "b", "a b", "~^ab$", "漢", "q"]), st.floats(-9, 9)))
def test_a_word_that_is_named_as_a_feature_adds_1_to_it(pieces, features):
    names, values = list(features), np.array([*features.values()], dtype=float)
    ours = kernel.together(kernel.Features(names, values), kernel.text_features([("", pieces)], True))
    plain = words.Features(names, values), words.text_features([("", pieces)], True)
    theirs = words.together(*plain)
    assert list(ours.names) == list(theirs.names)
    assert ours.values.tolist() == theirs.values.tolist()


@pytest.mark.parametrize("algorithm", [{}, {"algorithm": "predtron"}, {"algorithm": "quadratic-surrogate"}])
def test_text_teaches_what_its_own_words_teach(algorithm):
    texts = ["Cheap pills now", "Ёлка и 東京", "", "meeting at nine", "Cheap pills now", "na\u0301me " * 40]
    raw, named = (build({"task": "multiclass", **algorithm}) for _ in range(2))
    for n, value in enumerate(texts * 3):
        truth = {"label": f"l{n % 4}"}
        features = text.read(value, raw.spec["tokenizer"])
        predictions = raw.predict({"text": value}), named.predict(features)
        assert predictions[0].ranking == predictions[1].ranking
        assert predictions[0].unknown == predictions[1].unknown
        raw.predict({"text": texts[n % 5]})  # another one, or the same
        assert raw.learn({"text": value}, truth) == named.learn(features, truth)
    assert dump(raw) == dump(named)


def test_a_text_of_fields_is_read_again_when_its_owner_changed_it():
    learner = build({"task": "multiclass"})
    instance = {"text": {"subject": "cheap"}}
    learner.learn(instance, {"label": "junk"})
    learner.learn({"text": "so"}, {"label": "mail"})
    learner.predict(instance)
    instance["text"]["subject"] = "other"
    assert learner.predict(instance).known == 0


@pytest.mark.parametrize("wrong", [7, None, ["a"], {"": "a"}, {"a": 7}, {7: "a"}])
def test_what_is_no_text_is_refused_and_changes_nothing(wrong):
    learner = build({"task": "multiclass", "labels": ["a", "b"]})
    before = dump(learner)
    for call in (learner.predict, lambda instance: learner.learn(instance, {"label": "a"})):
        with pytest.raises(InstanceError, match="text"):
            call({"text": wrong})
    assert dump(learner) == before
