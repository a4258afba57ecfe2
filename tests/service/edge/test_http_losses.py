"""Losses and norms of one's own, by spec: what the service takes, learns and refuses."""

import pytest

ONE = {"features": {"w": 1, "v": 0.5}}


def make(client, spec):
    reply = client.put("/v1/learners/own", json=spec)
    assert reply.status_code == 201, reply.text
    assert client.put("/v1/learners/own", json=spec).status_code == 200
    return reply.json()["spec"]


def feed(client, truth, features=None):
    body = {"features": features or {"w": 1}, **truth}
    reply = client.post("/v1/learners/own/feedback", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("algorithm", ["predtron", "quadratic-surrogate", "auto"])
def test_a_matrix_of_costs_names_labels_before_they_join(client, algorithm):
    matrix = {"urgent": {"later": 20}, "__class__": {"urgent": 0, "later": 3}}
    spec = make(client, {"task": "multiclass", "algorithm": algorithm, "loss": "matrix", "matrix": matrix})
    assert spec["matrix"] == {"urgent": {"later": 20.0}, "__class__": {"urgent": 0.0, "later": 3.0}}
    assert feed(client, {"label": "urgent"})["loss"] == 20  # no label was known: the dearest decision
    assert feed(client, {"label": "later"})["loss"] == 1
    for _ in range(6):
        feed(client, {"label": "later"})
    assert (
        client.post("/v1/learners/own/predict", json=ONE).json()["label"] == "later"
        or algorithm != "predtron"
    )
    served = client.post("/v1/learners/own/predict", json=ONE).json()
    reply = client.post(
        "/v1/learners/own/feedback", json={"prediction_id": served["prediction_id"], "label": "urgent"}
    ).json()
    assert reply["served_loss"] == (20 if served["label"] == "later" else 0)
    assert feed(client, {"label": "__class__"})["loss"] in (0, 3)


@pytest.mark.parametrize("algorithm", ["quadratic-surrogate", "auto"])
def test_decisions_have_the_least_expected_cost(client, algorithm):
    """One in five is urgent; a missed one costs 20: then it is never left for later."""
    make(client, {"task": "binary", "labels": ["later", "urgent"], "algorithm": algorithm, "loss": "matrix",
                  "matrix": {"urgent": {"later": 20}}})  # fmt: skip
    for i in range(40):
        feed(client, {"label": "urgent" if i % 5 == 0 else "later"})
    prediction = client.post("/v1/learners/own/predict", json={"features": {"w": 1}}).json()
    assert prediction["label"] == "urgent"
    scores = {entry["label"]: entry["score"] for entry in prediction["ranking"]}
    assert scores["urgent"] == -scores["later"]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"matrix": {"a": {"b": -1}}}, "/matrix/a/b"),
        ({"matrix": {"a": 3}}, "/matrix/a"),
        ({"matrix": [[0, 1]]}, "/matrix"),
        ({"matrix": {"a": {"b": "dear"}}}, "/matrix/a/b"),
        ({"matrix": {"": {"b": 1}}}, "/matrix"),
        ({}, "/matrix"),
        ({"matrix": {}, "loss": "zero-one"}, "/matrix"),
        ({"matrix": {"a": {"gone": 1}}, "task": "ordinal", "labels": ["a", "b"]}, "/matrix/a/gone"),
        ({"matrix": {}, "gain": "linear"}, "/gain"),
        ({"loss": "zero-one", "norm": "trace", "task": "binary", "labels": ["a", "b"]}, "/norm"),
    ],
)
def test_what_is_no_matrix_is_refused(client, more, place):
    spec = {"task": "multiclass", "algorithm": "predtron", "loss": "matrix"} | more
    reply = client.put("/v1/learners/own", json=spec)
    assert reply.status_code == 422
    assert place in [error["pointer"] for error in reply.json()["errors"]]


def test_numbers_that_are_not_finite_are_refused(client):
    for cost in ("NaN", "Infinity", "1e400"):
        spec = '{"task":"multiclass","algorithm":"predtron","loss":"matrix","matrix":{"a":{"b":COST}}}'
        body = spec.replace("COST", cost)
        reply = client.put("/v1/learners/own", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code in (400, 422)


@pytest.mark.parametrize("algorithm", ["predtron", "quadratic-surrogate"])
def test_ndcg_counts_as_the_spec_says(client, algorithm):
    spec = make(client, {"task": "subset-ranking", "algorithm": algorithm, "gain": "linear",
                         "discount": "reciprocal"})  # fmt: skip
    assert (spec["gain"], spec["discount"]) == ("linear", "reciprocal")
    items = [{"id": name, "features": {name: 1}} for name in "abc"]
    event = {"items": items, "relevance": {"c": 2, "b": 1}}
    reply = client.post("/v1/learners/own/feedback", json=event).json()
    # a, b, c were served: (1/2 + 2/3) of the best 2 + 1/2.
    assert reply["loss"] == pytest.approx(1 - (1 / 2 + 2 / 3) / 2.5)


def test_the_default_gain_is_the_same_spec(client):
    make(client, {"task": "label-ranking", "algorithm": "predtron"})
    same = {"task": "label-ranking", "algorithm": "predtron", "gain": "exponential", "discount": "log"}
    assert client.put("/v1/learners/own", json=same).status_code == 200


@pytest.mark.parametrize("loss", ["f-score", "jaccard"])
def test_sets_are_judged_by_their_overlap(client, loss):
    make(client, {"task": "multilabel", "algorithm": "predtron", "loss": loss, "labels": ["a", "b", "c"]})
    assert feed(client, {"labels": []}) | {"version": 0} == {
        "version": 0, "loss": 0, "mistake": False, "updated": False, "served_loss": None, "duplicate": False,
    }  # fmt: skip
    for _ in range(5):
        last = feed(client, {"labels": ["a", "b"]})
    assert last["loss"] == 0
    prediction = client.post("/v1/learners/own/predict", json={"features": {"w": 1}}).json()
    assert prediction["labels"] == ["a", "b"]
    expected = {"f-score": 1 - 2 / 3, "jaccard": 0.5}[loss]
    assert feed(client, {"labels": ["a"]})["loss"] == pytest.approx(expected)


def test_the_regularization_is_chosen_by_the_losses_so_far(client):
    spec = {"task": "ordinal", "labels": ["1", "2", "3"], "algorithm": "quadratic-surrogate"}
    make(client, spec | {"regularization": "auto"})
    for i in range(30):
        feed(client, {"label": str(1 + i % 3)}, {"w": i % 3, "v": 1})
    certificate = client.get("/v1/learners/own").json()["certificate"]
    losses = {one["regularization"]: one["loss"] for one in certificate["losses"]}
    assert sorted(losses) == [0.01, 0.1, 1, 10, 100]
    assert losses[certificate["regularization"]] == min(losses.values())
    assert [round(one["below"], 1) for one in certificate["low_noise"]] == [i / 10 for i in range(1, 11)]
    shares = [one["share"] for one in certificate["low_noise"]]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1


def test_the_trace_norm_says_what_it_has_room_for(client):
    make(client, {"task": "multiclass", "algorithm": "predtron", "norm": "trace"})
    for label in "abcdefghijk":
        feed(client, {"label": label}, {label: 1, "w": 2})
    body = {"features": {f"w{i}": 1 for i in range(5000)}, "label": "a"}
    reply = client.post("/v1/learners/own/feedback", json=body)
    assert reply.status_code == 422, reply.text
    assert "4096 features" in reply.text
    many = {
        "task": "multilabel",
        "algorithm": "predtron",
        "norm": "trace",
        "labels": [str(i) for i in range(512)],
    }
    assert client.put("/v1/learners/full", json=many).status_code == 201
    reply = client.post("/v1/learners/full/feedback", json={"features": {"w": 1}, "labels": ["new"]})
    assert reply.status_code == 422, reply.text
    assert "512 labels" in reply.text
    assert client.get("/v1/learners/full").json()["version"] == 0
    feed(client, {"label": "a"})
    explained = client.post("/v1/learners/own/predict", json={**ONE, "explain": True}).json()["ranking"]
    for entry in explained:
        assert sum(entry["contributions"].values()) == pytest.approx(entry["score"])
