"""Predict and feedback are answered from their sockets, as the app answers them; a metric says which had to wait."""

import asyncio
import contextlib
import gc
import re
import socket
import threading
import time
from itertools import pairwise

import httpx
import pytest
from waiting import until

from feedrank.service.contract.faults import StoreUnavailable
from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app
from feedrank.service.http.calls import SocketCall, SocketCalls
from feedrank.service.http.wire import Protocol

SPEC = {"task": "multiclass", "algorithm": "predtron"}
MAIL = "/v1/learners/mail"
CASES = [
    ("predict", {"features": {"a": 1, "b": 2.5}, "remember": False}),
    ("predict", {"features": ["a", "c"], "top": 1, "remember": False}),
    ("predict", {"features": {"a": 1}}),
    ("predict", {"features": {"a": 1}, "explain": True, "remember": False}),
    ("predict", {"features": {"a": 1}, "top": 0}),
    ("predict", {"features": {}}),
    ("predict", {"text": "a b", "remember": False}),
    ("predict", {"instances": [{"features": ["a"]}], "remember": False}),
    ("predict", b"{"),
    ("predict", b'{"features": {"a": NaN}}'),
    ("predict", b"[]"),
    ("predict", b""),
    ("predict", {"features": ["a"], "top": "x" * 2_000}),
    ("feedback", {"features": {"a": 1}, "label": "x"}),
    ("feedback", {"features": {"b": 1, "c": -2}, "label": "y"}),
    ("feedback", {"features": {"a": 1}, "label": "x", "feedback_id": "1"}),
    ("feedback", {"features": {"a": 1}, "label": "x", "feedback_id": "1"}),
    ("feedback", {"features": {"a": 1}, "label": "y", "feedback_id": "1"}),
    ("feedback", {"features": {"a": 1}, "label": ""}),
    ("feedback", {"features": {"a": 1}}),
    ("feedback", {"prediction_id": "none", "label": "x"}),
    ("feedback", {"events": [{"features": ["a"], "label": "x"}, {"features": ["b"], "label": "y"}]}),
    ("feedback", {"features": {"a": 1}, "label": "x", "weight": 2}),
]
HEADERS = [
    {},
    {"X-Request-ID": "mine"},
    {"Host": "elsewhere.example"},
    {"Origin": "http://elsewhere.example"},
    {"Idempotency-Key": "k"},
    {"Connection": "close"},
]


@pytest.fixture
def both(tmp_path, serving):
    """Two clients of services alike, one answers calls from their sockets, the other is a bare uvicorn."""
    with contextlib.ExitStack() as stack:
        clients = []
        for direct in (True, False):
            app = create_app(Settings(store=f"sqlite:{tmp_path / f'{direct}.db'}", max_body=1_024))
            url = stack.enter_context(serving(app, direct=direct))
            client = stack.enter_context(httpx.Client(base_url=url, timeout=600, trust_env=False))
            client.put(MAIL, json=SPEC)
            client.get(MAIL)
            clients.append(client)
        yield clients


@pytest.fixture
def answered(monkeypatch):
    """Whether each call so far was answered from its socket."""
    seen, answer = [], SocketCalls.answer
    monkeypatch.setattr(SocketCalls, "answer", lambda *call: seen.append(answer(*call)) or seen[-1])
    return seen


def shown(reply, headers):
    """A reply without what is of its own moment."""
    body = reply.json()
    if "prediction_id" in body:
        assert len(body.pop("prediction_id")) == 40
    left = {name: value for name, value in reply.headers.items() if name not in ("date", "content-length")}
    if "X-Request-ID" not in headers:
        left.pop("x-request-id")
    return reply.status_code, list(left.items()), body


@pytest.mark.parametrize("headers", HEADERS, ids=lambda headers: next(iter(headers), "none"))
def test_the_reply_is_that_of_the_app(both, headers):
    for call, body in CASES:
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        replies = [
            shown(client.post(f"{MAIL}/{call}", headers=headers, timeout=600, **sent), headers)
            for client in both
        ]
        assert replies[0] == replies[1], (call, body)
    states = [client.get(MAIL).json() for client in both]
    assert states[0] == states[1]


def waits(client):
    """How many calls had to wait so far, by reason."""
    found = re.findall(r'feedrank_waits_total\{reason="(.*?)"\} (.*)', client.get("/metrics").text)
    return {reason: int(float(count)) for reason, count in found}


SHAPES = [
    ({"task": "binary", "labels": ["no", "yes"]}, {"features": {"a": 1, "b": -2}}, {"label": "yes"}),
    ({"task": "multiclass"}, {"features": ["a", "b"]}, {"label": "x"}),
    ({"task": "multiclass", "algorithm": "dual-ascent"}, {"features": [1, 0.5]}, {"label": "x"}),
    ({"task": "multiclass"}, {"text": "the boarding pass"}, {"label": "x"}),
    ({"task": "multiclass"}, {"text": {"subject": "boarding", "body": "pass"}}, {"label": "x"}),
    ({"task": "ordinal", "labels": ["low", "high"]}, {"features": ["a"]}, {"label": "low"}),
    ({"task": "multilabel"}, {"features": ["a"]}, {"labels": ["x", "y"]}),
    ({"task": "label-ranking"}, {"features": ["a"]}, {"relevance": {"x": 2, "y": 1}}),
    (
        {"task": "subset-ranking"},
        {"items": [{"id": "d1", "features": {"a": 1}}, {"id": "d2", "features": {"a": 2}}]},
        {"clicks": ["d2"]},
    ),
]
SAID = {"explain": False, "remember": True, "top": 3}


@pytest.mark.parametrize(("spec", "instance", "truth"), SHAPES, ids=lambda shape: next(iter(shape.values())))
def test_no_shape_of_a_call_has_to_wait(mail, answered, spec, instance, truth):
    url = "/v1/learners/shape"
    mail.put(url, json=spec)
    mail.get(url)
    before = waits(mail)
    answered.clear()
    ids = []
    for options in ({}, SAID, {"min_margin": 0.0}, {"explain": True}):
        reply = mail.post(f"{url}/predict", json={**instance, **options}).raise_for_status().json()
        ids.append({"prediction_id": reply["prediction_id"]})
    bodies = [{**instance, **truth}, {**instance, **truth, "feedback_id": "1", "weight": 2.0}]
    bodies += [{**id, **truth} for id in ids]
    for body in (*bodies, {"events": bodies[:1]}):
        mail.post(f"{url}/feedback", json=body).raise_for_status()
    mail.post(f"{url}/predict", json={"instances": [instance], "remember": False}).raise_for_status()
    assert mail.post(f"{url}/feedback", json={**instance, "weight": 0}).status_code == 422
    assert answered == [True] * 13
    assert waits(mail) == before


def test_a_choice_does_not_have_to_wait(mail, answered):
    url, items = "/v1/learners/shape", [{"id": "a", "features": {}}, {"id": "b", "features": ["x"]}]
    mail.put(url, json={"task": "choice"})
    mail.get(url)
    before = waits(mail)
    answered.clear()
    id = mail.post(f"{url}/predict", json={"items": items, "exclude": ["a"]}).json()["prediction_id"]
    mail.post(f"{url}/feedback", json={"prediction_id": id, "reward": 1}).raise_for_status()
    served = {"id": "b", "probability": 0.5}
    mail.post(f"{url}/feedback", json={"items": items, "served": served, "reward": 1}).raise_for_status()
    assert answered == [True] * 3
    assert waits(mail) == before


def test_calls_that_wait_are_counted_by_why(mail):
    waiting = "/v1/learners/waiting"
    mail.put(waiting, json={"task": "multiclass"})
    mail.app.state.host._catalogue.forget("waiting")
    before = waits(mail)
    many = {"instances": [{"features": ["a"]}] * 20, "remember": False}
    bodies = [
        ("name", waiting, "predict", {"features": ["a"]}),
        ("remembering", MAIL, "predict", {"features": ["a"], "prediction_id": "mine"}),
        ("batch", MAIL, "predict", many),
        ("batch", MAIL, "feedback", {"events": [{"features": ["a"], "label": "x"}] * 70}),
        ("long input", MAIL, "predict", {"text": "word " * 5_000, "remember": False}),
        ("body", MAIL, "predict", {"text": "word " * 50_000, "remember": False}),
    ]
    wanted = dict(before)
    for reason, url, call, body in bodies:
        mail.post(f"{url}/{call}", json=body).raise_for_status()
        wanted[reason] = wanted.get(reason, 0) + 1
        assert waits(mail) == wanted, reason


def raw(mail, *requests):
    """A socket on which requests were sent in one piece."""
    url = mail.base_url
    connection = socket.create_connection((url.host, url.port))
    pieces = [
        f"POST {MAIL}/{call} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        for call, body in requests
    ]
    connection.sendall("".join(pieces).encode())
    return connection


def received(connection, count):
    """The bodies of so many replies."""
    file, bodies = connection.makefile("rb"), []
    for _ in range(count):
        size = 0
        while (line := file.readline().lower()) != b"\r\n":
            assert line, "the connection was closed"
            size = int(line.split(b":")[1]) if line.startswith(b"content-length") else size
        bodies.append(file.read(size))
    return bodies


def test_calls_in_a_row_are_answered_in_their_order(mail):
    teach, ask = '{"features": ["a"], "label": "x"}', '{"features": ["a"], "remember": false}'
    calls = [("feedback", teach), ("predict", ask), ("feedback", teach), ("predict", ask), ("predict", "{")]
    for _ in range(3):
        with contextlib.closing(raw(mail, *calls)) as connection:
            bodies = received(connection, len(calls))
        assert [b'"duplicate"' in body for body in bodies] == [True, False, True, False, False]
        assert b"malformed-json" in bodies[-1]
    assert mail.get(MAIL).json()["version"] == 6


@pytest.mark.parametrize(("cuts", "direct"), [((0,), [True]), ((0, 9), [])], ids=["head and body", "drops"])
def test_a_body_that_comes_behind_its_head_is_waited_for_once(mail, answered, cuts, direct):
    url, body = mail.base_url, b'{"features": ["a"], "label": "x"}'
    with socket.create_connection((url.host, url.port)) as connection:
        head = f"POST {MAIL}/feedback HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        for piece in (head.encode(), *(body[a:b] for a, b in pairwise((*cuts, len(body))))):
            connection.sendall(piece)
            time.sleep(0.05)
        assert b'"version":1' in received(connection, 1)[0]
    assert answered == direct


def test_of_many_calls_in_one_piece_one_is_answered_from_the_socket_in_a_turn(mail, answered):
    ask = ("predict", '{"features": ["a"], "remember": false}')
    with contextlib.closing(raw(mail, *[ask] * 50)) as connection:
        assert len(received(connection, 50)) == 50
    assert answered[:2] == [True, False]


def test_a_call_that_was_answered_leaves_nothing_behind(mail):
    mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"})
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            mail.post(f"{MAIL}/predict", json={"features": ["a"]})
        calls = [one for one in gc.get_objects() if type(one) is SocketCall]
        assert len(calls) <= 1  # the connection has its last one
    finally:
        gc.enable()


def test_a_request_behind_such_a_reply_is_not_cut_off_by_the_time_between_requests(make_client, monkeypatch):
    mail = make_client(version_wait=1.5)
    mail.put(MAIL, json=SPEC)
    mail.get(MAIL)
    asks = [
        ("predict", '{"features": ["a"], "remember": false}'),
        ("predict", '{"features": ["a"], "min_version": 9}'),
    ]
    real = Protocol.connection_made

    def impatient(self, transport):
        real(self, transport)
        self.timeout_keep_alive = 0.3

    monkeypatch.setattr(Protocol, "connection_made", impatient)
    with contextlib.closing(raw(mail, *asks)) as connection:
        assert b'"status":409' in received(connection, 2)[1]


def test_a_request_that_breaks_off_is_counted_as_gone(mail):
    url = mail.base_url
    with socket.create_connection((url.host, url.port)) as connection:
        head = f"POST {MAIL}/feedback HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
        connection.sendall(head.encode() + b"{")
    gone = 'feedrank_requests_total{method="POST",operation="feedback",status="499"} 1.0'
    until(lambda: gone in mail.get("/metrics").text)


def test_a_head_that_the_app_refuses_is_not_waited_for(mail):
    url = mail.base_url
    for head, status in (("Host: elsewhere.example", b" 403 "), ("Host: 127.0.0.1", b" 413 ")):
        with socket.create_connection((url.host, url.port)) as connection:
            request = f"POST {MAIL}/feedback HTTP/1.1\r\n{head}\r\nContent-Length: 999999999\r\n\r\n"
            connection.sendall(request.encode())
            assert status in connection.makefile("rb").readline()


def slowed(app, monkeypatch, error=None):
    """Let appends wait for an event, then fail with `error` if there is one."""
    store, gate = app.state.host.store, threading.Event()
    append = store.append

    async def slow(*arguments):
        while not gate.is_set():
            await asyncio.sleep(0.005)
        if error is not None:
            raise error
        return await append(*arguments)

    monkeypatch.setattr(store, "append", slow)
    return gate


def test_an_event_whose_caller_has_gone_is_not_lost(make_client, monkeypatch):
    mail = make_client()
    mail.put(MAIL, json=SPEC)
    mail.get(MAIL)
    gate = slowed(mail.app, monkeypatch)
    raw(mail, ("feedback", '{"features": ["a"], "label": "x"}')).close()
    time.sleep(0.1)
    gate.set()
    until(lambda: mail.get(MAIL).json()["version"] == 1)


def test_a_call_that_takes_too_long_is_503_and_its_event_counts_once_it_is_there(
    make_client, monkeypatch, refused
):
    mail = make_client(request_timeout=0.3)
    mail.put(MAIL, json=SPEC)
    mail.get(MAIL)
    gate = slowed(mail.app, monkeypatch)
    refused(mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"}), 503, "timed-out")
    gate.set()
    until(lambda: mail.get(MAIL).json()["version"] == 1)
    assert mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"}).json()["version"] == 2


def test_what_the_store_does_not_take_is_refused_as_by_the_app(make_client, monkeypatch, refused):
    mail = make_client()
    mail.put(MAIL, json=SPEC)
    mail.get(MAIL)
    with monkeypatch.context() as patch:
        slowed(mail.app, patch, StoreUnavailable("the disk is full")).set()
        headers = {"X-Request-ID": "mine"}
        reply = mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"}, headers=headers)
        refused(reply, 503, "store-unavailable")
        assert reply.headers["x-request-id"] == "mine"
    assert mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"}).json()["version"] == 1


def test_what_fails_after_it_was_begun_is_not_done_again_by_the_app(make_client, monkeypatch):
    mail = make_client()
    mail.put(MAIL, json=SPEC)
    mail.get(MAIL)
    batcher = mail.app.state.host.feedback._commits
    add = batcher.add

    def failing(*arguments):
        add(*arguments)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(batcher, "add", failing)
        with contextlib.suppress(httpx.HTTPError):
            mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"})
    until(lambda: mail.get(MAIL).json()["version"] == 1)
    assert mail.post(f"{MAIL}/feedback", json={"features": ["a"], "label": "x"}).json()["version"] == 2


def takes_connections(url):
    try:
        socket.create_connection((url.host, url.port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_request_whose_body_is_on_its_way_is_answered_before_the_service_stops(start):
    process = start()
    with process.client() as client:
        client.put(MAIL, json=SPEC)
        client.get(MAIL)
    url, body = httpx.URL(process.url), b'{"features": ["a"], "label": "x"}'
    head = f"POST {MAIL}/feedback HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(head.encode() + body[:9])
        time.sleep(0.2)  # it has come
        process.process.terminate()
        until(lambda: not takes_connections(url))
        connection.sendall(body[9:])
        assert b'"version":1' in received(connection, 1)[0]
