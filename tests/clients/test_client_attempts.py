"""Retries, replies and errors of both clients, over a transport that answers what the test says."""

import asyncio
import inspect
import json
import pydoc
import re
import subprocess
import sys

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank import clients
from feedrank.clients import AsyncClient, Client, Retry, exceptions, experiment_requests, requests

OUTCOME = {
    "version": 1,
    "loss": 1.0,
    "mistake": True,
    "updated": True,
    "served_loss": None,
    "duplicate": False,
}
FAST = Retry(attempts=4, first=0.001, most=0.002)
EVENT = {"features": {"a": 1}, "label": "x"}


class Script:
    """Answers each request with the next of its lines: a status, an exception to raise, or a (status, JSON)."""

    def __init__(self, *lines):
        self.lines = list(lines)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        status, data = line if isinstance(line, tuple) else (line, {"title": "so", "status": line})
        headers = {"retry-after": "0"} if status == 429 else {}
        return httpx.Response(status, json=data, headers=headers)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests]


def blocking(script, work):
    with Client(transport=httpx.MockTransport(script), retry=FAST, key="k1") as client:
        return work(client)


def awaiting(script, work):
    async def run():
        async with AsyncClient(transport=httpx.MockTransport(script), retry=FAST, key="k1") as client:
            return await work(client)

    return asyncio.run(run())


both = pytest.mark.parametrize("drive", [blocking, awaiting])


@both
@pytest.mark.parametrize(
    "failure", [503, 429, 502, httpx.ReadError("cut"), httpx.ConnectError("no"), httpx.ReadTimeout("slow")]
)
def test_feedback_is_sent_again_with_the_same_id(drive, failure):
    script = Script(failure, failure, (200, OUTCOME))
    outcome = drive(script, lambda client: client.feedback("mail", EVENT))
    assert outcome.mistake
    assert len({body["feedback_id"] for body in script.bodies}) == 1
    assert len(script.bodies) == 3
    assert script.requests[0].headers["authorization"] == "Bearer k1"


@both
def test_ids_of_the_caller_are_kept(drive):
    script = Script((200, {"results": [OUTCOME, OUTCOME]}))
    events = [{**EVENT, "feedback_id": "mine"}, {"prediction_id": "p", "label": "x"}]
    assert len(drive(script, lambda client: client.feedback_many("mail", events))) == 2
    assert script.bodies[0]["events"] == events


@both
def test_gives_up_after_the_attempts(drive):
    script = Script(*[503] * 4)
    with pytest.raises(exceptions.Unavailable) as caught:
        drive(script, lambda client: client.learner("mail"))
    assert (caught.value.status, len(script.requests)) == (503, 4)
    with pytest.raises(exceptions.TimedOut):
        drive(Script(*[httpx.ReadTimeout("slow")] * 4), lambda client: client.learner("mail"))
    with pytest.raises(exceptions.NoReply, match="PUT /v1/aliases/a"):
        drive(Script(*[httpx.ReadError("cut")] * 4), lambda client: client.alias("a", "b"))


@both
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422, 500, 507])
def test_refusals_are_not_repeated(drive, status):
    problem = {
        "type": "t",
        "title": "no",
        "status": status,
        "detail": "d",
        "errors": [{"pointer": "/a", "detail": "b"}],
    }
    script = Script((status, problem))
    with pytest.raises(exceptions.Refused) as caught:
        drive(script, lambda client: client.predict("mail", {"features": {}}))
    assert caught.value.status == status
    assert caught.value.errors == [{"pointer": "/a", "detail": "b"}]
    assert status not in (401, 403, 404, 409, 410, 413, 422) or type(caught.value) is not exceptions.Refused


@both
def test_what_must_not_arrive_twice_is_repeated_only_if_it_was_not_sent(drive):
    with pytest.raises(exceptions.NoReply):
        drive(Script(httpx.ReadError("cut"), 201), lambda client: client.restore("mail", b"file"))
    info = {
        "name": "mail",
        "spec": {},
        "version": 0,
        "labels": [],
        "features": 0,
        "bytes": 0,
        "certificate": {},
        "retracting": [],
    }
    info["progress"] = {
        "rounds": 0,
        "mistakes": 0,
        "updates": 0,
        "cumulative_loss": 0,
        "mean_loss": 0,
        "recent_loss": 0,
    }
    script = Script(httpx.ConnectError("no"), (201, info))
    assert drive(script, lambda client: client.restore("mail", b"file")).progress.rounds == 0


@both
def test_a_delete_whose_reply_was_lost_is_done(drive):
    drive(Script(httpx.ReadError("cut"), 404), lambda client: client.delete("mail"))
    with pytest.raises(exceptions.NotFound):
        drive(Script(404), lambda client: client.delete("mail"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_has_not_is_never_sent(value):
    with pytest.raises(exceptions.BadRequest):
        requests.feedback("mail", {"features": {"a": value}, "label": "x"})
    with pytest.raises(exceptions.BadRequest):
        requests.learner("..")


def test_names_cannot_leave_their_place():
    assert requests.learner("a/../b?c").path == "/v1/learners/a%2F..%2Fb%3Fc"


@given(st.lists(st.integers(1, 3 * requests.PIECE // 2), max_size=30))
def test_pieces_keep_order_and_fit(sizes):
    lines = [bytes([number]) * size for number, size in enumerate(sizes)]
    filling = requests.Pieces()
    pieces = [piece for piece in [*map(filling.add, lines), filling.rest()] if piece]
    assert [line for piece in pieces for line in piece] == lines
    assert all(len(piece) == 1 or sum(map(len, piece)) <= requests.PIECE for piece in pieces)


@given(st.integers(1, 60))
def test_pauses_grow_and_are_bounded(attempt):
    retry = Retry(first=0.1, most=7.0)
    bounds = min(0.1 * 2 ** (attempt - 1), 7.0) / 2, 7.0
    assert bounds[0] <= retry.pause(attempt, {}) <= bounds[1]
    assert retry.pause(attempt, {"retry-after": "3"}) == 3.0
    assert retry.pause(attempt, {"retry-after": "3" * 400}) == 7.0
    for strange in ("soon", "-1", "²", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert bounds[0] <= retry.pause(attempt, {"retry-after": strange}) <= bounds[1]


@both
def test_a_pause_may_be_a_whole_number(drive, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FAST", Retry(attempts=2, first=0, most=0))
    assert drive(Script(429, (200, OUTCOME)), lambda client: client.feedback("mail", EVENT)).version == 1


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"first": -1}, {"most": -0.1}])
def test_a_retry_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match="at least one attempt"):
        Retry(**wrong)


def test_both_clients_have_every_call():
    calls = {
        name
        for module in (requests, experiment_requests)
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and name != "piece"
        and str(inspect.signature(value).return_annotation).startswith("Call[")
    }
    assert len(calls) > 30
    for client in (Client, AsyncClient):
        assert {name for name in calls if not hasattr(client, name)} == set()
        assert client.predict.__doc__ == requests.predict.__doc__


def test_the_help_of_a_call_shows_its_signature():
    shown = pydoc.plain(pydoc.render_doc(Client.predict))
    assert "predict(self, name: str, instance: " in shown
    assert "top: int | None = None" in shown
    assert "-> feedrank.clients.replies.Prediction" in shown
    assert "args" not in shown
    assert "weights(self, name: str, label: str | None = None" in pydoc.plain(pydoc.render_doc(AsyncClient))


def test_all_is_what_is_public():
    assert sorted(clients.__all__) == clients.__all__
    assert all(hasattr(clients, name) for name in clients.__all__)
    tree = {
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert tree == set(exceptions.__all__)
    assert tree <= set(clients.__all__)
    drawn = set(re.findall(r"\b[A-Z]\w+", exceptions.__doc__.split("\n\n")[1]))
    assert tree <= drawn


def test_the_client_needs_nothing_of_the_service():
    code = "import sys, feedrank.clients, feedrank.clients.mail; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "feedrank.clients.client" in loaded
    taboo = {"numpy", "scipy", "fastapi", "redis", "pydantic", "feedrank.service", "feedrank.learners"}
    assert taboo.isdisjoint(loaded)
