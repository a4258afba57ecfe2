"""The features of a request go into the log, and into a remembered prediction, as they came."""

import json

import orjson
import pytest

from feedrank.learners import FeatureVector, kernel
from feedrank.service.contract.events import Event
from feedrank.service.contract.messages import encode, loads, request_digest

native = pytest.mark.skipif(kernel.NAME != "native", reason="the NumPy kernel leaves JSON to orjson")
LINE = b'{"features": {"\\u00fcber": 1.50, "b": -2e0}, "label": "x"}'


class Entry:
    taken, at, retracts, erased = None, 0.0, 0, ""

    def __init__(self, body):
        self.body = body


@native
def test_features_are_written_as_they_were_read():
    request = loads(LINE)
    assert isinstance(request["features"], FeatureVector)
    assert b'{"\\u00fcber": 1.50, "b": -2e0}' in encode({"instance": request})
    body = Event({"label": "x"}, {"features": request["features"]}).body()
    assert orjson.loads(body) == {"truth": {"label": "x"}, "instance": {"features": {"über": 1.5, "b": -2.0}}}
    folded = Event.fold(Entry(body))
    assert folded.instance["features"].names == ["über", "b"]
    assert Event.read(Entry(body)).instance == {"features": {"über": 1.5, "b": -2.0}}


def test_requests_that_say_the_same_have_one_digest():
    same = json.dumps({"label": "x", "features": {"b": -2.0, "über": 1.5}}).encode()
    assert request_digest(loads(LINE)) == request_digest(orjson.loads(LINE)) == request_digest(loads(same))


@pytest.mark.parametrize(
    "wrong", [b'{"features": [NaN]}', b"{", b'{"features": ["\xff"]}', b'{"features": ["\\ud800"]}']
)
def test_what_is_no_json_is_refused_as_before(wrong):
    with pytest.raises(orjson.JSONDecodeError):
        loads(wrong)


@native
@pytest.mark.parametrize(
    ("line", "again"),
    [
        (b'{"feedback": {"features": {"\\u00fcber": 1.50, "b": -2e0}, "label": "y"}}', True),
        (b'{"label": "y", "features" :  {"\\u00fcber": 1.50, "b": -2e0}}', True),
        (b'{"features": {"\\u00fcber": 1.5, "b": -2e0}}', False),
        (b'{"features": {"\\u00fcber": 1.50, "b": -2e0, "c": 1}}', False),
        (b'{"features": {"\\u00fcber": 1.50, "b": -2e0', False),
        (b'{"features": {"\\u00fcber": 1.50, "b": -2e0}}}', False),
        (b'{"features": {"\\u00fcber": 1.50, "b": -2e0}', False),
        (b'{"features": []}', False),
    ],
)
def test_features_whose_json_comes_again_are_the_last_ones(line, again):
    last = kernel.loads(LINE)["features"]
    value, plain = kernel.loads(line, last), kernel.loads(line)
    assert value == plain
    body = {} if value is None else value.get("feedback", value)
    assert (body.get("features") is last) == again


@native
@pytest.mark.parametrize("last", [None, [], {"a": 1.0}, FeatureVector(["a"])])
def test_what_was_not_read_from_json_cannot_come_again(last):
    assert kernel.loads(b'{"features": ["a"]}', last)["features"] == FeatureVector(["a"])
