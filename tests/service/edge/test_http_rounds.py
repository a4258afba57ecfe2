"""Predict and feedback over HTTP: fields, promises and refusals."""

import math

import pytest

WORDS = {"features": {"flight": 1, "boarding": 2}}
PREDICT, FEEDBACK = "/v1/learners/mail/predict", "/v1/learners/mail/feedback"


def test_wrong_corrected_right(mail):
    assert mail.post(FEEDBACK, json={"features": ["invoice"], "label": "bills"}).json()["version"] == 1
    first = mail.post(PREDICT, json=WORDS).json()
    assert first["label"] == "bills"
    reply = mail.post(FEEDBACK, json={"prediction_id": first["prediction_id"], "label": "travel"}).json()
    assert set(reply) == {"version", "loss", "mistake", "updated", "served_loss", "duplicate"}
    assert reply["served_loss"] == 1
    assert reply["mistake"] is True
    second = mail.post(PREDICT, json=WORDS).json()
    assert second["label"] == "travel"
    assert second["version"] == 2
    assert second["margin"] > 0


def test_top_explain_and_remember(mail):
    for label in ("a", "b", "c"):
        mail.post(FEEDBACK, json={"features": [label, "x"], "label": label})
    body = mail.post(
        PREDICT, json={"features": ["a", "x"], "top": 2, "explain": True, "remember": False}
    ).json()
    assert "prediction_id" not in body
    assert len(body["ranking"]) == 2
    for entry in body["ranking"]:
        assert math.isclose(sum(entry["contributions"].values()), entry["score"], abs_tol=1e-9)


def test_min_margin_abstains(mail):
    mail.post(FEEDBACK, json={**WORDS, "label": "travel"})
    mail.post(FEEDBACK, json={"features": ["invoice"], "label": "bills"})
    body = mail.post(PREDICT, json={**WORDS, "min_margin": 1e9}).json()
    assert body["label"] is None
    assert body["abstained"] is True


def test_batches(mail, refused):
    many = mail.post(
        FEEDBACK, json={"events": [{**WORDS, "label": "a"}, {"features": ["x"], "label": "b"}]}
    ).json()
    assert [entry["version"] for entry in many["results"]] == [1, 2]
    replies = mail.post(PREDICT, json={"instances": [WORDS, {"features": ["x"], "top": 1}]}).json()[
        "predictions"
    ]
    assert [len(entry["ranking"]) for entry in replies] == [2, 1]
    bad = {"events": [{**WORDS, "label": "a"}, {**WORDS, "labels": 3}]}
    problem = refused(mail.post(FEEDBACK, json=bad), 422, "unprocessable")
    assert problem["errors"][0]["pointer"].startswith("/events/1")
    assert mail.get("/v1/learners/mail").json()["version"] == 2
    bad = {"instances": [WORDS, {"features": {"a": "b"}}]}
    problem = refused(mail.post(PREDICT, json=bad), 422, "unprocessable")
    assert problem["errors"][0]["pointer"].startswith("/instances/1/features/a")


@pytest.mark.parametrize("how", ["feedback_id", "header", "prediction_id"])
def test_once_however_often(mail, refused, how):
    body, headers = {**WORDS, "label": "travel"}, {}
    if how == "feedback_id":
        body["feedback_id"] = "f1"
    elif how == "header":
        headers["Idempotency-Key"] = "f1"
    else:
        body = {"prediction_id": mail.post(PREDICT, json=WORDS).json()["prediction_id"], "label": "travel"}
    first = mail.post(FEEDBACK, json=body, headers=headers).json()
    assert first["duplicate"] is False
    again = mail.post(FEEDBACK, json=body, headers=headers).json()
    assert again == {**first, "duplicate": True}
    refused(mail.post(FEEDBACK, json={**body, "label": "other"}, headers=headers), 409, "conflict")
    assert mail.get("/v1/learners/mail").json()["version"] == 1


def test_unknown_prediction_is_404(mail, refused):
    refused(mail.post(FEEDBACK, json={"prediction_id": "nope", "label": "a"}), 404, "not-found")


def test_expired_prediction_is_410(make_client, refused, later):
    client = make_client(prediction_ttl=100.0)
    client.put("/v1/learners/mail", json={"task": "multiclass"})
    identity = client.post(PREDICT, json=WORDS).json()["prediction_id"]
    later(101)
    refused(client.post(FEEDBACK, json={"prediction_id": identity, "label": "a"}), 410, "gone")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({**WORDS, "colour": 1}, "/colour"),
        ({**WORDS, "top": 0}, "/top"),
        ({**WORDS, "top": "2"}, "/top"),
        ({**WORDS, "top": True}, "/top"),
        ({**WORDS, "explain": 1}, "/explain"),
        ({**WORDS, "remember": "no"}, "/remember"),
        ({**WORDS, "min_margin": -1}, "/min_margin"),
        ({**WORDS, "min_version": -1}, "/min_version"),
        ({**WORDS, "loss": "hamming"}, "/loss"),
        ({**WORDS, "items": []}, "/items"),
        ({"features": 3}, "/features"),
        ({"features": {"a": None}}, "/features/a"),
        ({"features": {"a": True}}, "/features/a"),
        ({"features": {"": 1}}, "/features"),
        ({"features": {"a/b~c": "x"}}, "/features/a~1b~0c"),
        ({"features": {"a": 1e300}}, "/features/a"),
        ({"instances": []}, "/instances"),
        ({"instances": [WORDS], "colour": 1}, "/colour"),
        ({"instances": {"a": 1}}, "/instances"),
        ({"instances": [3]}, "/instances/0"),
    ],
)
def test_wrong_predicts_are_422_with_a_pointer(mail, refused, body, pointer):
    mail.post(FEEDBACK, json={**WORDS, "label": "a"})
    problem = refused(mail.post(PREDICT, json=body), 422, "unprocessable")
    assert problem["errors"][0]["pointer"].startswith(pointer)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        (WORDS, ""),
        ({**WORDS, "label": "a", "colour": 1}, "/colour"),
        ({**WORDS, "label": 3}, "/label"),
        ({**WORDS, "label": ""}, "/label"),
        ({**WORDS, "labels": ["a"]}, ""),
        ({**WORDS, "label": "a", "feedback_id": 3}, "/feedback_id"),
        ({**WORDS, "label": "a", "feedback_id": ""}, "/feedback_id"),
        ({"label": "a"}, ""),
        ({"prediction_id": 7, "label": "a"}, "/prediction_id"),
        ({"events": []}, "/events"),
        ({"events": 3}, "/events"),
        ({"events": [{**WORDS, "label": "a"}], "x": 1}, "/x"),
    ],
)
def test_wrong_feedback_is_422_and_changes_nothing(mail, refused, body, pointer):
    problem = refused(mail.post(FEEDBACK, json=body), 422, "unprocessable")
    assert problem["errors"][0]["pointer"].startswith(pointer)
    assert mail.get("/v1/learners/mail").json()["version"] == 0


@pytest.mark.parametrize(
    ("items", "pointer"),
    [
        ([], "/items"),
        ([{"id": "a", "features": [1]}, {"id": "a", "features": [2]}], "/items/1/id"),
        ([{"id": "a"}], "/items/0/features"),
        ([{"id": "a", "features": [1], "x": 1}], "/items/0/x"),
        ([{"id": 3, "features": [1]}], "/items/0/id"),
    ],
)
def test_wrong_items(client, refused, items, pointer):
    client.put("/v1/learners/shop", json={"task": "subset-ranking", "algorithm": "slam"})
    problem = refused(client.post("/v1/learners/shop/predict", json={"items": items}), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"features": {"a": NaN}}', "/features/a"),
        ('{"features": {"a": -Infinity}}', "/features/a"),
        ('{"features": [1, 1e999]}', "/features/1"),
        ('{"features": [1, 1' + "0" * 400 + "]}", "/features/1"),
    ],
)
def test_numbers_that_json_has_not_are_422_with_a_pointer(mail, refused, text, pointer):
    problem = refused(mail.post(PREDICT, content=text), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nope", b'{"a": 1}}', b"\xff", b'"\\ud800"', b"[" * 5000, b"'a'"]
)
def test_what_is_not_json_is_422(mail, refused, text):
    refused(mail.post(PREDICT, content=text), 422, "malformed-json")


@pytest.mark.parametrize("text", [b"[]", b"3", b"null", b'"a"'])
def test_json_that_is_no_object_is_422(mail, refused, text):
    refused(mail.post(PREDICT, content=text), 422, "unprocessable")


def test_content_type_does_not_matter(mail):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "nonsense"):
        reply = mail.post(PREDICT, content=b'{"features": ["a"]}', headers={"Content-Type": kind})
        assert reply.status_code == 200


def test_strange_names_are_only_names(mail):
    for name in ("__class__", "constructor", "a b", "ä\u202e", "0", "{}", "' OR 1=1 --"):
        assert mail.post(FEEDBACK, json={"features": {name: 1}, "label": name}).status_code == 200
        assert mail.post(PREDICT, json={"features": [name]}).json()["label"] == name
    assert "__class__" in mail.get("/v1/learners/mail").json()["labels"]
