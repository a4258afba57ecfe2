"""What an instance may be: text, items in columns, items with a context."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners import InstanceError, build, dump, kernel, load, text
from feedrank.learners.kernel import singles

ITEMS = [
    {"id": "d1", "features": {"bm25": 2.0, "age": 1.0}},
    {"id": "d2", "features": {"bm25": 0.5, "age": 3.0}},
]
COLUMNS = {"ids": ["d1", "d2"], "columns": ["bm25", "age"], "rows": [[2.0, 1], [0.5, 3]]}


def packed(rows):
    return base64.b64encode(np.array(rows, dtype="<f4").tobytes()).decode()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Cheap, CHEAP pills!", ["cheap", "pills", "cheap cheap", "cheap pills"]),
        ("", []),
        ("--- _ ---", []),
        ("ﬁne Straße", ["fine", "strasse", "fine strasse"]),
        ("２０２６ x2", ["2026", "x2", "2026 x2"]),
        ("東京 tower", ["東", "京", "tower", "東 京", "京 tower"]),
        ("don't e-mail", ["don", "t", "e", "mail", "don t", "t e", "e mail"]),
    ],
)
def test_text_becomes_words_and_pairs_by_the_stated_rule(raw, expected):
    assert text.tokens(raw) == expected


def test_fields_of_a_text_keep_their_names_and_do_not_mix():
    learner, same = (build({"task": "multiclass", "tokenizer": "words-1"}) for _ in range(2))
    learner.learn({"text": {"subject": "Cheap pills", "body": "now"}}, {"label": "junk"})
    words = ["subject:cheap", "subject:pills", "subject:cheap pills", "body:now"]
    same.learn({"features": words}, {"label": "junk"})
    assert dump(learner) == dump(same)
    assert list(learner.features)[1:] == words  # behind the constant


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("Hotel a hotel", ["~^hot", "~hote", "~otel", "~tel$"]),
        ("ab", ["~^ab$"]),
        ("東京 x2", ["~^x2$"]),
        ("Ёлка", ["~^ёлк", "~ёлка", "~лка$"]),
        ("x" * 500, ["~^xxx", "~xxxx"]),
    ],
)
def test_words_2_adds_the_parts_of_words(raw, parts):
    assert text.tokens(raw, "words-2") == text.tokens(raw) + parts


def test_a_learner_keeps_the_rule_that_it_was_made_with():
    old, new = build({"task": "multiclass", "tokenizer": "words-1"}), build({"task": "multiclass"})
    assert new.describe()["tokenizer"] == "words-2"
    for learner in (old, new, load(dump(old)), load(dump(new))):
        learner.learn({"text": {"subject": "Cheap pills"}}, {"label": "junk"})
        rule = learner.describe()["tokenizer"]
        names = [f"subject:{word}" for word in text.tokens("Cheap pills", rule)]
        assert list(learner.features)[1:] == names
    heard = new.predict({"text": {"subject": "cheapest"}})
    assert (heard.known, heard.unknown) == (3, 5)  # ~^che, ~chea, ~heap; not the word, nor what follows


@pytest.mark.parametrize(
    ("instance", "pointer"),
    [
        ({"text": 1}, "/text"),
        ({"text": {"subject": None}}, "/text/subject"),
        ({"text": {"": "x"}}, "/text"),
        ({"text": "x", "features": 1}, "/features"),
        ({}, "/features"),
    ],
)
def test_a_wrong_text_is_refused_at_its_place(instance, pointer):
    with pytest.raises(InstanceError) as caught:
        build({"task": "multiclass"}).predict(instance)
    assert caught.value.pointer == pointer


def test_rows_in_base64_are_the_numbers_as_float32():
    one, two = build({"task": "subset-ranking"}), build({"task": "subset-ranking"})
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    table = {"ids": list("abcde"), "columns": ["x", "y", "z"]}
    for _ in range(3):
        one.learn({"items": {**table, "rows": rows.astype(float).tolist()}}, {"relevance": {"d": 1}})
        two.learn({"items": {**table, "rows": packed(rows)}}, {"relevance": {"d": 1}})
    assert dump(one) == dump(two)
    assert one.predict({"items": {"ids": ["a"], "columns": [], "rows": ""}}).ranking == [("a", 0.0)]


@pytest.mark.skipif(kernel.NAME != "native", reason="the native kernel is not built")
@pytest.mark.parametrize("count", [94, 95, 96, 97, 98, 192, 193, 1000])
def test_both_kernels_read_long_base64(count):
    numbers = np.random.default_rng(count).integers(0, 2**32, count, dtype="<u4").view("<f4")
    text = base64.b64encode(numbers.tobytes()).decode()
    ours, theirs = singles.read_singles(text, count), kernel.read_singles(text, count)
    finite = np.isfinite(numbers)  # a NaN keeps no bits on the way to float64
    assert ours[finite].tobytes() == theirs[finite].tobytes() == numbers[finite].astype(float).tobytes()
    assert not np.isfinite(theirs[~finite]).any()
    for place in range(0, len(text), 37):
        for letter in "=-\n":
            wrong = text[:place] + letter + text[place + 1 :]
            assert (singles.read_singles(wrong, count) is None) == (kernel.read_singles(wrong, count) is None)


@pytest.mark.skipif(kernel.NAME != "native", reason="the native kernel is not built")
@given(st.integers(0, 9), st.text(st.sampled_from("AB/+=a0\n\u00e9"), max_size=40))
def test_both_kernels_read_the_same_base64(count, text):
    numbers = base64.b64encode(np.arange(count, dtype="<f4").tobytes()).decode()
    for given_text in (text, numbers, numbers[:-1] + text[:1]):
        ours, theirs = singles.read_singles(given_text, count), kernel.read_singles(given_text, count)
        assert (ours is None) == (theirs is None)
        assert ours is None or ours.tobytes() == theirs.tobytes()


def test_columns_are_the_items_they_stand_for():
    one, two = build({"task": "subset-ranking"}), build({"task": "subset-ranking"})
    for _ in range(3):
        one.learn({"items": ITEMS}, {"relevance": {"d2": 1}})
        two.learn({"items": COLUMNS}, {"relevance": {"d2": 1}})
    assert dump(one) == dump(two)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"ids": []}, "/items/ids"),
        ({"ids": ["d1", "d1"]}, "/items/ids/1"),
        ({"ids": ["d1", ""]}, "/items/ids/1"),
        ({"ids": [7, "d1"]}, "/items/ids/0"),
        ({"columns": ["bm25", "bm25"]}, "/items/columns/1"),
        ({"columns": ["bm25", ""]}, "/items/columns"),
        ({"columns": "ab"}, "/items/columns"),
        ({"rows": [[1, 2]]}, "/items/rows"),
        ({"rows": [[1, 2], [1]]}, "/items/rows/1"),
        ({"rows": [[1, 2], [1, "2"]]}, "/items/rows/1/1"),
        ({"rows": [[1, 2], [1, float("nan")]]}, "/items/rows/1/1"),
        ({"rows": [[1, 2], [1, 10**400]]}, "/items/rows/1/1"),
        ({"more": 1}, "/items/more"),
        ({"rows": 3}, "/items/rows"),
        ({"rows": packed([[2, 1]])}, "/items/rows"),
        ({"rows": packed([[2, 1], [1, 2]])[:-1]}, "/items/rows"),
        ({"rows": packed([[2, 1], [1, 2]]) + "\n"}, "/items/rows"),
        ({"rows": packed([[2, 1], [1, 2]]).replace("A", "\u00c4")}, "/items/rows"),
        ({"rows": "\ud800"}, "/items/rows"),
        ({"rows": packed([[2, 1], [1, float("nan")]])}, "/items/rows"),
        ({"rows": packed([[2, 1], [1, float("-inf")]])}, "/items/rows"),
    ],
)
def test_wrong_columns_are_refused_at_their_place(change, pointer):
    with pytest.raises(InstanceError) as caught:
        build({"task": "subset-ranking"}).predict({"items": COLUMNS | change})
    assert caught.value.pointer == pointer


def test_a_context_turns_the_order_of_the_same_items():
    learner = build({"task": "subset-ranking", "algorithm": "listnet", "context": True, "learning_rate": 0.5})
    for _ in range(200):
        learner.learn({"items": COLUMNS, "features": ["new"]}, {"relevance": {"d1": 1}})
        learner.learn({"items": COLUMNS, "features": ["old"]}, {"relevance": {"d2": 1}})
    assert learner.predict({"items": ITEMS, "features": ["new"]}).ranking[0][0] == "d1"
    shown = learner.predict({"items": ITEMS, "features": ["old"]}, explain=True)
    assert shown.ranking[0][0] == "d2"
    assert set(shown.contributions[0]) == {"bm25", "age", "old * bm25", "old * age"}
    with pytest.raises(InstanceError):
        build({"task": "subset-ranking"}).predict({"items": ITEMS, "features": ["old"]})
    wrong = [{"id": "a", "features": {"x": 1.0, "c * x": 1.0}}]
    with pytest.raises(InstanceError):
        learner.predict({"items": wrong, "features": ["c"]})


def test_a_sparse_list_is_crossed_as_a_dense_one():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(3000)]
    items = [{"id": f"d{i}", "features": rng.choice(words, 20, replace=False).tolist()} for i in range(40)]
    sparse = build({"task": "subset-ranking", "algorithm": "slam", "context": True})
    dense = build({"task": "subset-ranking", "algorithm": "slam", "context": True})
    truth = {"relevance": {f"d{i}": i % 3 for i in range(40)}}
    sparse.learn({"items": items, "features": {"c": 2.0}}, truth)
    every = sorted({word for item in items for word in item["features"]})
    rows = [[float(word in item["features"]) for word in every] for item in items]
    columns = {"ids": [item["id"] for item in items], "columns": every, "rows": rows}
    dense.learn({"items": columns, "features": {"c": 2.0}}, truth)
    one = sparse.predict({"items": items, "features": {"c": 2.0}}).ranking
    two = dense.predict({"items": items, "features": {"c": 2.0}}).ranking
    assert dict(one) == pytest.approx(dict(two))


def test_two_equal_events_are_one_of_weight_two_for_the_quadratic_surrogate():
    for options in ({}, {"kernel": "gaussian"}, {"budget": 3}, {"kernel": "gaussian", "budget": 4}):
        spec = {"task": "multiclass", "algorithm": "quadratic-surrogate", **options}
        twice, heavy = build(spec), build(spec)
        rng = np.random.default_rng(1)
        exact = "budget" not in options
        for n in range(12):
            x, y = {"features": rng.normal(size=3).round(2).tolist()}, {"label": "abc"[n % 3]}
            heavy.learn(x, y, weight=2)
            twice.learn(x, y)
            twice.learn(x, y)
            if exact:
                one, two = twice.predict(x).ranking, heavy.predict(x).ranking
                assert dict(one) == pytest.approx(dict(two), abs=1e-8)
