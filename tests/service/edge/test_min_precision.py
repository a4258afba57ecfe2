"""`min_precision` over HTTP: what is refused, what is remembered, what the log keeps, and the promise itself."""

import random

import pytest

ANIMALS = ("ant", "bee", "cat", "dog")


def message(chance):
    """Its features and its label; three in ten say nothing."""
    label = chance.choice(ANIMALS)
    if chance.random() < 0.3:
        return {"features": [f"x{chance.randrange(30)}"]}, label
    return {"features": [f"{label}{chance.randrange(3)}", f"x{chance.randrange(30)}"]}, label


def ask(client, name="m", **more):
    return client.post(f"/v1/learners/{name}/predict", json={"features": ["a"], "min_precision": 0.9, **more})


def test_it_decides_where_it_is_proved_and_the_log_says_how(client):
    client.put("/v1/learners/m", json={"task": "multiclass"})
    chance, decided, wrong, audits, asked, predictions = random.Random(1), 0, 0, 0, 0, {}
    for _ in range(36):
        batch = [message(chance) for _ in range(25)]
        body = {"instances": [one for one, _ in batch], "min_precision": 0.9}
        replies = client.post("/v1/learners/m/predict", json=body).json()["predictions"]
        events = []
        for reply, (_, label) in zip(replies, batch, strict=True):
            asked += 1
            assert reply["abstained"] == (reply["label"] is None)
            assert "proved" in reply
            if reply["label"] is not None:
                decided += 1
                wrong += reply["label"] != label
                assert reply["proved"] >= 0.9
                assert "audit" not in reply
            audits += reply.get("audit", False)
            predictions[reply["prediction_id"]] = reply
            events.append({"prediction_id": reply["prediction_id"], "label": label})
        assert client.post("/v1/learners/m/feedback", json={"events": events}).is_success
    assert decided > 150
    assert wrong <= 0.1 * decided
    assert audits
    logged = client.get("/v1/learners/m/events", params={"limit": 1000}).json()["events"]
    assert sum(event.get("audit", False) for event in logged) == audits
    for event in logged:
        if "min_precision" in event:
            assert event["min_precision"] == 0.9
            assert event["audit"] == predictions[event["prediction_id"]].get("audit", False)


def test_what_nobody_answers_ends_it_and_answers_begin_it_again(client):
    client.put("/v1/learners/m", json={"task": "binary", "labels": ["no", "yes"]})

    def batch(answer):
        body = {"instances": [{"features": ["y"]}, {"features": ["n"]}] * 50, "min_precision": 0.9}
        replies = client.post("/v1/learners/m/predict", json=body).json()["predictions"]
        events = [
            {"prediction_id": reply["prediction_id"], "label": label}
            for reply, label in zip(replies, ["yes", "no"] * 50, strict=True)
        ]
        if answer:
            assert client.post("/v1/learners/m/feedback", json={"events": events}).is_success
        return sum(reply["label"] is not None for reply in replies), events

    for _ in range(6):
        sure, _ = batch(True)
    assert sure > 30
    waiting = []
    for _ in range(12):
        sure, events = batch(False)
        waiting += events
    assert sure == 0
    assert client.post("/v1/learners/m/feedback", json={"events": waiting}).is_success
    assert batch(True)[0] > 30


def test_by_account_it_decides_sooner_with_a_record_of_its_own(client):
    """A margin learner: its certainty is that of the label too, and what is open of one promise is not of the other."""
    client.put("/v1/learners/m", json={"task": "multiclass", "algorithm": "dual-ascent"})
    chance, counts = random.Random(3), {"proof": 0, "account": 0}
    wrong = 0
    for _ in range(24):
        for promise in counts:
            batch = [message(chance) for _ in range(20)]
            body = {"instances": [one for one, _ in batch], "min_precision": 0.9, "promise": promise}
            replies = client.post("/v1/learners/m/predict", json=body).json()["predictions"]
            counts[promise] += sum(reply["label"] is not None for reply in replies)
            if promise == "account":
                wrong += sum(
                    reply["label"] not in (None, label)
                    for reply, (_, label) in zip(replies, batch, strict=True)
                )
            events = [
                {"prediction_id": reply["prediction_id"], "label": label}
                for reply, (_, label) in zip(replies, batch, strict=True)
            ]
            assert client.post("/v1/learners/m/feedback", json={"events": events}).is_success
    assert counts["account"] > counts["proof"] + 40
    assert wrong <= 0.1 * counts["account"] + 2
    logged = client.get("/v1/learners/m/events", params={"limit": 1000}).json()["events"]
    assert [event.get("promise") for event in logged[:40:20]] == [None, "account"]
    assert sum(event.get("promise") == "account" for event in logged) > 400


def test_the_same_id_replies_as_the_first_time(client):
    client.put("/v1/learners/m", json={"task": "multiclass", "labels": ["a", "b"]})
    first = ask(client, prediction_id="mine").json()
    assert first["label"] is None
    assert first["proved"] is None
    assert ask(client, prediction_id="mine").json() == first
    assert ask(client, prediction_id="mine", min_precision=0.8).status_code == 409


@pytest.mark.parametrize(
    ("task", "more", "pointer"),
    [
        ("multiclass", {"remember": False}, "/remember"),
        ("multiclass", {"min_precision": 0.4}, "/min_precision"),
        ("multiclass", {"min_precision": 1}, "/min_precision"),
        ("multiclass", {"min_precision": "0.9"}, "/min_precision"),
        ("multiclass", {"min_precision": True}, "/min_precision"),
        ("multiclass", {"promise": "word"}, "/promise"),
        ("multiclass", {"promise": ["account"]}, "/promise"),
        ("multiclass", {"promise": "account", "min_precision": None}, "/promise"),
        ("multilabel", {}, "/min_precision"),
        ("label-ranking", {}, "/min_precision"),
        ("subset-ranking", {"features": None, "items": [{"id": "a", "features": [1]}]}, "/min_precision"),
        ("choice", {"features": None, "items": [{"id": "a", "features": [1]}]}, "/min_precision"),
    ],
)
def test_what_is_refused(client, task, more, pointer):
    client.put("/v1/learners/m", json={"task": task})
    body = {
        key: value
        for key, value in {"features": ["a"], "min_precision": 0.9, **more}.items()
        if value is not None
    }
    reply = client.post("/v1/learners/m/predict", json=body)
    assert reply.status_code == 422
    assert [error["pointer"] for error in reply.json()["errors"]] == [pointer]
