"""What a hostile or broken server sends ends in one exception tree, bounded in bytes and seconds."""

import asyncio
import gzip
import json

import httpx
import numpy as np
import pytest

from feedrank.clients import (
    AsyncClient,
    BadRequest,
    Client,
    ClientError,
    Invalid,
    InvalidResponse,
    Refused,
    Retry,
    attempts,
    item_table,
    requests,
)
from feedrank.clients.calls import Call, nothing, reply_of

ONCE = Retry(attempts=1)
PREDICTION = {"ranking": [{"label": "a", "score": 1}], "version": 3, "margin": None}
DEEP = b"[" * 100_000 + b"]" * 100_000


def blocking(respond, work):
    with Client(transport=httpx.MockTransport(respond), retry=ONCE) as client:
        return work(client)


def awaiting(respond, work):
    async def run():
        async with AsyncClient(transport=httpx.MockTransport(respond), retry=ONCE) as client:
            return await work(client)

    return asyncio.run(run())


both = pytest.mark.parametrize("drive", [blocking, awaiting])


def predict(client):
    return client.predict("mail", {"features": {}})


def replying(content, status=200, **headers):
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: httpx.Response(status, content=content, headers=names)


@both
@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"",
        b"\xff\xfe",
        b'{"ranking": [], "version": NaN}',
        DEEP,
        b'{"new": ' + DEEP + b', "ranking": []}',
        [],
        "x",
        {},
        {"ranking": 1},
        {"ranking": [3]},
        {"ranking": [{"label": "a"}]},
        {"ranking": [{"label": "a", "score": "1"}]},
        {**PREDICTION, "version": "3"},
        {**PREDICTION, "version": 3.5},
        {**PREDICTION, "label": 7},
        {**PREDICTION, "labels": ["a", None]},
        {"ranking": [{"label": "a", "score": 1, "contributions": {"f": True}}]},
    ],
)
def test_a_reply_of_other_types_is_invalid(drive, content):
    with pytest.raises(InvalidResponse):
        drive(replying(content), predict)


@both
def test_null_is_none_and_what_is_new_is_ignored(drive):
    reply = drive(replying({**PREDICTION, "later": {"a": [1]}}), predict)
    assert (reply.margin, reply.version, reply.ranking[0].label, reply.ranking[0].score) == (
        None,
        3,
        "a",
        1.0,
    )
    progress = dict.fromkeys(("rounds", "mistakes", "updates", "cumulative_loss"), 0)
    learner = {
        "name": "a",
        "spec": {},
        "version": 0,
        "labels": [],
        "features": 0,
        "bytes": 0,
        "retracting": [],
    }
    nulls = {**progress, "mean_loss": None, "recent_loss": None}
    answer = drive(replying({**learner, "progress": nulls, "certificate": {}}), lambda one: one.learner("a"))
    assert (answer.progress.mean_loss, answer.experts) == (None, None)


def test_an_entry_has_the_name_that_the_reply_gives_it():
    read = reply_of(requests.Prediction)
    entries = read(
        b'{"version": 0, "ranking": [{"label": "", "score": 1}, {"id": "d1", "score": 0}]}'
    ).ranking
    assert [(one.label, one.id, one.key) for one in entries] == [("", None, ""), (None, "d1", "d1")]


@both
def test_broken_compression_is_invalid(drive):
    packed = gzip.compress(json.dumps(PREDICTION).encode())
    assert drive(replying(packed, content_encoding="gzip"), predict).version == 3
    for broken in (b"no gzip", packed[:12] + b"\0" * 20 + packed[12:]):
        with pytest.raises(InvalidResponse):
            drive(replying(broken, content_encoding="gzip"), predict)


class Endless(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that never ends, and counts what was taken of it."""

    taken = 0

    def __iter__(self):
        while True:
            self.taken += 1
            yield b" " * 1000

    async def __aiter__(self):
        for chunk in self:
            yield chunk


@both
def test_an_endless_reply_ends_at_its_limit(drive):
    body = Endless()
    call = Call("GET", "/v1/learners", nothing, limit=50_000)
    with pytest.raises(InvalidResponse, match="longer than 50000 bytes"):
        drive(lambda request: httpx.Response(200, stream=body), lambda client: client.send(call))
    assert body.taken == 51


@both
def test_a_reply_that_drips_for_ever_ends_with_its_time(drive, monkeypatch):
    clock = iter(range(0, 100_000, 100))
    monkeypatch.setattr(attempts.time, "monotonic", lambda: next(clock))
    body = Endless()
    with pytest.raises(InvalidResponse, match="does not end"):
        drive(lambda request: httpx.Response(200, stream=body), predict)
    assert body.taken < 20


@both
def test_a_small_packed_reply_cannot_grow_beyond_the_limit(drive):
    bomb = gzip.compress(b" " * 1_000_000)
    call = Call("GET", "/v1/learners", nothing, limit=50_000)
    with pytest.raises(InvalidResponse, match="longer"):
        drive(replying(bomb, content_encoding="gzip"), lambda client: client.send(call))


@both
def test_an_announced_length_above_the_limit_is_not_read(drive):
    call = Call("GET", "/v1/learners", nothing, limit=10)
    respond = replying(b"", content_length="11")
    with pytest.raises(InvalidResponse, match="longer"):
        drive(respond, lambda client: client.send(call))


@both
@pytest.mark.parametrize(
    "problem", [b"<html>", DEEP, [1], {"errors": 7}, {"errors": [3, {"pointer": 1}]}, {"detail": ["x"]}, None]
)
def test_a_damaged_problem_document_is_a_refusal_all_the_same(drive, problem):
    with pytest.raises(Invalid) as caught:
        drive(replying(problem, 422), predict)
    assert caught.value.status == 422
    assert all(set(place) == {"pointer", "detail"} for place in caught.value.errors)


def test_lines_of_a_stream_are_checked_too():
    read = requests.piece("mail", [b"1", b"2"]).read
    good = json.dumps(PREDICTION).encode()
    refused = b'{"status": 422, "detail": "no"}'
    assert [type(one) for one in read(good + b"\n" + refused + b"\n")] == [requests.Prediction, Invalid]
    for lines in (good, good + b"\n7", good + b"\n{}", good + b'\n{"ranking": 1}', good + b"\n" + DEEP):
        with pytest.raises(InvalidResponse):
            read(lines)


def test_an_unknown_status_is_a_plain_refusal():
    with pytest.raises(Refused) as caught:
        blocking(replying(b"", 307), predict)
    assert type(caught.value) is Refused


@pytest.mark.parametrize("address", ["http://a:b", "ftp://here", "no address"])
def test_an_address_that_cannot_be_is_a_bad_request_at_once(address):
    with pytest.raises(BadRequest), Client(address) as client:
        client.live()


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
def test_a_key_that_cannot_be_a_header_is_a_bad_request(key):
    with pytest.raises(BadRequest, match="plain ASCII"):
        Client(key=key)


def test_whatever_a_reply_raises_is_of_the_tree():
    assert issubclass(InvalidResponse, ClientError)
    with pytest.raises(ClientError):
        blocking(replying(b"\x00"), lambda client: client.experiments())
    assert blocking(replying(b"\xff"), lambda client: client.metrics()) == "�"


def body_of(call):
    return json.loads(call.content)


def test_options_go_where_the_contract_has_them():
    call = requests.predict("m", {"items": []}, prediction_id="mine", exclude=("d1",), explain=True)
    assert body_of(call) == {"items": [], "prediction_id": "mine", "exclude": ["d1"], "explain": True}
    assert body_of(requests.feedback("m", {"feedback_id": "f", "label": "x"}, weight=2))["weight"] == 2
    clicks = requests.clicks("m", "p", iter(["a"]))
    assert (clicks.path, body_of(clicks)) == (
        "/v1/learners/m/clicks",
        {"prediction_id": "p", "clicks": ["a"]},
    )
    assert body_of(requests.evaluate("m", spec={"task": "binary"})) == {"spec": {"task": "binary"}}
    assert requests.aliases(limit=3).params == {"limit": "3"}


def test_items_may_be_a_table():
    table = item_table(["d1", "d2"], ["price", "age"], [[1, 2], (3, 4.5)])
    assert table == {"items": {"ids": ["d1", "d2"], "columns": ["price", "age"], "rows": [[1, 2], [3, 4.5]]}}
    for rows in ([[1, 2]], [[1, 2], [3]], np.zeros((2, 1), np.float32)):
        with pytest.raises(BadRequest):
            item_table(["d1", "d2"], ["price", "age"], rows)
    packed = item_table(["d1"], ["price", "age"], np.array([[1, 0.5]], np.float32))
    assert packed["items"]["rows"] == "AACAPwAAAD8="
