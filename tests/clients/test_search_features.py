"""Features of results: each against its formula, and what odd documents do."""

import math
import re
import unicodedata
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.clients.search import Features, Result
from feedrank.clients.search.features import words, words_of_each

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def features(query, results, **options):
    """{id: features}, with what was left out as 0 on demand."""
    table = Features(**options).table(query, results, NOW)
    return {
        id: {name: value for name, value in zip(table["columns"], row, strict=True) if value}
        for id, row in zip(table["ids"], table["rows"], strict=True)
    }


def test_the_engines_score_and_place():
    result = features("q", [Result("a", 8.0), Result("b", 4.0), Result("c", 2.0)])
    assert result["a"] == {"engine": 8, "engine:unit": 1, "engine:share": 1, "rank": 1}
    assert result["b"] == {
        "engine": 4,
        "engine:unit": pytest.approx(1 / 3),
        "engine:share": 0.5,
        "rank": 0.5,
    }
    assert result["c"] == {"engine": 2, "engine:share": 0.25, "rank": pytest.approx(1 / 3)}


def test_the_query_meets_a_field():
    titles = {
        "same": "Python Socket",
        "start": "python socket programming",
        "inside": "the Python socket module",
        "apart": "socket of python",
        "half": "python",
        "none": "gopher",
        "longer": "pythonsocket python sockets",
    }
    result = features(
        "python socket", [Result(id, 1.0, {"title": text}) for id, text in titles.items()], text=["title"]
    )

    def having(name):
        return {id for id, one in result.items() if one.get(f"title:{name}")}

    assert having("exact") == {"same"}
    assert having("prefix") == {"same", "start"}
    assert having("phrase") == {"same", "start", "inside"}
    assert {id: one.get("title:coverage", 0) for id, one in result.items()} == {
        "same": 1, "start": 1, "inside": 1, "apart": 1, "half": 0.5, "none": 0, "longer": 1,
    }  # fmt: skip
    assert result["half"]["title:length"] == pytest.approx(1 / (1 + math.log(2)))


def test_bm25_is_its_formula_over_the_list():
    texts = ["a b b", "a c", "c c c c"]
    result = features(
        "a b", [Result(str(i), 1.0, {"body": text}) for i, text in enumerate(texts)], text=["body"]
    )
    mean = 9 / 3

    def part(tf, having, length):
        idf = math.log(1 + (3 - having + 0.5) / (having + 0.5))
        return idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean))

    assert result["0"]["body:bm25"] == pytest.approx(part(1, 2, 3) + part(2, 1, 3))
    assert result["1"]["body:bm25"] == pytest.approx(part(1, 2, 2))
    assert "body:bm25" not in result["2"]


def test_freshness_halves_and_takes_dates_as_they_come():
    month = NOW - timedelta(days=30)
    dates = {
        "now": NOW,
        "date": date(2026, 5, 2),
        "iso": month.isoformat(),
        "naive": "2026-05-02T00:00:00",
        "seconds": month.timestamp(),
        "milliseconds": month.timestamp() * 1000,
        "future": NOW + timedelta(days=9),
        "odd": "yesterday",
        "none": None,
        "endless": 1e300,
        "no double": 10**400,
    }
    result = features("q", [Result(id, 1.0, {"at": value}) for id, value in dates.items()], freshness="at")
    assert {id: one.get("freshness", 0) for id, one in result.items()} == {
        **dict.fromkeys(("now", "future"), 1),
        **dict.fromkeys(("date", "iso", "naive", "seconds", "milliseconds"), pytest.approx(0.5)),
        **dict.fromkeys(("odd", "none", "endless", "no double"), 0),
    }


def test_popularity_and_numbers_of_the_users_own():
    results = [Result("a", 1.0, {"views": 9, "stars": 4.5}), Result("b", 1.0, {"views": -1, "stars": "many"})]
    result = features("q", results, popularity="views", extra=["stars"])
    assert result["a"]["popularity"] == pytest.approx(math.log(10))
    assert result["a"]["stars"] == 4.5
    assert not {"popularity", "stars"} & result["b"].keys()


def test_lists_as_text_and_a_bound_on_long_documents():
    results = [Result("a", 1.0, {"tags": ["red", "blue"]}), Result("b", 1.0, {"tags": "x " * 10_000 + "red"})]
    result = features("red", results, text=["tags"])
    assert result["a"]["tags:coverage"] == 1
    assert "tags:coverage" not in result["b"]  # read no further than most_words


odd = st.one_of(
    st.none(),
    st.text(),
    st.floats(),
    st.integers(),
    st.lists(st.text()),
    st.dictionaries(st.text(), st.text()),
)


@given(
    st.text(),
    st.lists(st.tuples(st.floats(), odd, odd, odd), max_size=6),
)
def test_no_document_is_too_odd(query, rows):
    results = [Result(str(i), score, {"t": a, "d": b, "p": c}) for i, (score, a, b, c) in enumerate(rows)]
    table = Features(text=["t", "t.a", "missing"], freshness="d", popularity="p", extra=["p"]).table(
        query, results, NOW
    )
    assert table["ids"] == [result.id for result in results]
    assert all(len(row) == len(table["columns"]) and all(map(math.isfinite, row)) for row in table["rows"])


@given(st.text())
def test_words_are_the_same_in_composed_and_decomposed_form(text):
    assert words(unicodedata.normalize("NFC", text)) == words(unicodedata.normalize("NFD", text))


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_way_to_words_is_the_plain_one(text):
    assert words(text) == re.findall(r"\w+", text.casefold())


@given(st.lists(st.text(max_size=40) | st.sampled_from(["", "a\0b", "\0", "Straße", "two  words, three"])))
def test_texts_that_are_read_together_have_the_words_they_have_alone(texts):
    assert words_of_each(texts) == [words(text) for text in texts]


def test_accents_and_stems_meet():
    titles = {"a": "Cafés", "b": "cafe", "c": "running shoe", "d": "ＣＡＦＥ"}
    results = [Result(id, 1.0, {"title": text}) for id, text in titles.items()]
    assert {id for id, one in features("café", results, text=["title"]).items() if "title:coverage" in one} == {
        "a", "b", "d",
    }  # fmt: skip
    assert features("runs shoes", results, text=["title"])["c"]["title:coverage"] == 1
    plain = features("runs shoes", results, text=["title"], language=None)
    assert "title:coverage" not in plain["c"]
    with pytest.raises(KeyError):
        Features(language="klingon")


@pytest.mark.parametrize(
    ("language", "query", "word"),
    [("dutch", "loop", "gelopen"), ("irish", "fear", "bhfear"), ("indonesian", "baca", "membaca")],
)
def test_stems_meet_where_a_language_changes_the_beginning_of_words(language, query, word):
    one = Result("a", 1.0, {"title": word})
    assert features(query, [one], text=["title"], language=language)["a"]["title:coverage"] == 1


def test_fields_may_lie_deep():
    fields = {"product": {"title": "red shoes", "offers": [{"price": 9}, {"price": 7}]}, "a.b": "red"}
    result = features(
        "red", [Result("x", 1.0, fields)], text=["product.title", "a.b"], extra=["product.offers.price"]
    )
    assert result["x"]["product.title:coverage"] == result["x"]["a.b:coverage"] == 1
    assert result["x"]["product.offers.price"] == 9
