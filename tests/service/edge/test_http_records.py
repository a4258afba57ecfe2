"""Records over HTTP: predicted, learned, logged and read again as they came."""

import pytest

INPUT = {"Subject": "text", "Plan": "category", "age": "number", "queue": "truth"}
PREDICT, FEEDBACK = "/v1/learners/tickets/predict", "/v1/learners/tickets/feedback"


@pytest.fixture
def tickets(client):
    assert client.put("/v1/learners/tickets", json={"task": "multiclass", "input": INPUT}).status_code == 201
    return client


def test_a_record_is_learned_and_recognized(tickets):
    sent = {
        "row": {"subject": "card not arrived", "Plan": "gold", "age": None, "queue": "cards"},
        "label": "cards",
    }
    assert tickets.post(FEEDBACK, json=sent).json()["version"] == 1
    asked = tickets.post(PREDICT, json={"row": {"Subject": "my card"}, "explain": True}).json()
    assert asked["label"] == "cards"
    assert "Subject:card" in asked["ranking"][0]["contributions"]
    assert (
        tickets.post(FEEDBACK, json={"prediction_id": asked["prediction_id"], "label": "cards"}).json()[
            "version"
        ]
        == 2
    )
    logged = tickets.get("/v1/learners/tickets/events").json()["events"]
    assert logged[0]["instance"] == {"row": sent["row"]}
    assert logged[1]["instance"] == {"row": {"Subject": "my card"}}


def test_an_unknown_column_is_refused_with_the_nearest_name(tickets, refused):
    body = {"row": {"Subjct": "x"}}
    problem = refused(tickets.post(PREDICT, json=body), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == "/row/Subjct"
    assert "did you mean 'Subject'" in problem["errors"][0]["detail"]
    assert tickets.post(PREDICT, json={**body, "unknown_columns": "ignore"}).status_code == 200
    learned = tickets.post(FEEDBACK, json={**body, "unknown_columns": "ignore", "label": "a"})
    assert learned.status_code == 200
    assert tickets.get("/v1/learners/tickets").json()["version"] == 1


def test_rows_in_batches_and_on_a_stream(tickets):
    events = [{"row": {"subject": word}, "label": word} for word in ("card", "refund")]
    assert tickets.post(FEEDBACK, json={"events": events}).json()["results"][1]["version"] == 2
    lines = '{"predict": {"row": {"subject": "refund"}}}\n{"feedback": {"row": {"x": 1}, "label": "a"}}\n'
    replies = tickets.post("/v1/learners/tickets/stream", content=lines).text.splitlines()
    assert '"label":"refund"' in replies[0]
    assert "/row/x" in replies[1]


def test_an_input_is_part_of_the_spec(tickets):
    spec = {"task": "multiclass", "input": INPUT}
    assert tickets.put("/v1/learners/tickets", json=spec).status_code == 200
    assert tickets.put("/v1/learners/tickets", json={**spec, "input": {"a": "text"}}).status_code == 409
    assert tickets.get("/v1/learners/tickets").json()["spec"]["input"] == INPUT
