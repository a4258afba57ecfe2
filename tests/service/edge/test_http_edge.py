"""The edge itself: limits, time, headers, health, metrics, logs, CORS."""

import asyncio
import json
import logging

import pytest
from waiting import until

from feedrank.service.http.logs import JsonLines

WORDS = {"features": {"flight": 1}}
PREDICT, FEEDBACK = "/v1/learners/mail/predict", "/v1/learners/mail/feedback"


@pytest.fixture
def make_mail(make_client):
    def make(**settings):
        client = make_client(**settings)
        assert client.put("/v1/learners/mail", json={"task": "multiclass"}).status_code == 201
        return client

    return make


def test_body_above_the_limit_is_413_and_closes(make_mail, refused):
    client = make_mail(max_body=2048)
    reply = client.post(PREDICT, content=b" " * 2049)
    refused(reply, 413, "too-large")
    assert reply.headers["connection"] == "close"
    chunks = (b" " * 1000 for _ in range(3))
    refused(client.post(PREDICT, content=chunks), 413, "too-large")
    body = json.dumps(WORDS).encode()
    assert client.post(PREDICT, content=body + b" " * (2048 - len(body))).status_code == 200


def test_the_rest_of_a_large_body_is_not_read():
    from feedrank.service.contract.budget import Budget, Lease
    from feedrank.service.contract.faults import TooLarge
    from feedrank.service.http.bodies import read_body

    async def read(headers):
        taken = []

        async def receive():
            taken.append(1)
            return {"type": "http.request", "body": b"x" * 10, "more_body": True}

        budget = Budget(2**30)
        with pytest.raises(TooLarge):
            await read_body({"feedrank.headers": headers}, receive, 25, budget, Lease(budget))
        return len(taken)

    assert asyncio.run(read({b"content-length": b"26"})) == 0
    assert asyncio.run(read({})) == 3


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        ({"max_features": 2}, {"features": ["a", "b", "c"]}),
        ({"max_batch": 2}, {"instances": [WORDS] * 3}),
    ],
)
def test_limits_of_a_prediction(make_mail, refused, limit, body):
    refused(make_mail(**limit).post(PREDICT, json=body), 422, "unprocessable")


def test_limits_of_a_list(make_client, refused):
    client = make_client(max_items=2)
    client.put("/v1/learners/shop", json={"task": "subset-ranking", "algorithm": "slam"})
    items = [{"id": str(i), "features": [1]} for i in range(3)]
    assert client.post("/v1/learners/shop/predict", json={"items": items[:2]}).status_code == 200
    refused(client.post("/v1/learners/shop/predict", json={"items": items}), 422, "unprocessable")


def test_limit_of_labels(make_mail, refused):
    client = make_mail(max_labels=2)
    for label in ("a", "b", "a"):
        assert client.post(FEEDBACK, json={**WORDS, "label": label}).status_code == 200
    refused(client.post(FEEDBACK, json={**WORDS, "label": "c"}), 422, "unprocessable")
    refused(
        client.put("/v1/learners/more", json={"task": "multiclass", "labels": ["a", "b", "c"]}),
        422,
        "unprocessable",
    )
    assert client.get("/v1/learners/mail").json()["labels"] == ["a", "b"]


def test_limit_of_a_learners_bytes_is_507(make_mail, refused):
    client = make_mail(max_learner_bytes=2560 * 1024)
    statuses = set()
    for i in range(600):
        words = {f"w{i}-{j}": 1 for j in range(100)}
        reply = client.post(FEEDBACK, json={"features": words, "label": f"l{i % 10}"})
        statuses.add(reply.status_code)
        if reply.status_code != 200:
            refused(reply, 507, "storage-full")
            break
    assert statuses == {200, 507}
    assert client.get("/v1/learners/mail").json()["bytes"] <= 2560 * 1024
    assert client.post(PREDICT, json=WORDS).status_code == 200


def test_limit_of_learners_is_507(make_client, refused):
    client = make_client(max_learners=1)
    client.put("/v1/learners/a", json={"task": "multiclass"})
    refused(client.put("/v1/learners/b", json={"task": "multiclass"}), 507, "storage-full")
    client.delete("/v1/learners/a")
    assert client.put("/v1/learners/b", json={"task": "multiclass"}).status_code == 201


def test_time_limit_is_503(make_mail, refused):
    client = make_mail(request_timeout=3.0, version_wait=60.0)
    reply = client.post(PREDICT, json={**WORDS, "min_version": 5})
    refused(reply, 503, "timed-out")
    assert int(reply.headers["retry-after"]) >= 1
    assert client.post(PREDICT, json=WORDS).status_code == 200


def test_min_version_waits_within_a_bound(make_mail, refused):
    client = make_mail(version_wait=0.2)
    refused(client.post(PREDICT, json={**WORDS, "min_version": 1}), 409, "conflict")
    client.post(FEEDBACK, json={**WORDS, "label": "a"})
    assert client.post(PREDICT, json={**WORDS, "min_version": 1}).json()["version"] == 1


def test_unknown_addresses_and_methods(client, refused):
    for path in ("/v1", "/v1/", "/v1/nothing", "/v1/learners/mail/nothing", "/v1/learners/"):
        refused(client.get(path), 404, "not-found")
    reply = client.patch("/v1/learners/mail")
    refused(reply, 405, "method-not-allowed")
    assert reply.headers["allow"] == "DELETE, GET, PUT"
    refused(client.get("/v1/learners/mail/predict"), 405, "method-not-allowed")


def test_request_id_is_echoed_or_made(client):
    assert client.get("/livez", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = {
        client.get("/livez", headers={"X-Request-ID": wrong}).headers["x-request-id"] for wrong in ("", "a b")
    }
    assert len(made) == 2
    assert not made & {"", "a b"}


def test_security_headers(client):
    page = client.get("/docs")
    assert page.status_code == 200
    assert page.headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    for path in ("/livez", "/docs", "/nothing", "/openapi.json"):
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


def test_cors_is_off_unless_set(make_client):
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    closed = make_client()
    assert "access-control-allow-origin" not in closed.get("/livez", headers=ask).headers
    assert closed.options("/v1/learners/mail/predict", headers=ask).status_code == 403
    opened = make_client(cors_origins="https://app.example")
    reply = opened.options("/v1/learners/mail/predict", headers=ask)
    assert reply.headers["access-control-allow-origin"] == "https://app.example"
    other = opened.get("/livez", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_health(client):
    assert client.get("/livez").json() == {"status": "ok"}
    checks = dict.fromkeys(("store", "logs", "listener", "positions", "sweeper", "eraser"), "ok")
    assert client.get("/readyz").json() == {"status": "ok", "checks": checks}


def test_readiness_fails_with_the_store_and_liveness_does_not(own_redis, make_client, refused):
    client = make_client(store=own_redis.url)
    assert client.get("/readyz").status_code == 200
    own_redis.kill()
    refused(client.get("/readyz"), 503, "store-unavailable")
    assert client.get("/livez").status_code == 200


def test_metrics_count_and_carry_no_user_values(make_mail):
    mail = make_mail()
    mail.post(FEEDBACK, json={"features": ["secretword"], "label": "secretlabel", "feedback_id": "one"})
    mail.post(FEEDBACK, json={"features": ["secretword"], "label": "secretlabel", "feedback_id": "one"})
    mail.post(PREDICT, json=WORDS)
    mail.get("/secretpath")
    text = mail.get("/metrics").text
    for line in (
        'feedrank_feedback_total{result="applied"} 1.0',
        'feedrank_feedback_total{result="duplicate"} 1.0',
        'feedrank_requests_total{method="POST",operation="predict",status="200"} 1.0',
        'feedrank_requests_total{method="GET",operation="unmatched",status="404"} 1.0',
        "feedrank_loaded_learners 1.0",
        "feedrank_log_lag 0.0",
        "feedrank_store_errors_total 0.0",
    ):
        assert line in text
    for name in ("feedrank_mistakes_total", "feedrank_mean_loss", "feedrank_loaded_bytes", "_seconds_bucket"):
        assert name in text
    assert "secret" not in text
    assert "mail" not in text


def test_logs_are_json_with_the_request_id(mail, caplog):
    caplog.set_level(logging.DEBUG, "feedrank")
    caplog.handler.setFormatter(JsonLines())
    mail.get("/nothing", headers={"X-Request-ID": "lost-1", "Authorization": "Bearer fr_secret"})

    def request_lines():
        return [one for one in map(json.loads, caplog.text.splitlines()) if one["message"] == "request"]

    entry = until(request_lines)[0]  # it is written after the reply is out
    assert entry["request_id"] == "lost-1"
    assert (entry["status"], entry["path"], entry["level"]) == (404, "/nothing", "info")
    assert "fr_secret" not in caplog.text


def test_unforeseen_errors_are_500_without_details(make_mail, refused):
    mail = make_mail()
    mail.app.calls.host.predict = None
    problem = refused(mail.post(PREDICT, json=WORDS), 500, "internal")
    assert "settings" not in problem["detail"]
