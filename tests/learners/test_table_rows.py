"""Records read by the `input` of a learner."""

import numpy as np
import pytest

from feedrank.learners import build, dump, load, reading, table_rows
from feedrank.learners.errors import InstanceError, SpecError

INPUT = {"Subject": "text", "Plan": "category", "age": "number", "when": "time", "id": "id", "Queue": "truth"}
SPEC = {"task": "multiclass", "input": INPUT, "tokenizer": "words-1"}


def features(row, **more):
    parsed = reading.instance(build(SPEC).spec, {"row": row, **more})
    values = np.ones(len(parsed)) if parsed.values is None else parsed.values
    return dict(zip(parsed.names, values.tolist(), strict=True))


def test_every_role():
    row = {
        "Subject": "No card",
        "Plan": "gold",
        "age": 31,
        "when": "2026-11-18T13:45",
        "id": 7,
        "Queue": "cards",
    }
    assert features(row) == {
        "Plan=gold": 1,
        "age": 31,
        "when:month=11": 1,
        "when:weekday=wed": 1,
        "when:hour=13": 1,
        "Subject:no": 1,
        "Subject:card": 1,
        "Subject:no card": 1,
    }


@pytest.mark.parametrize("column", ["age", "AGE", " Age ", "\tage"])
def test_columns_match_without_case_and_outer_blanks(column):
    assert features({column: 3}) == {"age": 3}


@pytest.mark.parametrize("cell", [None, "", "  ", "\t"])
@pytest.mark.parametrize("column", INPUT)
def test_a_blank_cell_is_missing(column, cell):
    assert features({column: cell}) == {}


@pytest.mark.parametrize("column", ["id", "Queue"])
@pytest.mark.parametrize("cell", [1, "x", [], {"a": 1}, True])
def test_what_is_not_used_may_hold_anything(column, cell):
    assert features({column: cell}) == {}


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (3, "3"),
        (3.0, "3"),
        ("3", "3"),
        (" gold ", "gold"),
        (True, "true"),
        (2.5, "2.5"),
        ("__class__", "__class__"),
    ],
)
def test_a_category_is_the_same_however_it_is_written(cell, name):
    assert features({"Plan": cell}) == {f"Plan={name}": 1}


def test_a_category_may_have_several_values():
    assert features({"plan": ["a", "b", "", "a"]}) == {"Plan=a": 1, "Plan=b": 1}


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("2026-11-18", {"month=11", "weekday=wed"}),
        ("2026-11-18 00:10:00+02:00", {"month=11", "weekday=wed", "hour=0"}),
        ("2026-11-18T23:59:59Z", {"month=11", "weekday=wed", "hour=23"}),
        ("2026/1/8", {"month=1", "weekday=thu"}),
        ("8.1.2026 07:30", {"month=1", "weekday=thu", "hour=7"}),
        ("13:45", {"hour=13"}),
        (0, {"month=1", "weekday=thu", "hour=0"}),
        (1_795_009_500, {"month=11", "weekday=wed", "hour=13"}),
        (1_795_009_500_000, {"month=11", "weekday=wed", "hour=13"}),
    ],
)
def test_a_time_gives_what_it_says(cell, parts):
    assert set(features({"when": cell})) == {f"when:{part}" for part in parts}


@pytest.mark.parametrize(("cell", "number"), [(" 3.5 ", 3.5), ("-2", -2), (True, 1), ("1e3", 1000), (0, 0)])
def test_numbers_as_text(cell, number):
    assert features({"age": cell}) == {"age": number}


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ({"age": "old"}, "/row/age"),
        ({"Age": "nan"}, "/row/Age"),
        ({"age": float("inf")}, "/row/age"),
        ({"age": 10**400}, "/row/age"),
        ({"age": [1]}, "/row/age"),
        ({"when": "11/12/2026"}, "/row/when"),
        ({"when": "yesterday"}, "/row/when"),
        ({"when": "2026-02-30"}, "/row/when"),
        ({"when": 1e300}, "/row/when"),
        ({"when": float("nan")}, "/row/when"),
        ({"when": True}, "/row/when"),
        ({"Subject": ["a"]}, "/row/Subject"),
        ({"Plan": {"a": 1}}, "/row/Plan"),
        ({"age": 1, "AGE": 1}, "/row/AGE"),
        ({"color": 1}, "/row/color"),
        ([], "/row"),
        ("x", "/row"),
        ({1: 2}, "/row"),
    ],
)
def test_what_is_refused(row, place):
    learner = build(SPEC)
    fresh = dump(learner)
    with pytest.raises(InstanceError) as caught:
        learner.learn({"row": row}, {"label": "a"})
    assert caught.value.pointer == place
    assert dump(learner) == fresh


def test_an_unknown_column_names_the_nearest_one():
    with pytest.raises(InstanceError, match="did you mean 'Subject'"):
        features({"subjekt": "x"})
    with pytest.raises(InstanceError, match="the columns are 'Subject', 'Plan'"):
        features({"zzzzzzzz": "x"})
    assert features({"zzzzzzzz": "x", "age": 2}, unknown_columns="ignore") == {"age": 2}
    with pytest.raises(InstanceError) as caught:
        features({"age": 2}, unknown_columns="drop")
    assert caught.value.pointer == "/unknown_columns"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({}, "/input"),
        ([], "/input"),
        ({"a": "word"}, "/input/a"),
        ({"a": 1}, "/input/a"),
        ({"a": "text", " A": "number"}, "/input/ A"),
        ({" ": "text"}, "/input/ "),
        ({"a" * 1001: "text"}, "/input/" + "a" * 1001),
        ({"a": "vector", "b": "vector"}, "/input/b"),
        ({"a": "truth", "b": "truth", "c": "text"}, "/input/b"),
        ({"a": "id", "b": "ignore"}, "/input"),
    ],
)
def test_an_input_that_cannot_be(value, place):
    with pytest.raises(SpecError) as caught:
        build({"task": "multiclass", "input": value})
    assert caught.value.pointer == place


def test_a_learner_takes_records_or_vectors_never_both():
    with pytest.raises(InstanceError, match="reads records"):
        build(SPEC).predict({"text": "card"})
    with pytest.raises(InstanceError, match="has no `input`"):
        build({"task": "multiclass"}).predict({"row": {"a": 1}})
    with pytest.raises(InstanceError) as caught:
        build(SPEC).predict({"row": {"age": 1}, "text": "card"})
    assert caught.value.pointer == "/text"
    with pytest.raises(SpecError, match="goes with feature vectors"):
        build({"task": "subset-ranking", "input": {"a": "text"}})


def test_the_input_is_kept_with_the_learner():
    learner = build(SPEC)
    learner.learn({"row": {"subject": "no card", "plan": "gold", "when": "2026-11-18"}}, {"label": "cards"})
    learner.learn({"row": {"subject": "refund", "age": "50"}}, {"label": "money"})
    again = load(dump(learner))
    assert again.spec == learner.spec
    for row in ({"subject": "card"}, {"plan": "gold"}, {"AGE": 50}, {}):
        assert again.predict({"row": row}).ranking == learner.predict({"row": row}).ranking
    assert learner.predict({"row": {"subject": "no card", "plan": "gold"}}).label == "cards"


def test_a_record_is_the_same_vector_as_its_parts():
    by_row = build(SPEC)
    by_parts = build({"task": "multiclass", "tokenizer": "words-1"})
    row = {"Subject": "No card", "Plan": "gold", "age": 31}
    parts = {"features": {"Plan=gold": 1, "age": 31}, "text": {"Subject": "No card"}}
    by_row.learn({"row": row}, {"label": "a"})
    by_parts.learn(parts, {"label": "a"})
    assert by_row.predict({"row": row}).ranking == by_parts.predict(parts).ranking


def test_a_word_that_is_named_as_a_feature_counts_with_it():
    spec = build({"task": "multiclass", "tokenizer": "words-1"}).spec
    parsed = reading.instance(spec, {"features": {"card": 2.0}, "text": "a card"})
    assert dict(zip(parsed.names, parsed.values.tolist(), strict=True)) == {"card": 3, "a": 1, "a card": 1}


def test_roles_are_listed_once():
    assert table_rows.roles.schema["additionalProperties"]["enum"] == list(table_rows.ROLES)
