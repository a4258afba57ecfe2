"""Vectors over HTTP: sent as numbers or as base64, kept as base64 of float32, of one length."""

import base64
import json
import random

import numpy as np
import pytest

FEEDBACK, PREDICT = "/v1/learners/docs/feedback", "/v1/learners/docs/predict"
WIDTH = 1_536


def numbers(seed, width=WIDTH):
    draw = random.Random(seed)
    return [draw.gauss(0, 0.03) for _ in range(width)]


def packed(values):
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


@pytest.fixture
def docs(client):
    assert client.put("/v1/learners/docs", json={"task": "multiclass"}).status_code == 201
    return client


def entries(client, name="docs"):
    return client.get(f"/v1/learners/{name}/events").json()["events"]


def test_the_log_keeps_base64_of_float32(docs):
    sent = numbers(1)
    done = docs.post(FEEDBACK, json={"vector": sent, "text": "hello", "label": "a", "feedback_id": "one"})
    assert done.status_code == 200, done.text
    docs.post(FEEDBACK, json={"vector": packed(sent), "label": "b"})
    by_id = docs.post(PREDICT, json={"vector": sent, "features": ["x"]}).json()
    docs.post(FEEDBACK, json={"prediction_id": by_id["prediction_id"], "label": "a"})
    logged = entries(docs)
    assert len(logged) == 3
    for entry in logged:
        assert entry["instance"]["vector"] == packed(sent)
        assert len(json.dumps(entry)) < 9_000
    again = docs.post(
        FEEDBACK, json={"vector": sent, "text": "hello", "label": "a", "feedback_id": "one"}
    ).json()
    assert again["duplicate"] is True


def test_both_ways_of_sending_are_one(docs):
    for seed, label in enumerate("abab"):
        docs.post(FEEDBACK, json={"vector": numbers(seed), "label": label})
    ways = [{"vector": numbers(9)}, {"vector": packed(numbers(9))}]
    replies = [docs.post(PREDICT, json={**way, "explain": True, "top": 1, "remember": False}) for way in ways]
    assert replies[0].json() == replies[1].json()
    parts = replies[0].json()["ranking"][0]["contributions"]
    assert {f"vector[{i}]" for i in range(WIDTH)} <= set(parts)
    assert abs(sum(parts.values()) - replies[0].json()["ranking"][0]["score"]) < 1e-9
    same = {"vector": numbers(9), "prediction_id": "mine"}
    first = docs.post(PREDICT, json=same).json()
    assert docs.post(PREDICT, json=same).json() == first
    assert docs.post(PREDICT, json={**same, "vector": numbers(8)}).status_code == 409


def test_what_is_known_counts_a_vector_once(docs):
    fresh = docs.post(PREDICT, json={"vector": [1, 2], "features": ["x"], "remember": False}).json()
    assert (fresh["known"], fresh["unknown"]) == (0, 2)
    docs.post(FEEDBACK, json={"vector": [1, 2], "label": "a"})
    later = docs.post(PREDICT, json={"vector": [0, 2], "features": ["x"], "remember": False}).json()
    assert (later["known"], later["unknown"]) == (1, 1)


def test_refusals_change_nothing(docs, refused):
    docs.post(FEEDBACK, json={"vector": [1, 2, 3], "label": "a"})
    for wrong, pointer in (
        ([1, 2], "/vector"),
        (packed([1, 2, 3, 4]), "/vector"),
        ([1, 2, "3"], "/vector/2"),
        ([1, 2, 1e39], "/vector/2"),
        ([1, 2, None], "/vector/2"),
        (packed([1, 2, float("nan")]), "/vector"),
        ("?", "/vector"),
        ([], "/vector"),
        ([0.5] * 16_385, "/vector"),
        ({}, "/vector"),
        (None, "/vector"),
    ):
        for path, more in ((PREDICT, {}), (FEEDBACK, {"label": "b"})):
            problem = refused(docs.post(path, json={"vector": wrong, **more}), 422, "unprocessable")
            assert problem["errors"][0]["pointer"] == pointer
    batch = {"events": [{"vector": [1, 2, 3], "label": "b"}, {"vector": [1], "label": "b"}]}
    problem = refused(docs.post(FEEDBACK, json=batch), 422, "unprocessable")
    assert problem["errors"][0]["pointer"] == "/events/1/vector"
    state = docs.get("/v1/learners/docs").json()
    assert (state["version"], state["labels"]) == (1, ["a"])
    body = b'{"vector": [1, 2, NaN], "label": "b"}'
    reply = docs.post(FEEDBACK, content=body, headers={"content-type": "application/json"})
    assert reply.json()["errors"][0]["pointer"] == "/vector/2"


def test_two_first_vectors_of_two_lengths_in_one_batch(docs):
    """The length is known when the first is learned; the second has no effect, and says so by not being an update."""
    batch = {"events": [{"vector": [1, 2], "label": "a"}, {"vector": [1], "label": "b"}]}
    reply = docs.post(FEEDBACK, json=batch)
    if reply.status_code == 422:
        assert docs.get("/v1/learners/docs").json()["version"] == 0
    else:
        assert reply.json()["results"][1]["updated"] is False
    assert docs.post(FEEDBACK, json={"vector": [1, 2], "label": "b"}).json()["updated"] is True


def test_retracting_the_first_vector_frees_the_length(docs):
    docs.post(FEEDBACK, json={"features": ["x"], "label": "a"})
    docs.post(FEEDBACK, json={"vector": [1, 2], "label": "a", "feedback_id": "first"})
    assert docs.post("/v1/learners/docs/retract", json={"feedback_id": "first"}).status_code == 200
    assert docs.post(FEEDBACK, json={"vector": [1, 2, 3], "label": "b"}).status_code == 200
    assert docs.post(PREDICT, json={"vector": [1, 2]}).status_code == 422


@pytest.mark.parametrize("task", ["subset-ranking", "choice"])
def test_items_have_text_features_and_vectors(client, refused, task):
    assert client.put("/v1/learners/shop", json={"task": task, "vector": 3}).status_code == 201
    items = [
        {"id": "d1", "text": "red shoe", "features": {"price": 3}, "vector": [1, 2, 3]},
        {"id": "d2", "vector": packed([3, 2, 1])},
        {"id": "d3", "text": {"title": "blue"}},
    ]
    shown = client.post("/v1/learners/shop/predict", json={"items": items})
    assert shown.status_code == 200, shown.text
    truth = {"reward": 1} if task == "choice" else {"relevance": {"d1": 2}}
    done = client.post(
        "/v1/learners/shop/feedback", json={"prediction_id": shown.json()["prediction_id"], **truth}
    )
    assert done.status_code == 200, done.text
    logged = entries(client, "shop")[0]["instance"]["items"]
    assert logged == [{**items[0], "vector": packed([1, 2, 3])}, *items[1:]]
    explained = client.post(
        "/v1/learners/shop/predict", json={"items": items, "explain": True, "remember": False}
    ).json()
    for entry in explained["ranking"]:
        assert abs(sum(entry["contributions"].values()) - entry["score"]) < 1e-9
    for wrong, pointer in (
        ({"id": "d4", "vector": [1, 2]}, "/items/3/vector"),
        ({"id": "d4", "vector": [1, 2, "x"]}, "/items/3/vector/2"),
        ({"id": "d4"}, "/items/3/features"),
        ({"id": "d4", "text": 3}, "/items/3/text"),
        ({"id": "d4", "image": 3}, "/items/3/image"),
    ):
        reply = client.post("/v1/learners/shop/predict", json={"items": [*items, wrong]})
        assert refused(reply, 422, "unprocessable")["errors"][0]["pointer"] == pointer


def test_a_row_is_kept_with_its_vector_packed(client):
    spec = {"task": "binary", "labels": ["no", "yes"], "input": {"about": "text", "emb": "vector"}}
    assert client.put("/v1/learners/rows", json=spec).status_code == 201
    row = {"About": "a shoe", "emb": [0.5, 1.25]}
    done = client.post("/v1/learners/rows/feedback", json={"row": row, "label": "yes"})
    assert done.status_code == 200, done.text
    assert entries(client, "rows")[0]["instance"]["row"] == {**row, "emb": packed(row["emb"])}
    reply = client.post("/v1/learners/rows/predict", json={"row": {"emb": [1, 2, 3]}})
    assert reply.json()["errors"][0]["pointer"] == "/row/emb"


def test_a_stream_and_a_snapshot(docs):
    lines = [{"feedback": {"vector": numbers(n), "label": "ab"[n % 2]}} for n in range(6)]
    lines.insert(3, {"predict": {"vector": [1.0], "remember": False}})
    body = "\n".join(json.dumps(line) for line in lines)
    replies = [
        json.loads(line) for line in docs.post("/v1/learners/docs/stream", content=body).text.splitlines()
    ]
    assert [reply.get("status") for reply in replies] == [None, None, None, 422, None, None, None]
    copy = docs.get("/v1/learners/docs/snapshot").content
    assert docs.put("/v1/learners/copy/snapshot", content=copy).status_code == 201
    asked = {"vector": numbers(3), "remember": False}
    one, other = (docs.post(f"/v1/learners/{name}/predict", json=asked).json() for name in ("docs", "copy"))
    assert one["ranking"] == other["ranking"]
    assert docs.post("/v1/learners/copy/predict", json={"vector": [1.0]}).status_code == 422


def test_what_is_called_a_vector_and_is_none(client):
    """A column of a row, a field of a text, an item, a label."""
    spec = {"task": "multiclass", "input": {"vector": "text", "features": "category"}}
    assert client.put("/v1/learners/rows", json=spec).status_code == 201
    row = {"vector": "AAAAAAAA", "features": ["a", "b"]}
    assert client.post("/v1/learners/rows/feedback", json={"row": row, "label": "vector"}).status_code == 200
    assert client.post("/v1/learners/rows/predict", json={"row": row}).json()["unknown"] == 0
    client.put("/v1/learners/words", json={"task": "label-ranking"})
    text = {"vector": "AAAAAAAA"}
    done = client.post("/v1/learners/words/feedback", json={"text": text, "relevance": {"vector": 1}})
    assert done.status_code == 200, done.text
    assert client.post("/v1/learners/words/predict", json={"text": text}).json()["unknown"] == 0


def test_an_experiment_takes_vectors(client):
    for name in ("one", "two"):
        assert client.put(f"/v1/learners/{name}", json={"task": "multiclass"}).status_code == 201
    made = client.put(
        "/v1/experiments/test", json={"arms": ["one", "two"], "method": "split", "measure": "mistakes"}
    )
    if made.status_code == 422:  # another measure is this task's
        made = client.put("/v1/experiments/test", json={"arms": ["one", "two"], "method": "split"})
    assert made.status_code == 201, made.text
    for n in range(4):
        shown = client.post("/v1/experiments/test/predict", json={"vector": numbers(n), "unit": f"u{n}"})
        assert shown.status_code == 200, shown.text
        done = client.post(
            "/v1/experiments/test/feedback",
            json={"prediction_id": shown.json()["prediction_id"], "label": "ab"[n % 2]},
        )
        assert done.status_code == 200, done.text
    assert {client.get(f"/v1/learners/{name}").json()["version"] for name in ("one", "two")} == {4}
    client.delete("/v1/experiments/test")


def test_a_killed_server_has_them_all(start):
    first = start()
    with first.client() as client:
        client.put("/v1/learners/docs", json={"task": "multiclass"})
        for n in range(8):
            client.post(FEEDBACK, json={"vector": numbers(n), "text": "word", "label": "ab"[n % 2]})
        asked = {"vector": numbers(2), "remember": False}
        before = client.post(PREDICT, json=asked).json()
    first.kill()
    with start().client() as client:
        assert client.post(PREDICT, json=asked).json() == before
        assert client.post(PREDICT, json={"vector": [1]}).status_code == 422


@pytest.mark.parametrize("wrong", [1e17, True, {}, None])
def test_an_item_whose_vector_is_no_list_is_refused(docs, refused, wrong):
    problem = refused(
        docs.post(PREDICT, json={"items": [{"id": "a", "vector": wrong}]}), 422, "unprocessable"
    )
    assert problem["errors"]
