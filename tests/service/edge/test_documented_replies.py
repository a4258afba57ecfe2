"""Every key of every real reply is in its model, and every task, algorithm and parameter is in `/openapi.json`."""

import pytest

from feedrank.learners import vocabulary

FLIGHT = {"flight": 1, "boarding": 2}
ITEMS = [{"id": name, "features": {name: 1.0, "all": 0.5}} for name in "abc"]


@pytest.fixture
def document(shared):
    return shared.get("/openapi.json").json()


def resolved(document, schema):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def undocumented(document, schema, value, place=""):
    """Places of keys that the schema does not name; of several schemas, the one that knows most counts."""
    schema = resolved(document, schema)
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        fitting = [undocumented(document, option, value, place) for option in options]
        return min(fitting, key=len)
    if isinstance(value, list):
        return [
            bad
            for i, one in enumerate(value)
            for bad in undocumented(document, schema.get("items", {"properties": {}}), one, f"{place}/{i}")
        ]
    if not isinstance(value, dict):
        return []
    if schema.get("type") not in (None, "object"):
        return [place]
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", False)
    bad = []
    for key, part in value.items():
        if key in properties:
            bad += undocumented(document, properties[key], part, f"{place}/{key}")
        elif rest is False:
            bad.append(f"{place}/{key}")
        elif isinstance(rest, dict):
            bad += undocumented(document, rest, part, f"{place}/{key}")
    return bad


@pytest.fixture
def ask(shared, document):
    """Make a call, and compare its reply with what is documented."""

    def call(method, path, template, **arguments):
        reply = shared.request(method, path, **arguments)
        assert reply.is_success, reply.text
        described = document["paths"][template][method.lower()]["responses"][str(reply.status_code)]
        schema = described["content"]["application/json"]["schema"]
        assert schema, template
        assert undocumented(document, schema, reply.json()) == [], template
        return reply.json()

    return call


SPECS = {
    "d-binary": {"task": "binary", "labels": ["no", "yes"]},
    "d-multiclass": {"task": "multiclass"},
    "d-ascent": {"task": "multiclass", "algorithm": "dual-ascent"},
    "d-quadratic": {"task": "multiclass", "algorithm": "quadratic-surrogate"},
    "d-multilabel": {"task": "multilabel"},
    "d-labels": {"task": "label-ranking"},
    "d-items": {"task": "subset-ranking"},
}


@pytest.mark.parametrize("name", SPECS)
def test_replies_of_a_learner(ask, name):
    one, spec = f"/v1/learners/{name}", SPECS[name]
    template = "/v1/learners/{name}"
    ask("PUT", one, template, json=spec)
    instance = {"items": ITEMS} if name == "d-items" else {"features": FLIGHT}
    truth = {"relevance": {"a": 1}} if name == "d-items" else {"label": "yes"}
    if name in ("d-multilabel", "d-labels"):
        truth = {"labels": ["x", "y"]}
    for _ in range(2):
        served = ask("POST", f"{one}/predict", f"{template}/predict", json={**instance, "explain": True})
        answer = {"prediction_id": served["prediction_id"], **truth}
        ask("POST", f"{one}/feedback", f"{template}/feedback", json=answer)
    ask("POST", f"{one}/predict", f"{template}/predict", json={"instances": [instance, instance]})
    ask(
        "POST",
        f"{one}/feedback",
        f"{template}/feedback",
        json={"events": [{**instance, **truth, "weight": 2}]},
    )
    if name == "d-items":
        served = ask("POST", f"{one}/predict", f"{template}/predict", json=instance)
        clicks = {"prediction_id": served["prediction_id"], "clicks": ["a"]}
        ask("POST", f"{one}/clicks", f"{template}/clicks", json=clicks)
    ask("POST", f"{one}/retract", f"{template}/retract", json={"prediction_id": answer["prediction_id"]})
    if name == "d-multiclass":
        (old,) = truth.values()
        ask("POST", f"{one}/labels", f"{template}/labels", json={"rename": {old: "another"}})
    gone = ask("POST", f"{one}/predict", f"{template}/predict", json={**instance, "subject": "s"})
    ask("POST", f"{one}/erase", f"{template}/erase", json={"prediction_id": gone["prediction_id"]})
    ask("POST", f"{one}/feedback", f"{template}/feedback", json={**instance, **truth, "subject": "s"})
    ask("POST", "/v1/erase", "/v1/erase", json={"subject": "s"})
    for part in ("", "/events", "/history", "/labels", "/reliability", "/queue"):
        ask("GET", one + part, template + part)
    ask("PUT", f"/v1/aliases/{name}-alias", "/v1/aliases/{name}", json={"learner": name})
    for path in ("/v1/aliases", "/v1/learners", "/livez", "/readyz"):
        ask("GET", path, path)


@pytest.mark.parametrize("method", ["split", "interleave"])
def test_replies_of_an_experiment(ask, method):
    arms = [f"e-{method}-{i}" for i in range(2)]
    for arm in arms:
        ask("PUT", f"/v1/learners/{arm}", "/v1/learners/{name}", json={"task": "subset-ranking"})
    one, template = f"/v1/experiments/e-{method}", "/v1/experiments/{name}"
    measure = "reciprocal-rank" if method == "split" else "clicks"
    ask("PUT", one, template, json={"arms": arms, "method": method, "measure": measure})
    for unit in range(3):
        asked = {"items": ITEMS, "unit": f"u{unit}"}
        served = ask("POST", f"{one}/predict", f"{template}/predict", json=asked)
        answer = {"prediction_id": served["prediction_id"], "clicks": ["b"]}
        if unit < 2:
            ask("POST", f"{one}/feedback", f"{template}/feedback", json=answer)
        else:
            ask("POST", f"{one}/clicks", f"{template}/clicks", json=answer)
    ask("POST", f"{one}/predict", f"{template}/predict", json={"instances": [{"items": ITEMS, "unit": "u"}]})
    ask("GET", one, template)
    ask("GET", f"{one}/history", f"{template}/history")
    ask("GET", "/v1/experiments", "/v1/experiments")
    for step in ("pause", "resume", "stop"):
        ask("POST", f"{one}/{step}", f"{template}/{step}")


def test_replies_of_an_experiment_by_unit(ask):
    arms = [f"per-{i}" for i in range(2)]
    for arm in arms:
        ask("PUT", f"/v1/learners/{arm}", "/v1/learners/{name}", json={"task": "multiclass"})
    one, template = "/v1/experiments/per", "/v1/experiments/{name}"
    per = {"window": 60, "value": "total", "cap": 9}
    plan = {"arms": arms, "measure": "reward", "per": per, "segments": {"country": ["DE"]}, "share": 0.9}
    ask("PUT", one, template, json=plan)
    for unit in range(3):
        body = {"unit": f"u{unit}", "segments": {"country": "DE"}}
        ask("POST", f"{one}/assign", f"{template}/assign", json=body)
        event = {"unit": f"u{unit}", "metric": "reward", "value": 2}
        ask("POST", f"{one}/events", f"{template}/events", json=event)
    ask("POST", f"{one}/events", f"{template}/events", json={"events": [event]})
    ask("GET", f"{one}/units", f"{template}/units", params={"limit": 2})
    ask("POST", f"{one}/ramp", f"{template}/ramp", json={"share": 1})
    ask("GET", one, template)


def test_a_wrong_cursor_is_refused(shared):
    for path in ("/v1/learners", "/v1/aliases", "/v1/experiments"):
        assert shared.get(path, params={"cursor": ""}).status_code == 200
        reply = shared.get(path, params={"cursor": "!!"})
        assert reply.status_code == 422, path
        assert reply.json()["errors"][0]["pointer"] == "/cursor"


def test_every_registered_name_is_in_the_spec(document):
    body = document["paths"]["/v1/learners/{name}"]["put"]["requestBody"]
    schema = resolved(document, body["content"]["application/json"]["schema"])
    fields, known = schema["properties"], vocabulary.reference()
    assert fields["task"]["enum"] == [task["name"] for task in known["tasks"]]
    assert fields["algorithm"]["enum"] == [entry["name"] for entry in known["algorithms"]]
    for entry in (*known["tasks"], *known["algorithms"]):
        assert entry["text"] in fields["task"]["description"] + fields["algorithm"]["description"]
    tables = (known["common"], *(entry["parameters"] for entry in known["algorithms"]))
    for parameter in (parameter for table in tables for parameter in table):
        described = fields[parameter["name"]]
        assert parameter["text"] in described["description"]
        assert parameter["schema"].get("enum", []) == [] or all(
            word in str(described) for word in parameter["schema"]["enum"]
        )


def test_every_reply_ends_with_a_newline(shared):
    for path in ("/livez", "/v1/learners", "/v1/nothing"):
        assert shared.get(path).content.endswith(b"}\n")
