"""The native reader of JSON reads what Python reads, and leaves the rest to it."""

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import FEATURES, NUMBERS

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")

JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(["items", "label"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def plain(value):
    """What `loads` read, with the features as Python objects."""
    if isinstance(value, native.Features):
        values = value.values
        return value.names if values is None else dict(zip(value.names, values.tolist(), strict=True))
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def expected(value, items=False):
    """What a plain reader has, with the features as `plain` shows them."""
    if isinstance(value, dict):
        return {
            key: wanted(member)
            if key == "features" and not items and isinstance(member, list | dict)
            else expected(member, items or key == "items")
            for key, member in value.items()
        }
    return [expected(entry, items) for entry in value] if isinstance(value, list) else value


def wanted(features):
    if isinstance(features, dict):
        return {name: float(value) for name, value in features.items()}
    if features and isinstance(features[0], str):
        return list(dict.fromkeys(features))
    return {str(i): float(value) for i, value in enumerate(features)}


@settings(max_examples=150, deadline=None)
@given(JSON, FEATURES, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_read_as_python_reads_it(rest, features, ascii_only, indent):
    document = {"predict": {"rest": rest, "features": features, "items": [{"features": [1]}]}, "n": [rest]}
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent, allow_nan=False)
    line = text.encode("utf-8", "surrogatepass")
    value = native.loads(line)
    unusual = any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(document, ensure_ascii=False)) or '""' in text
    if value is None:
        assert (
            unusual
            or "-0" in text
            or any(len(word.strip("-,[]{}: ")) > 18 for word in text.split())
            or "e" in text
        )
        return
    assert plain(value) == expected(json.loads(line))
    raw = value["predict"]["features"].json
    assert json.loads(raw) == features


@settings(max_examples=150, deadline=None)
@given(FEATURES, st.randoms(use_true_random=False))
def test_damaged_json_is_never_read_as_something_else(features, chance):
    line = bytearray(
        json.dumps({"features": features, "label": "x"}, ensure_ascii=False).encode("utf-8", "replace")
    )
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(line))
        if chance.random() < 0.5:
            line[place] = chance.choice(b'"\\{}[],:0-.eu\x00\x80\xff\xed a')
        else:
            del line[place]
    value = native.loads(bytes(line))
    if value is not None:
        assert plain(value) == expected(json.loads(bytes(line)))


@pytest.mark.parametrize(
    "text",
    [
        '{"features": {"a": 1, "a": 2}}',
        '{"features": {"": 1}}',
        '{"features": [""]}',
        '{"features": {"a": 1e101}}',
        '{"features": {"a": NaN}}',
        '{"features": {"a": true}}',
        '{"features": ["a", 1]}',
        '{"features": [1, "a"]}',
        '{"features": ["\\ud800"]}',
        '{"features": {"a": 01}}',
        '{"features": {"a": 1.}}',
        '{"features": ["a\nb"]}',
        '{"a": 1} x',
        "[1]",
        "",
        '{"a": ' + "[" * 60 + "]" * 60 + "}",
        '{"a": 123456789012345678901}',
    ],
)
def test_what_is_unusual_is_left_to_the_other_reader(text):
    assert native.loads(text.encode()) is None


def test_numbers_are_the_nearest_ones():
    chance = random.Random(3)
    texts = [
        "0.1",
        "1e22",
        "1e23",
        "123456789012345.6",
        "5e-324",
        "2.2250738585072011e-308",
        "9007199254740993.0",
    ]
    texts += [f"{chance.randrange(10**17)}e{chance.randint(-60, 60)}" for _ in range(300)]
    texts += [repr(math.ldexp(chance.random(), chance.randint(-60, 60))) for _ in range(300)]
    for text in texts:
        assert native.loads(f'{{"v": {text}}}'.encode()) == {"v": float(text)}
