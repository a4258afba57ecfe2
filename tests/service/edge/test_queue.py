"""The queue: what waits for an answer, the least certain first, spread, shared by several people without doubles."""

import random

import pytest

from feedrank.service.http.keyring import add_key

WORDS = {"a": "ant ape asp auk", "b": "bat bee boa bug", "c": "cat cod cow cub"}


def taught(client, name="q", spec=None):
    client.put(f"/v1/learners/{name}", json=spec or {"task": "multiclass"})
    events = [
        {"features": [word], "label": label} for label, words in WORDS.items() for word in words.split()
    ]
    assert client.post(f"/v1/learners/{name}/feedback", json={"events": events * 3}).status_code == 200


def asked(client, count, name="q", seed=1):
    chance, served = random.Random(seed), {}
    vocabulary = " ".join(WORDS.values()).split()
    instances = [{"features": sorted(chance.sample(vocabulary, 3))} for _ in range(count)]
    for start in range(0, count, 500):
        batch = instances[start : start + 500]
        reply = client.post(f"/v1/learners/{name}/predict", json={"instances": batch}).json()
        served |= {one["prediction_id"]: one for one in reply["predictions"]}
    return served


def queue(client, name="q", **params):
    reply = client.get(f"/v1/learners/{name}/queue", params=params)
    assert reply.status_code == 200, reply.text
    return reply.json()


def every(client, limit=20, **params):
    rows, cursor = [], None
    while True:
        page = queue(client, limit=limit, **params, **({"cursor": cursor} if cursor else {}))
        rows += page["queue"]
        cursor = page["next"]
        if cursor is None:
            return rows


def test_the_pages_hold_each_open_prediction_once(client):
    taught(client)
    served = asked(client, 90)
    client.post("/v1/learners/q/predict", json={"features": ["ant"], "remember": False})
    rows = every(client, limit=7)
    assert sorted(row["prediction_id"] for row in rows) == sorted(served)
    for row in rows:
        one = served[row["prediction_id"]]
        assert (row["label"], row["margin"]) == (one["label"], one["margin"])
        assert row["probability"] == one["ranking"][0]["probability"]
        assert row["remembered_at"] > 1e9
    assert client.post(
        "/v1/learners/q/feedback", json={"prediction_id": rows[0]["prediction_id"], "label": "a"}
    ).is_success
    assert {row["prediction_id"] for row in every(client)} == set(served) - {rows[0]["prediction_id"]}


def test_the_first_is_the_least_certain_and_a_page_is_less_certain_than_what_is_left(client):
    taught(client)
    served = asked(client, 900)
    rows = queue(client, limit=20)["queue"]
    sure = sorted(one["ranking"][0]["probability"] for one in served.values())
    assert rows[0]["probability"] == sure[0]
    assert max(row["probability"] for row in rows) <= sure[400]


def test_a_page_is_spread_over_labels_and_inputs(client):
    taught(client)
    for _ in range(60):
        client.post("/v1/learners/q/predict", json={"features": ["ant", "bat"]})
    others = [["ape", "cat"], ["bee", "cow"], ["asp", "boa", "cod", "cod"], ["cub"], ["auk"]]
    for features in others:
        client.post("/v1/learners/q/predict", json={"features": features})
    rows = queue(client, limit=6)["queue"]
    assert len({tuple(row["instance"]["features"]) for row in rows}) == 6


def test_several_people_never_get_the_same(client):
    taught(client)
    served = asked(client, 60)
    pages = [queue(client, limit=20, lease=600)["queue"] for _ in range(4)]
    ids = [row["prediction_id"] for page in pages for row in page]
    assert len(ids) == len(set(ids)) == len(served)
    assert pages[3] == []
    assert client.post("/v1/learners/q/feedback", json={"prediction_id": ids[0], "label": "b"}).is_success
    assert client.post("/v1/learners/q/retract", json={"prediction_id": ids[0]}).is_success
    assert queue(client)["queue"] == []


@pytest.mark.parametrize(
    "spec",
    [
        {"task": "binary", "labels": ["no", "yes"]},
        {"task": "ordinal", "labels": ["no", "yes"]},
        {"task": "multiclass", "algorithm": "predtron"},
        {"task": "multilabel"},
        {"task": "label-ranking"},
        {"task": "subset-ranking"},
        {"task": "choice"},
    ],
    ids=lambda spec: spec["task"],
)
def test_every_task_has_one(client, spec):
    client.put("/v1/learners/t", json=spec)
    items = spec["task"] in ("subset-ranking", "choice")
    instance = {"items": [{"id": "a", "features": [1]}]} if items else {"text": "a word"}
    for _ in range(2):
        assert client.post("/v1/learners/t/predict", json=instance).is_success
        if not items:
            truth = {"labels": ["x"]} if spec["task"] == "multilabel" else {"label": "yes"}
            assert client.post("/v1/learners/t/feedback", json={**instance, **truth}).is_success
    rows = queue(client, "t")["queue"]
    assert len(rows) == (0 if items else 2)
    for row in rows:
        assert row["instance"] == instance


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"limit": 0}, "/limit"),
        ({"limit": 101}, "/limit"),
        ({"lease": -1}, "/lease"),
        ({"cursor": "no"}, "/cursor"),
        ({"cursor": "AAAA"}, "/cursor"),
    ],
)
def test_what_is_wrong_is_pointed_at(client, params, pointer):
    taught(client)
    reply = client.get("/v1/learners/q/queue", params=params)
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["pointer"] == pointer


def test_it_needs_the_scope_feedback(make_client, tmp_path):
    key = add_key(tmp_path / "keys", ["predict"])
    admin = add_key(tmp_path / "keys", ["admin", "feedback"])
    client = make_client(keys_file=str(tmp_path / "keys"))
    client.put("/v1/learners/q", json={"task": "multiclass"}, headers={"authorization": f"Bearer {admin}"})
    for one, status in ((key, 403), (admin, 200)):
        reply = client.get("/v1/learners/q/queue", headers={"authorization": f"Bearer {one}"})
        assert reply.status_code == status
