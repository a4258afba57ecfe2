"""A teacher that gets cheaper: what is asked, learned, cached and corrected; and the adapter of docs/teacher.md."""

import asyncio
import json
import random
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from feedrank.clients import AsyncClient, Client
from feedrank.clients.exceptions import BadRequest
from feedrank.clients.teacher import AsyncTeacher, Teacher
from feedrank.embedded import Embedded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "teacher.md"
WORDS = {"billing": "invoice refund card", "login": "password reset locked", "bugs": "crash error freezes"}


def ticket(chance):
    label = chance.choice(list(WORDS))
    return {
        "text": " ".join(
            [
                *chance.sample(WORDS[label].split(), 2),
                chance.choice(["hello", "please", "help"]),
                str(chance.random()),
            ]
        )
    }, label


@pytest.fixture
def service(tmp_path):
    with Client("http://local", transport=Embedded(f"sqlite:{tmp_path / 't.db'}")) as client:
        client.create("tickets", {"task": "multiclass"})
        yield client


def truth(instance):
    """What a person who reads it would say."""
    words = instance["text"].split()
    return next(label for label, own in WORDS.items() if set(own.split()) & set(words))


def test_it_asks_less_and_less_and_what_it_decides_is_right(service):
    chance, calls, wrong = random.Random(1), [], 0

    def function(instance):
        calls.append(instance)
        return truth(instance)

    teacher = Teacher(service, "tickets", function, min_precision=0.9)
    by = []
    for _ in range(30):
        batch = [ticket(chance) for _ in range(20)]
        for answer, (_, label) in zip(teacher.ask_many(one for one, _ in batch), batch, strict=True):
            by.append(answer.by)
            wrong += answer.label != label
    assert by[:60].count("teacher") == 60
    assert by[-200:].count("learner") > 60
    assert wrong <= 0.1 * by.count("learner")
    savings = teacher.savings()
    assert savings.asked == 600
    assert savings.calls == len(calls) == by.count("teacher")
    assert savings.saved == pytest.approx(by.count("learner") / 600)
    assert savings.audits
    assert savings.proved >= 0.9
    events = service.events("tickets", limit=1000).events
    assert len(events) == len(calls)
    assert all(event["feedback_id"].startswith("teacher:") for event in events)


def test_the_same_question_is_paid_for_once_and_nobody_needs_to_know(service):
    said = iter(["billing", None])
    teacher = Teacher(service, "tickets", lambda instance: next(said), weight=0.5)
    first = [teacher.ask({"text": "refund"}).label for _ in range(3)]
    assert first == ["billing"] * 3
    assert teacher.ask({"text": "what"}).label is None
    savings = teacher.savings()
    assert (savings.asked, savings.calls, savings.cached) == (4, 2, 2)
    events = service.events("tickets").events
    assert [event["weight"] for event in events] == [0.5] * 3
    assert [entry.instance for entry in service.queue("tickets").queue] == [{"text": "what"}]


def test_a_person_beats_the_teacher_and_the_learner(service):
    teacher = Teacher(service, "tickets", lambda instance: "billing")
    answer = teacher.ask({"text": "password reset"})
    teacher.correct(answer, "login")
    events = service.events("tickets").events
    assert [(event["kind"], event.get("retracted")) for event in events] == [
        ("feedback", True),
        ("retraction", None),
        ("feedback", False),
    ]
    assert events[2]["feedback_id"] == f"person:{answer.prediction_id}"
    assert teacher.ask({"text": "password reset"}).label == "login"
    assert teacher.savings().corrected == 1


def test_what_fails_leaves_what_was_said_before(service):
    said = iter(["billing", RuntimeError("the model is out"), 7])

    def function(instance):
        value = next(said)
        if isinstance(value, Exception):
            raise value
        return value

    teacher = Teacher(service, "tickets", function)
    with pytest.raises(RuntimeError, match="out"):
        teacher.ask_many([{"text": "one"}, {"text": "two"}])
    assert [event["truth"] for event in service.events("tickets").events] == [{"label": "billing"}]
    with pytest.raises(BadRequest, match="a label or None"):
        teacher.ask({"text": "three"})
    assert teacher.ask_many([]) == []


def test_the_asynchronous_one_does_the_same(service):
    """Against the same service, behind a transport of its own."""

    class Bridge(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            copy = httpx.Request(
                request.method, request.url, headers=request.headers, content=await request.aread()
            )
            reply = await asyncio.to_thread(service._http.send, copy)
            return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    running, most = 0, 0

    async def function(instance):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        if instance["text"] == "bad":
            raise RuntimeError("no")
        return truth(instance)

    async def main():
        chance = random.Random(2)
        async with AsyncClient("http://local", transport=Bridge()) as client:
            teacher = AsyncTeacher(client, "tickets", function, together=3)
            batch = [ticket(chance) for _ in range(20)]
            answers = await teacher.ask_many([one for one, _ in batch])
            assert [answer.label for answer in answers] == [label for _, label in batch]
            await teacher.correct(answers[0], "other")
            with pytest.raises(RuntimeError):
                await teacher.ask_many([{"text": "bad"}, {"text": "crash now"}])
            assert (await teacher.ask({"text": "refund 1"})).by == "teacher"
            assert await teacher.ask_many([]) == []
            return teacher.savings()

    savings = asyncio.run(main())
    assert most <= 3
    assert savings.calls == 22
    assert savings.corrected == 1


@contextmanager
def chat():
    """A stand-in of a model behind the chat-completions form."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/chat/completions"
            assert body["messages"][0]["role"] == "system"
            said = truth({"text": body["messages"][-1]["content"]})
            data = json.dumps(
                {"choices": [{"message": {"role": "assistant", "content": f" {said}\n"}}]}
            ).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_adapter_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S)
    with chat() as url:
        monkeypatch.setenv("MODEL_URL", url)
        exec(compile(code, PAGE.name, "exec"), {"__name__": "page"})
    assert "billing" in capsys.readouterr().out
