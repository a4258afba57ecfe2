"""Keys over HTTP: 401 without one, 403 without the scope or outside the prefix, and a revoked one stops at once."""

from base64 import urlsafe_b64decode

import pytest

from feedrank.service.http.keyring import add_key, read_keys, revoke_key

SPEC = {"task": "multiclass", "algorithm": "predtron"}
WORDS = {"features": ["a"]}


@pytest.fixture
def guarded(make_client, tmp_path):
    file = tmp_path / "keys"
    keys = {
        "admin": add_key(file, ["admin"]),
        "predict": add_key(file, ["predict"]),
        "feedback": add_key(file, ["feedback"]),
        "bound": add_key(file, ["admin"], ["a-"]),
    }
    client = make_client(keys_file=str(file))

    def ask(method, path, who=None, **more):
        headers = {"Authorization": f"Bearer {keys[who]}"} if who else {}
        return client.request(method, path, headers=headers, **more)

    ask.client, ask.keys, ask.file = client, keys, file
    ask("PUT", "/v1/learners/mail", "admin", json=SPEC)
    return ask


def test_every_call_needs_a_key_but_health_does_not(guarded, refused):
    for path in ("/v1/learners", "/v1/learners/mail", "/v1/nothing", "/v1/learners/../x"):
        reply = guarded("GET", path)
        refused(reply, 401, "unauthorized")
        assert reply.headers["www-authenticate"].startswith("Bearer")
    for path in ("/livez", "/readyz", "/metrics", "/openapi.json", "/docs"):
        assert guarded("GET", path).status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x", "Basic eDp5", "bearer"])
def test_wrong_headers_are_401(guarded, refused, header):
    refused(guarded.client.get("/v1/learners", headers={"Authorization": header}), 401, "unauthorized")


def test_scheme_is_case_insensitive(guarded):
    headers = {"Authorization": f"bearer {guarded.keys['admin']}"}
    assert guarded.client.get("/v1/learners", headers=headers).status_code == 200


CALLS = [
    ("POST", "/v1/learners/mail/predict", WORDS, {"predict", "admin"}),
    (
        "POST",
        "/v1/learners/mail/feedback",
        {**WORDS, "label": "x", "feedback_id": "1"},
        {"feedback", "admin"},
    ),
    ("POST", "/v1/learners/mail/retract", {"feedback_id": "0"}, {"feedback", "admin"}),
    ("POST", "/v1/learners/mail/labels", {"rename": {"x": "y"}}, {"admin"}),
    ("POST", "/v1/learners/mail/erase", {"subject": "nobody"}, {"admin"}),
    ("POST", "/v1/erase", {"subject": "nobody"}, {"admin"}),
    ("PUT", "/v1/learners/mail", SPEC, {"admin"}),
    ("PUT", "/v1/aliases/alias", {"learner": "mail"}, {"admin"}),
    ("GET", "/v1/learners", None, {"predict", "feedback", "admin"}),
    ("GET", "/v1/learners/mail", None, {"predict", "feedback", "admin"}),
    ("GET", "/v1/learners/mail/queue", None, {"feedback", "admin"}),
    ("GET", "/v1/learners/mail/reliability", None, {"predict", "feedback", "admin"}),
    ("GET", "/v1/learners/mail/history", None, {"predict", "feedback", "admin"}),
    ("GET", "/v1/learners/mail/events", None, {"admin"}),
    ("GET", "/v1/learners/mail/snapshot", None, {"admin"}),
    ("PUT", "/v1/learners/mail/snapshot", None, {"admin"}),
    ("DELETE", "/v1/learners/nobody", None, {"admin"}),
]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), CALLS)
def test_scopes(guarded, refused, method, path, body, allowed):
    for who in ("predict", "feedback", "admin"):
        reply = guarded(method, path, who, json=body)
        if who in allowed:
            assert reply.status_code not in (401, 403), reply.text
        else:
            refused(reply, 403, "forbidden")


def test_prefixes(guarded, refused):
    assert guarded("PUT", "/v1/learners/a-1", "bound", json=SPEC).status_code == 201
    refused(guarded("PUT", "/v1/learners/b-1", "bound", json=SPEC), 403, "forbidden")
    refused(guarded("GET", "/v1/learners/mail", "bound"), 403, "forbidden")
    refused(guarded("PUT", "/v1/aliases/a-2", "bound", json={"learner": "mail"}), 403, "forbidden")
    listed = guarded("GET", "/v1/learners", "bound").json()["learners"]
    assert [entry["name"] for entry in listed] == ["a-1"]


def test_pages_and_cursors_say_nothing_of_names_beyond_the_prefix(guarded):
    names = ["a-1", "a-2", "a-3"]
    for name in [*names, "a", "b-1", "b-2", "Z"]:
        assert guarded("PUT", f"/v1/learners/{name}", "admin", json=SPEC).status_code == 201
    for name, other in (("a-x", "a-1"), ("a-y", "a-1"), ("c-x", "mail")):
        assert guarded("PUT", f"/v1/aliases/{name}", "admin", json={"learner": other}).status_code == 200
    arms = {"arms": ["a-1", "a-2"], "method": "split", "measure": "loss"}
    made = [guarded("PUT", f"/v1/experiments/{name}", "admin", json=arms) for name in ("a-e", "a-f", "b-e")]
    assert [reply.status_code for reply in made] == [201, 201, 201]
    for kind, seen in (("learners", names), ("aliases", ["a-x", "a-y"]), ("experiments", ["a-e", "a-f"])):
        shown, cursor = [], ""
        while cursor is not None:
            where = {"limit": 1} | ({"cursor": cursor} if cursor else {})
            page = guarded("GET", f"/v1/{kind}", "bound", params=where).json()
            assert len(page[kind]) == 1, "a page is full as long as there is more to see"
            shown += [one["name"] for one in page[kind]]
            cursor = page["next"]
            if cursor is not None:
                said = urlsafe_b64decode(cursor)
                assert not any(name.encode() in said for name in ("a-1", "a-x", "a-e", "b-1", "mail"))
        assert shown == seen


def test_stream_lines_need_their_own_scope(guarded):
    lines = b'{"predict": {"features": ["a"]}}\n{"feedback": {"features": ["a"], "label": "x"}}\n'
    replies = guarded("POST", "/v1/learners/mail/stream", "predict", content=lines).text.splitlines()
    assert '"ranking"' in replies[0]
    assert '"status":403' in replies[1]


def test_a_revoked_key_stops_at_once(guarded, refused):
    key = next(key for key in read_keys(guarded.file) if key.scopes == ("predict",))
    assert guarded("POST", "/v1/learners/mail/predict", "predict", json=WORDS).status_code == 200
    revoke_key(guarded.file, key.id)
    refused(guarded("POST", "/v1/learners/mail/predict", "predict", json=WORDS), 401, "unauthorized")


def test_keys_are_never_logged(guarded, caplog):
    caplog.set_level("DEBUG")
    guarded("GET", "/v1/learners", "admin")
    guarded("GET", "/v1/nothing", "admin")
    guarded.client.get("/v1/learners", headers={"Authorization": "Bearer fr_000000000000_wrong"})
    assert not any(secret in caplog.text for secret in guarded.keys.values())
    assert "wrong" not in caplog.text
