"""Learners over HTTP: every call of the contract and every status it names."""

import errno
import io

import pytest

from feedrank.service.http import bodies
from feedrank.service.http.routes import learner_calls
from feedrank.service.runtime import host

SPEC = {"task": "multiclass", "algorithm": "predtron", "labels": ["inbox", "travel"]}
WORDS = {"features": {"flight": 1, "boarding": 2}}


def test_create_is_201_then_200_then_409(client, refused):
    made = client.put("/v1/learners/mail", json=SPEC)
    assert made.status_code == 201
    body = made.json()
    assert body["name"] == "mail"
    assert body["version"] == 0
    assert body["labels"] == ["inbox", "travel"]
    assert body["spec"]["learning_rate"] == 1.0
    assert client.put("/v1/learners/mail", json=SPEC).status_code == 200
    assert client.put("/v1/learners/mail", json=body["spec"]).status_code == 200
    refused(client.put("/v1/learners/mail", json={**SPEC, "labels": ["a"]}), 409, "conflict")


def test_learner_shows_progress(mail):
    mail.post("/v1/learners/mail/feedback", json={**WORDS, "label": "travel"})
    body = mail.get("/v1/learners/mail").json()
    assert {"name", "spec", "version", "labels", "features", "bytes", "progress", "certificate"} <= set(body)
    assert body["version"] == 1
    assert body["labels"] == ["travel"]
    assert body["features"] == 2
    assert body["progress"]["rounds"] == 1
    assert {"mistakes", "updates", "cumulative_loss", "mean_loss", "recent_loss"} <= set(body["progress"])


def test_list_is_paged(client):
    names = [f"m{i}" for i in range(5)]
    for name in names:
        client.put(f"/v1/learners/{name}", json=SPEC)
    seen, cursor = [], None
    while True:
        page = client.get(
            "/v1/learners", params={"limit": 2, **({"cursor": cursor} if cursor else {})}
        ).json()
        assert len(page["learners"]) <= 2
        seen += [entry["name"] for entry in page["learners"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == names


def test_delete_is_204_then_404(mail, refused):
    assert mail.delete("/v1/learners/mail").status_code == 204
    refused(mail.delete("/v1/learners/mail"), 404, "not-found")
    refused(mail.get("/v1/learners/mail"), 404, "not-found")


@pytest.mark.parametrize("call", ["predict", "feedback", "stream", "retract"])
def test_unknown_learner_is_404(client, refused, call):
    body = {"predict": WORDS, "feedback": {**WORDS, "label": "x"}, "retract": {"feedback_id": "a"}}.get(
        call, {}
    )
    refused(client.post(f"/v1/learners/nobody/{call}", json=body), 404, "not-found")


@pytest.mark.parametrize("call", ["", "/history", "/events", "/snapshot"])
def test_unknown_learner_cannot_be_looked_at(client, refused, call):
    refused(client.get(f"/v1/learners/nobody{call}"), 404, "not-found")


@pytest.mark.parametrize("name", [".mail", "-x", "a b", "a" * 129, "ä", "a%0A", "~"])
def test_names_outside_the_contract_are_refused(client, refused, name):
    refused(client.put(f"/v1/learners/{name}", json=SPEC), 422, "unprocessable")
    refused(client.get(f"/v1/learners/{name}"), 422, "unprocessable")
    refused(client.post(f"/v1/learners/{name}/predict", json=WORDS), 422, "unprocessable")


@pytest.mark.parametrize("name", ["a", "0", "A.b_c-d", "a" * 128, "__"[:0] + "x__class__"])
def test_names_of_the_contract_are_taken(client, name):
    assert client.put(f"/v1/learners/{name}", json=SPEC).status_code == 201


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({}, "/task"),
        ({"task": "poetry"}, "/task"),
        ({**SPEC, "algorithm": "magic"}, "/algorithm"),
        ({**SPEC, "colour": 1}, "/colour"),
        ({**SPEC, "C": 1}, "/C"),
        ({**SPEC, "learning_rate": "fast"}, "/learning_rate"),
        ({**SPEC, "labels": "ab"}, "/labels"),
        ({"task": "binary", "labels": ["one"]}, "/labels"),
    ],
)
def test_wrong_specs_are_422_with_a_pointer(client, refused, spec, pointer):
    problem = refused(client.put("/v1/learners/mail", json=spec), 422, "unprocessable")
    assert problem["errors"][0]["pointer"].startswith(pointer)
    refused(client.get("/v1/learners/mail"), 404, "not-found")


def test_snapshot_goes_out_and_in(mail, refused):
    for _ in range(3):
        mail.post("/v1/learners/mail/feedback", json={**WORDS, "label": "travel"})
    out = mail.get("/v1/learners/mail/snapshot")
    assert out.headers["content-type"] == "application/octet-stream"
    brought = mail.put("/v1/learners/copy/snapshot", content=out.content)
    assert brought.status_code == 201, brought.text
    assert brought.json()["version"] == 3
    refused(mail.put("/v1/learners/copy/snapshot", content=out.content), 409, "conflict")
    damaged = out.content[:-9] + bytes([out.content[-9] ^ 1]) + out.content[-8:]
    for bad in (damaged, b"", b"{}", out.content[:-1]):
        refused(mail.put("/v1/learners/other/snapshot", content=bad), 422, "unprocessable")
    one, two = (
        mail.post(f"/v1/learners/{name}/predict", json={**WORDS, "remember": False}).json()
        for name in ("mail", "copy")
    )
    assert one["ranking"] == two["ranking"]


class FullDisk(io.BytesIO):
    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/private")

    writelines = write


def test_a_snapshot_without_room_on_its_way_is_503_and_leaves_nothing(mail, refused, monkeypatch):
    mail.post("/v1/learners/mail/feedback", json={"features": ["a"], "label": "x"})
    data = mail.get("/v1/learners/mail/snapshot").content
    for module in (bodies, learner_calls, host):
        with monkeypatch.context() as patch:
            patch.setattr(module, "spool", FullDisk)
            if module is learner_calls:
                reply = mail.get("/v1/learners/mail/snapshot")
            else:
                reply = mail.put("/v1/learners/copy/snapshot", content=data)
            problem = refused(reply, 503, "store-unavailable")
            assert "No space left on device" in problem["detail"]
            assert "private" not in problem["detail"]
        refused(mail.get("/v1/learners/copy"), 404, "not-found")
    assert mail.put("/v1/learners/copy/snapshot", content=data).status_code == 201
    assert mail.get("/v1/learners/copy/snapshot").content == data


def test_history_and_events(mail):
    for i in range(3):
        mail.post("/v1/learners/mail/feedback", json={**WORDS, "label": "travel", "feedback_id": f"f{i}"})
    points = mail.get("/v1/learners/mail/history").json()["points"]
    assert points[-1]["rounds"] == 3
    page = mail.get("/v1/learners/mail/events", params={"after": 1, "limit": 1}).json()
    assert len(page["events"]) == 1
    assert page["next"] == 2
    rest = mail.get("/v1/learners/mail/events", params={"after": page["next"]}).json()
    assert len(rest["events"]) == 1
    assert rest["next"] is None


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1001"])
def test_wrong_paging_is_422(mail, refused, query):
    problem = refused(mail.get(f"/v1/learners?{query}"), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == "/limit"
    refused(mail.get("/v1/learners/mail/events?after=-1"), 422, "unprocessable")


def test_alias_is_a_second_name_that_switches(mail, refused):
    mail.put("/v1/learners/other", json=SPEC)
    assert mail.put("/v1/aliases/live", json={"learner": "mail"}).status_code == 200
    assert mail.post("/v1/learners/live/predict", json=WORDS).json()["learner"] == "mail"
    assert mail.put("/v1/aliases/live", json={"learner": "other"}).status_code == 200
    assert mail.post("/v1/learners/live/predict", json=WORDS).json()["learner"] == "other"
    refused(mail.put("/v1/aliases/live", json={"learner": "nobody"}), 404, "not-found")
    refused(mail.put("/v1/aliases/mail", json={"learner": "other"}), 409, "conflict")
    for body in ({}, {"learner": 1}, {"learner": "mail", "x": 1}, {"learner": ".."}):
        refused(mail.put("/v1/aliases/live", json=body), 422, "unprocessable")


def test_retract(mail, refused):
    mail.post("/v1/learners/mail/feedback", json={**WORDS, "label": "a", "feedback_id": "one"})
    before = mail.post("/v1/learners/mail/predict", json={**WORDS, "remember": False}).json()["ranking"]
    mail.post("/v1/learners/mail/feedback", json={**WORDS, "label": "b", "feedback_id": "two"})
    done = mail.post("/v1/learners/mail/retract", json={"feedback_id": "two"})
    assert done.status_code == 200, done.text
    after = mail.post("/v1/learners/mail/predict", json={**WORDS, "remember": False}).json()["ranking"]
    assert after == before
    refused(mail.post("/v1/learners/mail/retract", json={"feedback_id": "three"}), 404, "not-found")
    for body in ({}, {"feedback_id": 1}, {"feedback_id": "one", "prediction_id": "x"}, {"id": "one"}):
        refused(mail.post("/v1/learners/mail/retract", json=body), 422, "unprocessable")
