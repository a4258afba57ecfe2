"""Shares of keys: what is beyond them is 429, says when to come back, changes nothing, and keeps nobody else waiting."""

import asyncio
import json
import socket
import threading

import httpx
import pytest
from waiting import until

from feedrank.service.contract.settings import Settings
from feedrank.service.http import shares
from feedrank.service.http.app import create_app
from feedrank.service.http.keyring import Key, Keyring, KeysError, add_key, read_keys
from feedrank.service.runtime import Host

SPEC = {"task": "multiclass", "algorithm": "predtron"}
WORDS = {"features": ["a"], "remember": False}
EVENT = {"features": ["a"], "label": "x"}
ADMIN = ["admin"]


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""

    class Clock:
        now = 1000.0

    monkeypatch.setattr(shares, "monotonic", lambda: Clock.now)
    return Clock


@pytest.fixture
def shared_out(make_client, tmp_path):
    """`shared_out(share=...)`: calls with a key that has this share, and with one that has none, of a new server."""

    def make(prefixes=(), **limits):
        file = tmp_path / "keys"
        keys = {"bound": add_key(file, ADMIN, prefixes, **limits), "free": add_key(file, ADMIN)}
        client = make_client(keys_file=str(file))

        def ask(method, path, who="bound", **more):
            return client.request(method, path, headers={"Authorization": f"Bearer {keys[who]}"}, **more)

        ask.client, ask.keys, ask.file = client, keys, file
        assert ask("PUT", "/v1/learners/mail", "free", json=SPEC).status_code == 201
        return ask

    return make


def check_refusal(reply, refused, limit):
    problem = refused(reply, 429, "share-used")
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.headers["ratelimit-limit"] == str(limit)
    assert int(reply.headers["ratelimit-remaining"]) >= 0
    assert int(reply.headers["ratelimit-reset"]) >= 1
    return problem


CALLS = [
    ("POST", "/v1/learners/mail/predict", WORDS),
    ("POST", "/v1/learners/mail/feedback", EVENT),
    ("GET", "/v1/learners/mail", None),
    ("GET", "/v1/learners", None),
    ("POST", "/v1/learners/mail/predict", {"instances": [{"features": ["a"]}], "remember": False}),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_a_rate_is_kept_on_every_road(shared_out, refused, clock, method, path, body):
    ask = shared_out(rate=3)
    for _ in range(3):
        assert ask(method, path, json=body).status_code == 200
    reply = ask(method, path, json=body)
    assert "3 requests a second" in check_refusal(reply, refused, 3)["detail"]
    assert reply.headers["ratelimit-remaining"] == "0"
    assert ask(method, path, "free", json=body).status_code == 200, "others are not kept waiting"
    clock.now += 1 / 3
    assert ask(method, path, json=body).status_code == 200
    assert ask(method, path, json=body).status_code == 429
    clock.now += 100
    assert [ask(method, path, json=body).status_code for _ in range(4)] == [200, 200, 200, 429]
    text = ask.client.get("/metrics").text
    assert 'feedrank_share_refusals_total{share="rate"} 3.0' in text


def test_a_rate_below_one_takes_one_at_a_time(shared_out, refused, clock):
    ask = shared_out(rate=0.25)
    assert ask("GET", "/v1/learners").status_code == 200
    reply = ask("GET", "/v1/learners")
    check_refusal(reply, refused, 1)
    assert reply.headers["retry-after"] == "4"
    clock.now += 4
    assert ask("GET", "/v1/learners").status_code == 200


def test_lines_of_a_stream_are_requests(shared_out, clock):
    ask = shared_out(rate=5)
    lines = b"".join(
        json.dumps({"feedback": {**EVENT, "feedback_id": str(i)}}).encode() + b"\n" for i in range(8)
    )
    replies = [
        json.loads(line) for line in ask("POST", "/v1/learners/mail/stream", content=lines).text.splitlines()
    ]
    assert [reply.get("status", 200) for reply in replies] == [200] * 4 + [429] * 4
    assert replies[-1]["type"] == "share-used"
    assert ask("GET", "/v1/learners/mail", "free").json()["version"] == 4


def test_what_is_refused_for_another_reason_counts_too(shared_out, clock):
    ask = shared_out(rate=2)
    statuses = [ask("POST", "/v1/learners/mail/predict", content=b"{").status_code for _ in range(3)]
    assert statuses == [422, 422, 429]


def test_requests_at_a_time_are_limited(shared_out, refused):
    ask = shared_out(concurrency=2)
    host, port = ask.client.base_url.host, ask.client.base_url.port
    head = (
        f"POST /v1/learners/mail/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ask.keys['bound']}\r\n"
        "Content-Length: 1000\r\n\r\n"
    ).encode()
    with (
        socket.create_connection((host, port), 600) as one,
        socket.create_connection((host, port), 600) as two,
    ):
        for connection in (one, two):
            connection.sendall(head)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        for method, path, body in CALLS:
            check_refusal(ask(method, path, json=body), refused, 2)
            assert ask(method, path, "free", json=body).status_code == 200
    until(lambda: ask("GET", "/v1/learners").status_code == 200)
    for _ in range(20):  # those that are over do not count
        assert ask("POST", "/v1/learners/mail/feedback", json=EVENT).status_code == 200
        assert ask("POST", "/v1/learners/mail/predict", content=b"{").status_code == 422
        assert ask("POST", "/v1/learners/none/predict", json=WORDS).status_code == 404


def test_learners_that_a_key_makes_are_limited(shared_out, refused):
    ask = shared_out(learners=2)
    assert ask("PUT", "/v1/learners/a", json=SPEC).status_code == 201
    assert ask("PUT", "/v1/learners/bad", json={"task": "none"}).status_code == 422
    file = ask("GET", "/v1/learners/a/snapshot").content
    assert ask("PUT", "/v1/learners/b/snapshot", content=file).status_code == 201
    check_refusal(ask("PUT", "/v1/learners/c", json=SPEC), refused, 2)
    check_refusal(ask("PUT", "/v1/learners/c/snapshot", content=file), refused, 2)
    assert ask("PUT", "/v1/learners/a", json=SPEC).status_code == 200, "this one is there"
    assert ask("PUT", "/v1/learners/mail", json=SPEC).status_code == 200
    assert ask("PUT", "/v1/learners/c", "free", json=SPEC).status_code == 201
    assert ask("DELETE", "/v1/learners/a", "free").status_code == 204
    assert ask("PUT", "/v1/learners/d", json=SPEC).status_code == 201
    assert ask("PUT", "/v1/learners/e", json=SPEC).status_code == 429


def test_learners_are_limited_when_many_come_at_once(shared_out):
    ask = shared_out(learners=3)
    statuses = []
    threads = [
        threading.Thread(
            target=lambda n=n: statuses.append(ask("PUT", f"/v1/learners/n{n}", json=SPEC).status_code)
        )
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] * 3 + [429] * 9


def test_what_is_stored_is_limited(shared_out, refused):
    ask = shared_out(bytes=3000)
    assert ask("PUT", "/v1/learners/a", json=SPEC).status_code == 201
    large = {"features": {"w" * 900: 1.0}, "label": "x"}
    statuses = [ask("POST", "/v1/learners/a/feedback", json=large).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    version = ask("GET", "/v1/learners/a").json()["version"]
    reply = ask("POST", "/v1/learners/a/feedback", json=large)
    assert "3000 bytes" in check_refusal(reply, refused, 3000)["detail"]
    line = json.dumps({"feedback": large}).encode() + b"\n"
    assert ask("POST", "/v1/learners/a/stream", content=line).json()["status"] == 429
    assert ask("GET", "/v1/learners/a").json()["version"] == version == 3
    asked = {"features": large["features"]}
    assert ask("POST", "/v1/learners/a/predict", json=asked).status_code == 429, "it would be remembered"
    assert ask("POST", "/v1/learners/a/predict", json={**asked, "remember": False}).status_code == 200
    assert ask("POST", "/v1/learners/a/feedback", "free", json=large).status_code == 200
    assert ask("DELETE", "/v1/learners/a").status_code == 204
    assert ask("PUT", "/v1/learners/a", json=SPEC).status_code == 201, "what was deleted counts no longer"
    assert ask("POST", "/v1/learners/a/feedback", json=large).status_code == 200


def test_what_was_refused_is_not_counted_as_stored(shared_out):
    ask = shared_out(bytes=3000)
    large = {"features": {"w" * 900: 1.0}, "label": 7}
    for _ in range(6):
        assert ask("POST", "/v1/learners/mail/feedback", json=large).status_code == 422
    assert ask("POST", "/v1/learners/mail/feedback", json=large | {"label": "x"}).status_code == 200


def test_predictions_count_as_long_as_they_are_remembered(shared_out, clock):
    ask = shared_out(bytes=3000)
    asked = {"features": {"w" * 900: 1.0}}
    path = "/v1/learners/mail/predict"
    assert [ask("POST", path, json=asked).status_code for _ in range(4)] == [200, 200, 200, 429]
    clock.now += 8 * 86_400
    assert ask("POST", path, json=asked).status_code == 200


def test_a_restart_does_not_forget(serving, tmp_path, refused):
    file, store = tmp_path / "keys", f"sqlite:{tmp_path / 'kept'}"
    headers = {"Authorization": f"Bearer {add_key(file, ADMIN, learners=1, bytes=3000)}"}
    large = {"features": {"w" * 900: 1.0}, "label": "x"}
    statuses = []
    for calls in (2, 2):
        app = create_app(Settings(keys_file=str(file), store=store))
        with serving(app) as url, httpx.Client(base_url=url, headers=headers, timeout=600) as client:
            made = client.put("/v1/learners/a", json=SPEC)
            assert made.status_code == (200 if statuses else 201)
            for _ in range(calls):
                statuses.append(client.post("/v1/learners/a/feedback", json=large).status_code)
            check_refusal(client.put("/v1/learners/b", json=SPEC), refused, 1)
    assert statuses == [200, 200, 200, 429]


def test_a_share_that_was_changed_in_the_file_is_kept_at_once(shared_out, clock):
    ask = shared_out(rate=1)
    assert [ask("GET", "/v1/learners").status_code for _ in range(2)] == [200, 429]
    lines = [json.loads(line) for line in ask.file.read_text().splitlines()]
    lines[0]["rate"] = 0
    ask.file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert {ask("GET", "/v1/learners").status_code for _ in range(20)} == {200}


def test_the_calls_of_personalizer_count(shared_out, clock):
    ask = shared_out(rate=2)
    statuses = [
        ask.client.post(
            "/at/mail/personalizer/v1.0/rank",
            json={"actions": []},
            headers={"Ocp-Apim-Subscription-Key": ask.keys["bound"]},
        ).status_code
        for _ in range(3)
    ]
    assert statuses[:2] == [400, 400]
    assert statuses[2] == 429


def test_shares_are_kept_in_the_file_and_old_lines_have_none(tmp_path):
    file = tmp_path / "keys"
    add_key(file, ["predict"], rate=2.5, concurrency=3, learners=4, bytes=5)
    old = json.loads(file.read_text())
    for name in ("rate", "concurrency", "learners", "bytes"):
        del old[name]
    file.write_text(file.read_text() + json.dumps({**old, "id": "0" * 12}) + "\n")
    new, before = read_keys(file)
    assert new.shares == {"rate": 2.5, "concurrency": 3, "learners": 4, "bytes": 5}
    assert new.limited
    assert (before.shares, before.limited) == ({}, False)


@pytest.mark.parametrize("wrong", [{"rate": -1}, {"bytes": 1.5}, {"learners": True}, {"concurrency": "2"}])
def test_a_share_is_a_number_of_at_least_0(tmp_path, wrong):
    with pytest.raises(KeysError, match=next(iter(wrong))):
        add_key(tmp_path / "keys", ["predict"], **wrong)
    assert not (tmp_path / "keys").exists()
    add_key(tmp_path / "keys", ["predict"])
    line = json.loads((tmp_path / "keys").read_text()) | wrong
    (tmp_path / "keys").write_text(json.dumps(line) + "\n")
    with pytest.raises(KeysError, match="line 1"):
        read_keys(tmp_path / "keys")
    assert Keyring(tmp_path / "keys").find("fr_") is None


def test_what_is_new_is_written_down_once(tmp_path):
    """Two that wrote at once counted it twice, or failed."""

    async def run():
        async with Host.open(f"sqlite:{tmp_path / 'a.db'}") as host:
            every = shares.Shares()
            every.host = host
            share = shares.Share(Key("key", "", (), (), "", bytes=100), every)
            share.add("log", 10)
            share.made.add("log")
            await asyncio.gather(*(share.save() for _ in range(8)))
            assert share.fresh == {}
            return json.loads((await host.store.get(shares.KIND, "key")).value)

    assert asyncio.run(run()) == {"made": ["log"], "bytes": {"log": 10}}
