"""Vectors: what is read, one block beside the names in every learner, and the length that the first one says."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_inputs import bits
from task_events import stream, teach
from test_laws import every_spec

from feedrank.learners import (
    InputError,
    InstanceError,
    SpecError,
    build,
    dump,
    fingerprint,
    kernel,
    load,
    vectors,
)
from feedrank.learners.kernel import reference
from feedrank.learners.kernel import table as by_name

PREDTRON = {"task": "multiclass", "algorithm": "predtron"}


def packed(numbers):
    return base64.b64encode(np.asarray(numbers, dtype="<f4").tobytes()).decode()


def with_vector(instance, rng, width=5):
    """The instance, or every item of it, with a vector: as numbers or packed. Not negative, which one algorithm needs."""

    def own():
        numbers = rng.uniform(0, 2, width).tolist()
        return numbers if rng.integers(2) else packed(numbers)

    if "items" not in instance:
        return {**instance, "vector": own()}
    items = instance["items"]
    if isinstance(items, dict):
        items = [
            {"id": id, "features": dict(zip(items["columns"], row, strict=True))}
            for id, row in zip(items["ids"], items["rows"], strict=True)
        ]
    return {**instance, "items": [{**item, "vector": own()} for item in items]}


@every_spec
def test_every_learner_takes_vectors_beside_features_and_text(spec):
    rng = np.random.default_rng(3)
    events = stream(spec, 11, 14)
    learner, again = build(spec), build(spec)
    for n, (instance, truth) in enumerate(events):
        given = with_vector(instance, rng) if n % 4 else instance
        if n == 5 and "features" in given and "items" not in given:
            given = {
                **given,
                "features": ["vector[0]", "vector:[0]", "[0]", "vector"],
            }  # names that lead nowhere else
        if n == 9:
            again = load(dump(learner))
            assert dump(again) == dump(learner)
        teach(learner, given, truth)
        if n >= 9:
            teach(again, json.loads(json.dumps(given)), truth)
    assert fingerprint(again) == fingerprint(learner)
    prediction = learner.predict(given)
    assert all(np.isfinite(score) for _, score in prediction.ranking)
    try:
        explained = learner.predict(given, explain=True)
    except InputError:
        return  # with a kernel, a score is not a sum over features
    for (_, score), parts in zip(explained.ranking, explained.contributions, strict=True):
        assert abs(sum(parts.values()) - score) <= 1e-9 * (1 + abs(score))
        assert not any(name.startswith("vector:[") and name != "vector:[0]" for name in parts)


@pytest.mark.parametrize("task", ["multiclass", "subset-ranking", "choice"])
def test_another_length_is_refused_and_changes_nothing(task):
    learner = build({"task": task})
    items = task != "multiclass"

    def instance(*widths):
        if not items:
            return {"vector": [1.0] * widths[0]}
        return {"items": [{"id": f"d{i}", "vector": [1.0 + i] * width} for i, width in enumerate(widths)]}

    truth = {
        "multiclass": {"label": "a"},
        "subset-ranking": {"relevance": {"d0": 1}},
        "choice": {"reward": 1},
    }
    teach(learner, instance(3, 3), truth[task])
    before = dump(learner)
    for call in (learner.predict, lambda wrong: learner.check(wrong, truth[task])):
        with pytest.raises(InstanceError, match=r"has 4 numbers.*has 3") as caught:
            call(instance(4, 4))
        assert caught.value.pointer == ("/items" if items else "/vector")
    with pytest.raises(InstanceError):
        teach(learner, instance(4, 4), truth[task])
    if items:
        with pytest.raises(InstanceError, match="the first one of the list") as caught:
            learner.predict(instance(3, 2))
        assert caught.value.pointer == "/items/1/vector"
    assert dump(learner) == before


def test_the_spec_may_say_the_length():
    learner = build({**PREDTRON, "vector": 3})
    assert learner.spec["vector"] == 3
    with pytest.raises(InstanceError, match="the spec's `vector` has 3"):
        learner.check({"vector": [1, 2]}, {"label": "a"})
    assert "vector" not in build(PREDTRON).spec
    for wrong in (0, 1.5, "3", vectors.LONGEST + 1, True):
        with pytest.raises(SpecError) as caught:
            build({**PREDTRON, "vector": wrong})
        assert caught.value.pointer == "/vector"


def test_numbers_are_those_of_float32_however_they_come():
    numbers = [0.1, -1e-50, 3.4e38, 16777217, 1 / 3]
    rows = [numbers, np.array(numbers), np.array(numbers, dtype=np.float32), packed(numbers), tuple(numbers)]
    read = [vectors.read(row) for row in rows]
    for one in read:
        assert bits(one) == bits(np.array(numbers, dtype=np.float32).astype(np.float64))
    learners = [build(PREDTRON) for _ in rows]
    for learner, row in zip(learners, rows, strict=True):
        for label in "abab":
            learner.learn({"vector": row}, {"label": label})
    assert len({fingerprint(learner) for learner in learners}) == 1
    assert vectors.packed(numbers) == packed(numbers) == vectors.packed(packed(numbers))


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ([1, "2"], "/vector/1"),
        ([1, None], "/vector/1"),
        ([True], "/vector/0"),
        ([[1]], "/vector/0"),
        ([0, float("nan")], "/vector/1"),
        ([0, 0, 3.5e38], "/vector/2"),
        ([10**400], "/vector/0"),
        ([], "/vector"),
        ("", "/vector"),
        ({"a": 1}, "/vector"),
        (None, "/vector"),
        (3, "/vector"),
        ("AAAA", "/vector"),
        ("not base64!", "/vector"),
        (packed([1, float("inf")]), "/vector"),
        (packed([float("nan")]), "/vector"),
        ([0.0] * (vectors.LONGEST + 1), "/vector"),
        (packed([0.0] * (vectors.LONGEST + 1)), "/vector"),
        ("A" * 10_000_000, "/vector"),
        (np.zeros((2, 2)), "/vector"),
        (np.array(["a"]), "/vector"),
        ("\ud800", "/vector"),
    ],
)
def test_what_is_no_vector_is_refused_with_its_place(wrong, pointer):
    learner = build(PREDTRON)
    with pytest.raises(InstanceError) as caught:
        learner.learn({"vector": wrong}, {"label": "a"})
    assert caught.value.pointer == pointer
    assert dump(learner) == dump(build(PREDTRON))


def test_a_row_reads_its_vector_as_an_instance_does():
    spec = {**PREDTRON, "input": {"Embedding": "vector", "plan": "category"}}
    by_row, plain = build(spec), build(spec)
    for numbers in ([1.5, -2.0], [0.1, 3.0]):
        for cell in (numbers, packed(numbers), json.dumps(numbers)):
            by_row.learn({"row": {" embedding ": cell, "plan": "x"}}, {"label": "a"})
            plain.learn({"row": {"Embedding": numbers, "plan": "x"}}, {"label": "a"})
    assert fingerprint(by_row) == fingerprint(plain)
    for cell in ("[1, ", [1, "x"], [1.0, 2.0, 3.0], "nonsense"):
        with pytest.raises(InputError) as caught:
            by_row.predict({"row": {"embedding": cell}})
        assert caught.value.pointer.lower().startswith("/row/embedding")


def test_unit_scales_it_by_itself_and_idf_leaves_it():
    learner = build({**PREDTRON, "weighting": "idf", "normalize": "unit", "learning_rate": 1.0})
    for _ in range(4):
        learner.learn({"text": "one two", "vector": [3.0, 4.0]}, {"label": "a"})
        learner.learn({"text": "one", "vector": [4.0, 3.0]}, {"label": "b"})
    x = learner.transform.vector(learner._read({"text": "one two", "vector": [6.0, 8.0]}), learner.features)
    first, width = learner.features.vector
    own = np.isin(x.rows, np.arange(first, first + width))
    assert np.allclose(x.values[own], [0.6, 0.8])
    assert np.isclose(np.square(x.values[~own]).sum(), 1.0)


def test_a_vector_counts_as_one_feature_known_or_not():
    for task in ("multiclass", "label-ranking"):
        learner = build({"task": task})
        instance = {"features": ["a", "b"], "vector": [0.0, 1.0, 2.0]}
        assert (learner.predict(instance).known, learner.predict(instance).unknown) == (0, 3)
        learner.learn({"features": ["a"], "vector": [0.0, 1.0, 2.0]}, {"label": "x"})
        for _ in range(2):
            prediction = learner.predict(instance)
            assert (prediction.known, prediction.unknown) == (2, 1)
            learner.learn({"features": ["c"]}, {"label": "y"})


INSTANCES = st.tuples(
    st.lists(
        st.sampled_from(["a", "b", "c", "vector:[0]", "vector:[1]", "vector[0]", "ä"]),
        max_size=5,
        unique=True,
    ),
    st.booleans(),
    st.floats(-4, 4, width=32),
)


@pytest.mark.skipif(kernel.NAME != "native", reason="the native kernel is not built")
@given(st.lists(INSTANCES, max_size=8), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 4))
def test_both_tables_have_one_block(instances, idf, unit, bias, width):
    both = by_name.Table(idf, unit, bias), kernel.Table(idf, unit, bias)
    for names, has_vector, value in instances:
        values = np.array([value + i for i in range(len(names))])
        numbers = np.array([value * i for i in range(width)]) if has_vector else None
        plain, native = reference.Features(names, values, numbers), kernel.Features(names, values, numbers)
        assert len(plain) == len(native) == len(names) + has_vector * width
        assert plain.width == native.width == has_vector * width
        counts = [len(table) for table in both]
        looks = both[0].look(plain), both[1].look(native)
        one, other = looks
        assert one.rows.tolist() == other.rows.tolist()
        assert bits(one.values) == bits(other.values)
        assert bits(one.unseen) == bits(other.unseen)
        assert list(one.unknown) == other.unknown
        assert one.late == other.late
        assert one.squared_norm() == other.squared_norm()
        assert both[0].familiar(plain) == both[1].familiar(native)
        for table, look in zip(both, looks, strict=True):  # once in vain, once for good
            table.join(look)
            table.forget(counts[0])
            joined = table.join(table.look(plain if table is both[0] else native))
            assert (np.diff(joined.rows) > 0).all()
            table.count(joined)
    assert both[0].vector == both[1].vector
    assert both[0].text() == both[1].text()
    assert list(both[0]) == list(both[1])
    for kind, table in zip((by_name, kernel), both, strict=True):
        again = kind.Table(idf, unit, bias)
        again.restore(*both[0].text(), np.array(both[1].counts), table.events, both[0].vector)
        assert (again.text(), again.vector) == (table.text(), table.vector)
        assert [again.find(name) for name in table] == [table.find(name) for name in table]


@pytest.mark.parametrize("kind", [by_name, kernel])
def test_a_snapshot_with_its_vector_elsewhere_is_refused(kind):
    table = kind.Table()
    table.add("a")
    table.add_vector(2)
    table.add("b")
    counts = np.zeros(4, dtype=np.int64)
    for place in ((0, 2), (1, 3), (2, 2), (3, 5), (-1, 2), (1, -2), (1, 2**40)):
        with pytest.raises(ValueError):
            kind.Table().restore(*table.text(), counts, 0, place)
    kind.Table().restore(*table.text(), counts, 0, table.vector)


DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(0, 10**20), st.integers(-345, 320)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**17)).map(lambda pair: f"-{pair[0]}.{pair[1]:018d}"),
    # Halfway between two neighbours, and beside that.
    st.tuples(st.integers(2**53, 2**54), st.integers(-1, 1)).map(lambda pair: f"{pair[0] * 10 + pair[1]}e-1"),
)


@pytest.mark.skipif(kernel.NAME != "native", reason="the NumPy kernel leaves JSON to orjson")
@given(st.lists(DECIMALS, min_size=1, max_size=9))
def test_the_kernel_reads_the_nearest_numbers(decimals):
    expected = [json.loads(decimal) for decimal in decimals]
    read = kernel.loads(("{" + ",".join(f'"{i}": {text}' for i, text in enumerate(decimals)) + "}").encode())
    assert read is None or list(read.values()) == expected
    body = kernel.loads(f'{{"vector": [{", ".join(decimals)}]}}'.encode())
    if body is not None:
        assert bits(body["vector"].vector) == bits(vectors.read(expected))
    else:
        assert any(abs(number) > 3.4e38 for number in expected) or any(
            abs(number) >= 10**18 and isinstance(number, int) for number in expected
        )


UNUSUAL = ["[]", "[1,]", "[1, 2", "[[1]]", "[1, null]", "[1e39]", "[1 2]", '["a"]', '"', '""', '"AAAA"']
UNUSUAL += ['"AAAAAAA"', '"AAAA\\/AAA"', json.dumps(packed([float("inf")]))]
UNUSUAL += [json.dumps([0.5] * (vectors.LONGEST + 1)), json.dumps(packed([0.5] * (vectors.LONGEST + 1)))]


@pytest.mark.skipif(kernel.NAME != "native", reason="the NumPy kernel leaves JSON to orjson")
@pytest.mark.parametrize("wrong", UNUSUAL)
def test_the_kernel_leaves_the_unusual(wrong):
    assert kernel.loads(b'{"vector": ' + wrong.encode() + b"}") is None
    assert kernel.vector_of(wrong.strip('"')) is None
