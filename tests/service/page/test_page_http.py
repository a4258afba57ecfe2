"""The page's files and their policy, and the calls that it looks through."""

import random
import re

import pytest

from feedrank.service.http.keyring import add_key
from feedrank.service.http.routes.page_files import FILES

SCRIPT = "<script>alert(1)</script>"


def test_the_page_runs_nothing_but_its_own_files(server):
    for path in ("/", *(f"/page/{name}" for name in FILES)):
        reply = server.get(path)
        assert reply.status_code == 200
        policy = dict(
            part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert reply.headers["x-content-type-options"] == "nosniff"
    page = server.get("/").text
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", page) == []
    for address in re.findall(r'(?:src|href)="(page/[^"]+)"', page):
        assert server.get(f"/{address}").status_code == 200


def test_modules_need_each_other_and_nobody_else(server):
    scripts = {name: data.decode() for name, (data, _) in FILES.items() if name.endswith(".js")}
    imported = {result for text in scripts.values() for result in re.findall(r'from "\./([^"]+)"', text)}
    assert imported | {"main.js", "docs.js"} == set(scripts)
    for text in scripts.values():
        assert re.findall(r"https?://(?!www\.w3\.org)|innerHTML|outerHTML|insertAdjacent|eval\(", text) == []
        assert re.findall(r"localStorage|sessionStorage|document\.cookie|indexedDB", text) == []


def test_other_files_are_not_served(server):
    for path in ("/page/routes.py", "/page/..%2froutes.py", "/page/", "/page/none.js"):
        assert server.get(path).status_code == 404
    assert server.post("/").status_code == 405


def test_labels_are_counted_with_their_mistakes_and_without_what_was_retracted(server):
    server.put("/v1/learners/m", json={"task": "multilabel", "labels": ["never"]})
    rng = random.Random(0)
    truths, wrong = [], []
    for i in range(40):
        labels = sorted(rng.sample(["a", "b", SCRIPT], rng.randint(0, 2)))
        event = {"features": [f"w{label}" for label in labels], "labels": labels, "feedback_id": str(i)}
        wrong.append(server.post("/v1/learners/m/feedback", json=event).json()["mistake"])
        truths.append(labels)
    reply = server.get("/v1/learners/m/labels").json()
    expected = {
        label: {
            "label": label,
            "events": sum(label in labels for labels in truths),
            "mistakes": sum(miss for labels, miss in zip(truths, wrong, strict=True) if label in labels),
        }
        for label in ("a", "b", SCRIPT, "never")
    }
    assert (reply["version"], reply["total"]) == (40, 4)
    assert {entry["label"]: entry for entry in reply["labels"]} == expected
    counts = [entry["events"] for entry in reply["labels"]]
    assert counts == sorted(counts, reverse=True)
    assert server.get("/v1/learners/m/labels", params={"limit": 1}).json()["labels"] == reply["labels"][:1]
    last = max(i for i, labels in enumerate(truths) if "a" in labels)
    assert server.post("/v1/learners/m/retract", json={"feedback_id": str(last)}).status_code == 200
    after = {
        entry["label"]: entry["events"] for entry in server.get("/v1/learners/m/labels").json()["labels"]
    }
    assert after["a"] == expected["a"]["events"] - 1


def test_counts_survive_a_restart(make_server, teach):
    server = make_server(snapshot_every=64)
    teach(server, "m", 150)
    before = server.get("/v1/learners/m/labels").json()
    assert sum(entry["events"] for entry in before["labels"]) == 150
    assert make_server().get("/v1/learners/m/labels").json() == before


def test_the_strongest_features_are_the_words_of_the_label(server, teach):
    teach(server, "m", 300)
    reply = server.get("/v1/learners/m/weights", params={"label": "travel", "limit": 3}).json()
    assert reply["label"] == "travel"
    assert {entry["feature"] for entry in reply["features"] if entry["weight"] > 0} <= {
        "flight",
        "hotel",
        "gate",
    }
    sizes = [abs(entry["weight"]) for entry in reply["features"]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 3
    for params, pointer in (
        ({}, "/label"),
        ({"label": "none"}, "/label"),
        ({"label": "travel", "limit": 0}, "/limit"),
    ):
        refused = server.get("/v1/learners/m/weights", params=params)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == pointer
    assert server.get("/v1/learners/none/weights", params={"label": "x"}).status_code == 404
    kernel = {"task": "multiclass", "algorithm": "predtron", "kernel": "gaussian", "bandwidth": 1.0}
    teach(server, "k", 3, kernel)
    assert server.get("/v1/learners/k/weights", params={"label": "travel"}).status_code == 422


@pytest.mark.parametrize("points", [1, 7, 60, 512])
def test_the_curve_is_thinned_and_ends_now(server, teach, points):
    teach(server, "m", 1300)
    reply = server.get("/v1/learners/m/history", params={"points": points}).json()
    result = reply["points"]
    assert 1 <= len(result) <= points
    assert result[-1]["rounds"] == reply["progress"]["rounds"] == 1300
    assert result[-1]["cumulative_loss"] == reply["progress"]["cumulative_loss"]
    before, lost = 0, 0.0
    for point in result:
        assert point["mean_loss"] == point["cumulative_loss"] / point["rounds"]
        span = point["rounds"] - before
        assert point["window_loss"] * span == pytest.approx(point["cumulative_loss"] - lost)
        before, lost = point["rounds"], point["cumulative_loss"]
    teach(server, "m", 1)
    moved = server.get("/v1/learners/m/history", params={"points": points}).json()
    assert moved["points"][-1]["rounds"] == 1301


def play(client, rounds, units=1000):
    for i in range(rounds):
        reply = client.post(
            "/v1/experiments/e/predict", json={"features": ["x"], "unit": f"u{i % units}"}
        ).json()
        event = {"prediction_id": reply["prediction_id"], "reward": float(reply["learner"] == "b")}
        assert client.post("/v1/experiments/e/feedback", json=event).status_code == 200


def test_the_past_of_an_experiment_ends_in_what_get_says_and_survives_a_restart(make_server):
    server = make_server()
    for name in ("a", "b"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    server.put("/v1/experiments/e", json={"arms": ["a", "b"], "measure": "reward"})
    assert server.get("/v1/experiments/e/history").json()["points"] == []
    play(server, 150)
    now, past = server.get("/v1/experiments/e").json(), server.get("/v1/experiments/e/history").json()
    assert (past["version"], past["arms"]) == (150, [["a", "b"]])
    assert 2 < len(past["points"]) <= 128
    (last,) = past["points"][-1]["differences"]
    (difference,) = now["differences"]
    assert last == {
        name: difference[name] for name in ("units", "rounds_per_unit", "difference", "lower", "upper")
    }
    widths = [one["upper"] - one["lower"] for moment in past["points"] for one in moment["differences"]]
    assert widths[0] > 2 * widths[-1]
    events = [moment["events"] for moment in past["points"]]
    assert events == sorted(set(events))
    again = make_server()
    assert again.get("/v1/experiments/e/history").json() == past
    assert again.get("/v1/experiments/none/history").status_code == 404


def test_the_chart_ends_in_the_figures_of_the_table_where_units_come_back(make_server):
    server = make_server()
    for name in ("a", "b"):
        server.put(f"/v1/learners/{name}", json={"task": "multiclass"})
    server.put("/v1/experiments/e", json={"arms": ["a", "b"], "measure": "reward"})
    play(server, 200, units=40)
    now, past = server.get("/v1/experiments/e").json(), server.get("/v1/experiments/e/history").json()
    (last,), (difference,) = past["points"][-1]["differences"], now["differences"]
    assert difference["units"] == 40
    assert last == {name: difference[name] for name in last}
    means = [now["arms"][name]["mean"] for name in ("a", "b")]
    assert means[0] - means[1] == last["difference"]


def test_looking_needs_a_key_but_no_scope_in_particular(make_server, teach, tmp_path):
    admin = {"Authorization": f"Bearer {add_key(tmp_path / 'keys', ['admin'])}"}
    reader = {"Authorization": f"Bearer {add_key(tmp_path / 'keys', ['predict'], prefixes=['m'])}"}
    server = make_server(keys_file=str(tmp_path / "keys"))
    assert server.get("/").status_code == 200
    server.put("/v1/learners/m", json={"task": "multiclass", "labels": ["x"]}, headers=admin)
    server.put("/v1/learners/other", json={"task": "multiclass", "labels": ["x"]}, headers=admin)
    for rest in ("labels", "weights?label=x", "history?points=1"):
        assert server.get(f"/v1/learners/m/{rest}").status_code == 401
        assert server.get(f"/v1/learners/m/{rest}", headers=reader).status_code == 200
        assert server.get(f"/v1/learners/other/{rest}", headers=reader).status_code == 403
