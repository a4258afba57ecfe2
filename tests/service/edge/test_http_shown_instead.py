"""What a page showed instead of the prediction, and arms that never learn: what search needs of the service."""

ITEMS = [{"id": name, "features": {name: 1}} for name in "abcd"]


def test_clicks_are_read_by_what_was_shown_and_the_log_keeps_it(make_client):
    client = make_client()
    for name in ("told", "again"):
        client.put(f"/v1/learners/{name}", json={"task": "subset-ranking", "algorithm": "listnet"})
    made = client.post("/v1/learners/told/predict", json={"items": ITEMS}).json()
    assert [entry["id"] for entry in made["ranking"]] == list("abcd")
    shown = {"ranking": list("dcba")}
    event = {"prediction_id": made["prediction_id"], "clicks": ["c"], "served": shown}
    done = client.post("/v1/learners/told/feedback", json=event).json()
    assert done["served_loss"] > 0  # d was passed over
    # The same event with its instance: the weights agree, so a and b, below the click, were left out.
    client.post("/v1/learners/again/feedback", json={"items": ITEMS, "clicks": ["c"], "served": shown})
    scores = [
        client.post(f"/v1/learners/{name}/predict", json={"items": ITEMS}).json()["ranking"]
        for name in ("told", "again")
    ]
    assert scores[0] == scores[1]
    assert {entry["id"]: entry["score"] for entry in scores[0]}["a"] == 0
    (kept,) = client.get("/v1/learners/told/events").json()["events"]
    assert kept["served"] == shown
    assert client.post("/v1/learners/told/feedback", json=event).json()["duplicate"]


def test_what_was_shown_is_checked(make_client):
    client = make_client()
    client.put("/v1/learners/told", json={"task": "subset-ranking"})
    made = client.post("/v1/learners/told/predict", json={"items": ITEMS}).json()
    event = {"prediction_id": made["prediction_id"], "clicks": ["c"], "served": {"label": "c"}}
    refused = client.post("/v1/learners/told/feedback", json=event)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/served"


def test_only_the_arms_that_are_named_learn(make_client):
    client = make_client()
    for name in ("engine", "learned"):
        client.put(f"/v1/learners/{name}", json={"task": "subset-ranking"})
    plan = {"arms": ["engine", "learned"], "method": "interleave", "learn": ["learned"]}
    made = client.put("/v1/experiments/e", json=plan)
    assert made.status_code == 201, made.text
    assert client.get("/v1/experiments/e").json()["definition"]["learn"] == ["learned"]
    for i in range(3):
        served = client.post("/v1/experiments/e/predict", json={"items": ITEMS, "unit": f"u{i}"}).json()
        event = {"prediction_id": served["prediction_id"], "clicks": ["d"]}
        assert client.post("/v1/experiments/e/feedback", json=event).status_code == 200
    assert client.get("/v1/learners/engine").json()["version"] == 0
    assert client.get("/v1/learners/learned").json()["version"] == 3
    refused = client.put("/v1/experiments/f", json={**plan, "learn": ["other"]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/learn"
