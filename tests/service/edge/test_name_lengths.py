"""Names of labels, items, features and columns have 1 to 1,000 characters, wherever they are sent."""

import json

import pytest

LABELS = {"task": "multiclass", "algorithm": "predtron"}
SETS = {"task": "multilabel", "algorithm": "predtron"}
ITEMS = {"task": "subset-ranking", "algorithm": "slam"}
CHOICE = {"task": "choice"}
ROWS = {"task": "multiclass", "algorithm": "predtron", "input": {"city": "category", "note": "text"}}
A = {"features": ["a"]}


def columns(id="i", name="f"):
    return {"ids": [id], "columns": [name], "rows": [[1.0]]}


PLACES = [
    (LABELS, "predict", lambda name: {"features": [name]}, "/features"),
    (LABELS, "predict", lambda name: {"features": {"a": 1, name: 1}}, "/features"),
    (LABELS, "predict", lambda name: {"features": [name], "explain": True}, "/features"),
    (LABELS, "predict", lambda name: {"instances": [A, {"features": [name]}]}, "/instances/1/features"),
    (LABELS, "predict", lambda name: {"text": {name: "one word"}}, "/text"),
    (LABELS, "feedback", lambda name: {**A, "label": name}, "/label"),
    (LABELS, "feedback", lambda name: {"features": [name], "label": "a"}, "/features"),
    (LABELS, "feedback", lambda name: {"events": [{**A, "label": name}]}, "/events/0/label"),
    (SETS, "feedback", lambda name: {**A, "labels": ["a", name]}, "/labels/1"),
    (ITEMS, "predict", lambda name: {"items": [{"id": name, "features": [1]}]}, "/items/0/id"),
    (ITEMS, "predict", lambda name: {"items": [{"id": "i", "features": [name]}]}, "/items/0/features/0"),
    (ITEMS, "predict", lambda name: {"items": columns(id=name)}, "/items/ids/0"),
    (ITEMS, "predict", lambda name: {"items": columns(name=name)}, "/items/columns/0"),
    (CHOICE, "predict", lambda name: {"items": columns(), "features": {name: 1}}, "/features"),
    (ROWS, "predict", lambda name: {"row": {"city": name}}, "/row/city"),
    (ROWS, "predict", lambda name: {"row": {name: 1}, "unknown_columns": "ignore"}, "/row"),
]
SPECS = [
    (lambda name: {"task": "binary", "labels": ["a", name]}, "/labels/1"),
    (
        lambda name: {
            "task": "multiclass",
            "algorithm": "predtron",
            "loss": "weighted",
            "weights": {name: 2.0},
        },
        "/weights",
    ),
    (lambda name: {"task": "multiclass", "input": {name: "text"}}, "/input"),
]


@pytest.mark.parametrize(("spec", "call", "body", "place"), PLACES)
def test_a_name_of_1001_characters_is_refused_where_it_is(client, refused, spec, call, body, place):
    assert client.put("/v1/learners/a", json=spec).status_code == 201
    problem = refused(client.post(f"/v1/learners/a/{call}", json=body("é" * 1001)), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == place
    assert client.get("/v1/learners/a").json()["version"] == 0
    reply = client.post(f"/v1/learners/a/{call}", json=body("é" * 1000))
    assert reply.status_code == 200, reply.text
    lines = json.dumps({call: {"features": ["é" * 1001]}})
    reply = client.post("/v1/learners/a/stream", content=lines)
    assert reply.json()["status"] == 422


@pytest.mark.parametrize(("spec", "place"), SPECS)
def test_a_spec_names_nothing_longer(client, refused, spec, place):
    problem = refused(client.put("/v1/learners/a", json=spec("x" * 1001)), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == place
    assert client.put("/v1/learners/a", json=spec("x" * 1000)).status_code == 201


def test_words_of_a_text_are_no_names(client):
    client.put("/v1/learners/a", json=ROWS)
    long = {"text": "x" * 5000, "label": "a"}
    assert client.put("/v1/learners/b", json=LABELS).status_code == 201
    assert client.post("/v1/learners/b/feedback", json=long).status_code == 200
    reply = client.post("/v1/learners/a/feedback", json={"row": {"note": "x" * 5000}, "label": "a"})
    assert reply.status_code == 200


def test_a_list_of_many_numbers_is_read_in_turns_of_its_own(client):
    client.put("/v1/learners/a", json={"task": "subset-ranking"}).raise_for_status()
    ids, names = [f"d{i}" for i in range(60)], [f"f{j}" for j in range(80)]
    rows = [[(i * j) % 7 for j in range(80)] for i in range(60)]
    objects = [
        {"id": id, "features": dict(zip(names, row, strict=True))} for id, row in zip(ids, rows, strict=True)
    ]
    shapes = [objects, {"ids": ids, "columns": names, "rows": rows}]
    orders = [
        client.post("/v1/learners/a/predict", json={"items": items}).json()["ranking"] for items in shapes
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) == 60
    for items in shapes:
        reply = client.post("/v1/learners/a/feedback", json={"items": items, "relevance": {"d1": 1}})
        assert reply.status_code == 200
    objects[59]["features"]["x" * 1001] = 1
    for strange in (objects, {"ids": ids, "columns": ["x" * 1001, *names[1:]], "rows": rows}):
        assert client.post("/v1/learners/a/predict", json={"items": strange}).status_code == 422
    objects[59] = {"id": "d59", "features": [["unhashable"]]}
    assert client.post("/v1/learners/a/predict", json={"items": objects}).status_code == 422
    metrics = client.get("/metrics").text
    assert 'feedrank_waits_total{reason="long input"}' in metrics
