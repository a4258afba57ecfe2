"""OpenAPI: complete, true to the contract, with examples that work, and nothing undocumented comes out."""

import subprocess
import sys

import pytest

from feedrank.service.contract.request_models import Instance
from feedrank.service.http.keyring import add_key

CALLS = {
    ("put", "/v1/learners/{name}"),
    ("get", "/v1/learners"),
    ("get", "/v1/learners/{name}"),
    ("delete", "/v1/learners/{name}"),
    ("post", "/v1/learners/{name}/predict"),
    ("post", "/v1/learners/{name}/feedback"),
    ("post", "/v1/learners/{name}/stream"),
    ("get", "/v1/learners/{name}/snapshot"),
    ("put", "/v1/learners/{name}/snapshot"),
    ("post", "/v1/learners/{name}/retract"),
    ("post", "/v1/learners/{name}/labels"),
    ("post", "/v1/learners/{name}/erase"),
    ("post", "/v1/erase"),
    ("get", "/v1/learners/{name}/events"),
    ("put", "/v1/aliases/{name}"),
    ("get", "/v1/learners/{name}/history"),
    ("get", "/livez"),
    ("get", "/readyz"),
    ("get", "/metrics"),
}


@pytest.fixture
def document(client):
    return client.get("/openapi.json").json()


def operations(document):
    return {
        (method, path): call for path, calls in document["paths"].items() for method, call in calls.items()
    }


def test_every_call_of_the_contract_is_there(document):
    assert set(operations(document)) >= CALLS


def test_every_refusal_is_a_problem_document(document):
    for call in operations(document).values():
        for status, reply in call["responses"].items():
            if int(status) >= 400:
                assert list(reply["content"]) == ["application/problem+json"], (call["operationId"], status)


def test_every_call_under_v1_names_its_scope_and_with_keys_its_key(document, make_client, tmp_path):
    add_key(tmp_path / "keys", ["admin"])
    guarded = operations(make_client(keys_file=str(tmp_path / "keys")).get("/openapi.json").json())
    for (method, path), call in operations(document).items():
        assert call["description"]
        assert "security" not in call
        if path.startswith("/v1"):
            assert call["x-scope"] in {"predict", "feedback", "admin", "any"}
            assert guarded[method, path]["security"] == [{"key": []}]


def resolve(document, schema):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].split("/")[-1]]
    return schema


def examples(document, schema):
    schema = resolve(document, schema)
    return schema.get("examples", []) + [
        example for part in schema.get("anyOf", []) for example in examples(document, part)
    ]


def test_empty_text_is_documented_as_it_is_taken(mail):
    body = {"text": ""}
    Instance.model_validate(body)
    assert mail.post("/v1/learners/mail/predict", json=body).status_code == 200


def test_examples_of_bodies_work(document, mail):
    mail.post("/v1/learners/mail/feedback", json={"features": ["a"], "label": "b", "feedback_id": "order-17"})
    sent = 0
    for (method, path), call in operations(document).items():
        content = call.get("requestBody", {}).get("content", {})
        if "application/json" not in content or not path.startswith("/v1/learners"):
            continue
        result = examples(document, content["application/json"]["schema"])
        assert result, path
        for number, example in enumerate(result):
            name = "mail" if method == "post" else f"example-{number}"
            if path.endswith("/feedback"):
                example.pop("feedback_id", None)
            reply = mail.request(method, path.replace("{name}", name), json=example)
            expected = (
                (200, 201, 404) if path.endswith(("/clicks", "/rewards", "/evaluate")) else (200, 201)
            )  # names of others
            assert reply.status_code in expected, (path, example, reply.text)
            sent += 1
    assert sent >= 9


SEARCH = """
# What fits the schema may still not fit the learner at hand, and is then refused.
[checks.positive_data_acceptance]
enabled = false

# A stream is always taken; what its lines are worth is said line by line.
[[operations]]
include-path = "/v1/learners/{name}/stream"
checks.negative_data_rejection.enabled = false
"""
# Behind a name that was made up there is 404 and little else: search again behind one that is there, and stays.
NAMED = """
[parameters]
name = "mail"
"""
STAYS = ("--exclude-method", "DELETE", "--exclude-path-regex", "(stop|promote)$")


def explore(start, folder, named, keys, *options):
    """Let schemathesis loose on the whole API, with or without keys; what it finds is in the output."""
    environ, headers, given = {}, {}, ()
    if keys:
        environ = {"FEEDRANK_KEYS_FILE": str(folder / "keys")}
        headers = {"Authorization": f"Bearer {add_key(folder / 'keys', ['admin'])}"}
        given = ("-H", f"Authorization: {headers['Authorization']}")
    process = start(FEEDRANK_LOG_LEVEL="error", **environ)
    if named:
        with process.client(headers=headers) as client:
            for name in ("mail", "other"):
                client.put(f"/v1/learners/{name}", json={"task": "multiclass"}).raise_for_status()
            client.put("/v1/experiments/mail", json={"arms": ["mail", "other"]}).raise_for_status()
    (folder / "search.toml").write_text(SEARCH + NAMED * named)
    program = [sys.executable, "-m", "schemathesis.cli", "--config-file", folder / "search.toml", "run"]
    options = (*given, "--seed", "7", "--no-color", *STAYS * named, *options)
    command = [*program, f"{process.url}/openapi.json", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("named", "keys"), [(False, True), (True, True), (True, False)])
def test_nothing_undocumented_comes_out(start, tmp_path, named, keys):
    """Examples and some random requests; the long search goes through every boundary of every field as well."""
    done = explore(start, tmp_path, named, keys, "--phases", "examples,fuzzing", "--max-examples", "8")
    assert done.returncode == 0, done.stdout[-8000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_nothing_undocumented_comes_out_of_a_long_search(start, tmp_path, named, keys):
    done = explore(start, tmp_path, named, keys, "--max-examples", "300", "--workers", "2")
    assert done.returncode == 0, done.stdout[-8000:]
