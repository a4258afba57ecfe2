"""The stream: a line in, a line out, in order, both ways at once, however the bytes are cut."""

import asyncio
import gc
import itertools
import json
import socket
import time
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import State

from feedrank.service.contract.budget import Budget
from feedrank.service.contract.faults import TooLarge
from feedrank.service.contract.settings import Settings
from feedrank.service.http.stream import Lines, StreamReply

STREAM = "/v1/learners/mail/stream"


def line(**call):
    return json.dumps(call).encode() + b"\n"


@given(
    st.lists(st.binary(max_size=12).map(lambda part: part.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(0, 40), max_size=6),
    st.booleans(),
)
def test_lines_do_not_depend_on_how_bytes_are_cut(parts, cuts, ended):
    limit = 8
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    lines = Lines(limit)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    result = []
    for start, stop in itertools.pairwise(edges):
        result += lines.feed(data[start:stop])
    result += lines.feed(b"", last=True)
    expected = [
        TooLarge if len(part) > limit else part for part in parts if len(part) > limit or part.strip()
    ]
    assert [TooLarge if isinstance(one, TooLarge) else one for one in result] == expected


def test_a_line_above_the_limit_is_not_kept():
    lines = Lines(10)
    assert [type(one) for one in lines.feed(b"x" * 11)] == [TooLarge]
    for _ in range(1000):
        assert list(lines.feed(b"x" * 1000)) == []
    assert len(lines._rest) == 0
    assert list(lines.feed(b"x\nabc\n")) == [b"abc"]


def test_each_reply_is_that_of_the_single_call(mail):
    twin = "/v1/learners/twin"
    mail.put(twin, json={"task": "multiclass", "algorithm": "predtron"})
    calls = [
        ("predict", {"features": ["a"], "remember": False}),
        ("feedback", {"features": ["a"], "label": "x", "feedback_id": "1"}),
        ("feedback", {"features": ["b"], "label": "y", "feedback_id": "2"}),
        ("predict", {"features": ["b"], "remember": False, "explain": True}),
        ("feedback", {"features": ["a"], "label": "x", "feedback_id": "1"}),
        ("feedback", {"features": ["a"], "label": "z", "feedback_id": "1"}),
        ("predict", {"features": {"a": "b"}}),
        ("feedback", {"prediction_id": "none", "label": "x"}),
        ("predict", {"instances": [{"features": ["b"], "remember": False}]}),
        ("predict", {"features": ["a"], "remember": False, "top": 1}),
    ]
    reply = mail.post(STREAM, content=b"".join(line(**{name: body}) for name, body in calls))
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/x-ndjson"
    streamed = [json.loads(text) for text in reply.text.splitlines()]
    single = [mail.post(f"{twin}/{name}", json=body).json() for name, body in calls]

    def named(value):
        return json.loads(json.dumps(value).replace("twin", "mail"))

    assert streamed == [named(value) for value in single]


def test_feedback_in_a_stream_can_name_a_prediction_of_it(mail):
    first = mail.post(STREAM, content=line(predict={"features": ["a"]})).json()
    body = {"prediction_id": first["prediction_id"], "label": "x"}
    reply = mail.post(STREAM, content=line(feedback=body) * 2).text.splitlines()
    assert [json.loads(text)["duplicate"] for text in reply] == [False, True]


def test_a_bad_line_costs_one_problem_and_the_stream_goes_on(mail):
    good = line(predict={"features": ["a"], "remember": False})
    bad = [b"{\n", b"[]\n", b"{}\n", line(retract={}), line(predict=3), b'{"predict": {}, "feedback": {}}\n']
    reply = mail.post(STREAM, content=good + good.join(bad) + b"\n \r\n" + good.strip())
    statuses = [json.loads(text).get("status", 200) for text in reply.text.splitlines()]
    assert statuses == [200, *[422, 200] * len(bad)]


def test_a_line_above_the_limit_is_413(make_client):
    client = make_client(max_body=1024)
    client.put("/v1/learners/mail", json={"task": "multiclass"})
    good = line(predict={"features": ["a"], "remember": False})
    reply = client.post(STREAM, content=good + b"x" * 5000 + b"\n" + good)
    assert [json.loads(text).get("status", 200) for text in reply.text.splitlines()] == [200, 413, 200]


@pytest.fixture
def duplex(served):
    stream = Duplex(served.url)
    yield stream
    stream.close()


def test_chunks_shrink_with_slow_lines_and_grow_with_fast_ones():
    reply = StreamReply(State({"settings": Settings()}), "mail", None, Budget(2**30))
    for _ in range(20):
        reply._adapt(0.001)
    assert reply._size == 256
    for _ in range(20):
        reply._adapt(1.0)
    assert reply._size == 1


class Duplex:
    """A stream over a bare socket, so that writing and reading can alternate."""

    def __init__(self, url):
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=600)
        head = f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.socket.sendall(head.encode())
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def head(self):
        status = self.file.readline()
        while self.file.readline().strip():
            pass
        return status

    def send(self, data):
        self.socket.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self):
        self.socket.sendall(b"0\r\n\r\n")

    def chunk(self):
        size = int(self.file.readline(), 16)
        data = self.file.read(size)
        self.file.readline()
        return data


@pytest.fixture
def served(process):
    """The server process of this file, with an empty learner."""
    with process.client() as client:
        client.put(
            "/v1/learners/mail", json={"task": "multiclass", "algorithm": "predtron"}
        ).raise_for_status()
        yield process
        client.delete("/v1/learners/mail").raise_for_status()


def test_both_directions_flow_at_once(duplex):
    stream = duplex
    assert b"200" in stream.head()
    for i in range(5):
        stream.send(line(feedback={"features": [f"w{i}"], "label": "x"}))
        assert json.loads(stream.chunk())["version"] == i + 1
    half = line(predict={"features": ["w1"], "remember": False})
    stream.send(half[:9])
    time.sleep(0.05)
    stream.send(half[9:])
    assert json.loads(stream.chunk())["label"] == "x"
    stream.end()
    assert stream.chunk() == b""


def test_a_line_that_waits_keeps_no_reply_before_it(start):
    process = start(FEEDRANK_VERSION_WAIT="300")
    with process.client() as client:
        client.put("/v1/learners/mail", json={"task": "multiclass", "algorithm": "predtron"})
        stream = Duplex(process.url)
        stream.head()
        chunk = line(feedback={"features": ["w"], "label": "x"}) * 8
        stream.send(chunk + line(predict={"features": ["w"], "remember": False, "min_version": 9}))
        assert [json.loads(one)["version"] for one in stream.chunk().splitlines()] == [*range(1, 9)]
        client.post("/v1/learners/mail/feedback", json={"features": ["w"], "label": "x"})
        assert json.loads(stream.chunk())["version"] == 9
        stream.close()


def test_what_is_no_chunk_ends_a_stream_and_is_not_answered_within_the_reply(duplex):
    assert b"200" in duplex.head()
    duplex.send(line(feedback={"features": ["w"], "label": "x"}))
    assert json.loads(duplex.chunk())["version"] == 1
    duplex.socket.sendall(b"not a length\r\n")
    assert duplex.file.read() == b""


def test_a_client_that_does_not_read_is_not_read_from(served, duplex):
    stream = duplex
    stream.head()
    stream.socket.settimeout(2)
    block = line(predict={"features": [f"word{i}" for i in range(200)], "remember": False, "top": 1}) * 20

    def flood():
        for _ in range(400 * 2**20 // len(block)):
            stream.send(block)

    with pytest.raises(TimeoutError):
        flood()
    with served.client() as client:
        assert client.post("/v1/learners/mail/predict", json={"features": ["a"]}).status_code == 200


def test_a_stop_answers_what_has_arrived_and_ends_the_stream(start):
    process = start()
    with process.client() as client:
        client.put("/v1/learners/mail", json={"task": "multiclass", "algorithm": "predtron"})
    stream = Duplex(process.url)
    stream.head()
    stream.send(line(feedback={"features": ["a"], "label": "x"}) * 10)
    replies = b""
    while replies.count(b"\n") < 10:
        replies += stream.chunk()
    status, _ = process.stop()
    assert stream.chunk() == b""
    assert status == 0
    stream.close()


class NoLines:
    """A stream in which nothing is asked."""

    async def put(self, calls):
        assert not calls

    async def get(self):
        return []


def test_refused_lines_leave_no_circles_behind():
    async def run():
        reply = StreamReply(State({"settings": Settings()}), NoLines(), None, Budget(2**30))
        gc.collect()
        await reply._ask([b"x", b'{"a": 1e999}', b"{}", b"[]"] * 100, None)
        assert (await reply._answer()).count(b'"status":422') == 400
        return gc.collect()

    gc.disable()
    try:
        assert (
            asyncio.run(run()) < 50
        )  # with them, a collection finds thousands, and holds up everyone meanwhile
    finally:
        gc.enable()
