"""Experiments over HTTP, with nothing but the contract's page in hand."""

import random
import re
import subprocess
from pathlib import Path

import pytest
from waiting import until

GUIDE = Path(__file__).parents[3] / "docs" / "experiments.md"


@pytest.fixture
def arms(client):
    """A server with two arms that differ only in what they were taught, and a third."""
    for name in ("good", "bad", "other"):
        made = client.put(f"/v1/learners/{name}", json={"task": "multiclass", "algorithm": "predtron"})
        assert made.status_code == 201
    teach = [{"features": [f"w{i}"], "label": f"l{i}"} for i in range(4)]
    assert client.post("/v1/learners/good/feedback", json={"events": teach}).status_code == 200
    yield client
    for entry in client.get("/v1/experiments").json()["experiments"]:
        assert client.delete(f"/v1/experiments/{entry['name']}").status_code == 204


def play(client, rounds, unit):
    """Rounds on words that the good arm knows; the arms learn nothing new, since only the one that served learns."""
    rng = random.Random(0)
    for i in range(rounds):
        k = rng.randrange(4)
        reply = client.post(
            "/v1/experiments/e/predict", json={"features": [f"w{k}"], "unit": unit(i), "remember": True}
        ).json()
        reward = float(reply["label"] == f"l{k}")
        done = client.post(
            "/v1/experiments/e/feedback", json={"prediction_id": reply["prediction_id"], "reward": reward}
        )
        assert done.status_code == 200
        assert done.json()["duplicate"] is False


def test_the_better_arm_is_named_and_promoted(arms):
    plan = {"arms": ["bad", "good"], "method": "split", "measure": "reward", "confidence": 0.95}
    made = arms.put("/v1/experiments/e", json=plan)
    assert made.status_code == 201
    assert made.json()["verdict"] == "undecided"
    assert arms.put("/v1/experiments/e", json=plan).status_code == 200
    assert arms.put("/v1/experiments/e", json={**plan, "confidence": 0.9}).status_code == 409
    assert arms.post("/v1/experiments/e/promote", json={"alias": "search"}).status_code == 409
    play(arms, 60, lambda i: f"user-{i}")
    reply = arms.get("/v1/experiments/e").json()
    assert reply["verdict"] == "good"
    assert reply["arms"]["good"]["mean"] == 1.0
    assert reply["arms"]["good"]["units"] + reply["arms"]["bad"]["units"] == 60
    (difference,) = reply["differences"]
    assert -1 <= difference["lower"] <= difference["difference"] <= difference["upper"] < 0
    promoted = arms.post("/v1/experiments/e/promote", json={"alias": "search"})
    assert promoted.status_code == 200
    assert promoted.json()["status"] == "stopped"
    assert arms.get("/v1/learners/search").json()["name"] == "good"
    assert arms.post("/v1/experiments/e/resume").status_code == 409
    assert arms.delete("/v1/learners/search").status_code == 204


def test_feedback_counts_once(arms):
    arms.put("/v1/experiments/e", json={"arms": ["bad", "good"]})
    reply = arms.post("/v1/experiments/e/predict", json={"features": ["w1"], "unit": "u"}).json()
    event = {"prediction_id": reply["prediction_id"], "label": "l1"}
    first, second = (arms.post("/v1/experiments/e/feedback", json=event).json() for _ in range(2))
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    assert first["loss"] == second["loss"]
    assert arms.post("/v1/experiments/e/feedback", json={**event, "label": "l2"}).status_code == 409
    assert arms.get("/v1/learners/bad").json()["version"] == 1
    assert arms.get("/v1/learners/good").json()["version"] == 5
    assert arms.get("/v1/experiments/e").json()["version"] == 1
    again = {"features": ["w1"], "label": "l1"}
    for expected in (False, True):
        done = arms.post("/v1/experiments/e/feedback", json=again, headers={"Idempotency-Key": "k"})
        assert done.json()["duplicate"] is expected


def test_pausing_serves_the_first_arm(arms):
    arms.put("/v1/experiments/e", json={"arms": ["bad", "good"]})
    assert arms.post("/v1/experiments/e/pause").json()["status"] == "paused"
    served = {
        arms.post("/v1/experiments/e/predict", json={"features": ["w1"], "unit": str(i)}).json()["learner"]
        for i in range(10)
    }
    assert served == {"bad"}
    assert arms.post("/v1/experiments/e/resume").json()["status"] == "running"
    assert arms.post("/v1/experiments/e/stop").json()["status"] == "stopped"


def test_what_was_acknowledged_survives_a_kill(start):
    server = start()
    with server.client() as client:
        for name in ("a", "b"):
            client.put(f"/v1/learners/{name}", json={"task": "multiclass", "algorithm": "predtron"})
        client.put("/v1/experiments/e", json={"arms": ["a", "b"]})
        ids = []
        for i in range(6):
            reply = client.post("/v1/experiments/e/predict", json={"features": ["w"], "unit": str(i)}).json()
            ids.append(reply["prediction_id"])
        for id in ids[:5]:
            client.post("/v1/experiments/e/feedback", json={"prediction_id": id, "label": "x"})
        before = client.get("/v1/experiments/e").json()
    server.kill()
    with start().client() as client:
        assert client.get("/v1/experiments/e").json() == before
        again = client.post("/v1/experiments/e/feedback", json={"prediction_id": ids[0], "label": "x"})
        assert again.json()["duplicate"] is True
        last = client.post("/v1/experiments/e/feedback", json={"prediction_id": ids[5], "label": "x"})
        assert (last.status_code, last.json()["duplicate"]) == (200, False)
        for name in ("a", "b"):
            assert client.get(f"/v1/learners/{name}").json()["version"] == 6


def test_the_guide_works(start, tmp_path):
    (block,) = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), flags=re.S)
    script = 'set -eu\ncurl() { command curl --fail-with-body --silent --show-error "$@"; echo; }\n' + block
    script = script.replace("http://127.0.0.1:8000", start().url)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert '"promoted":"new"' in done.stdout


def test_problems(arms, refused):
    def unfit(reply, pointer):
        assert refused(reply, 422, "unprocessable")["errors"][0]["pointer"] == pointer

    refused(arms.get("/v1/experiments/none"), 404, "not-found")
    refused(arms.delete("/v1/experiments/none"), 404, "not-found")
    refused(arms.post("/v1/experiments/none/predict", json={"features": []}), 404, "not-found")
    for wrong, pointer in (
        ({"arms": ["bad"]}, "/arms"),
        ({"arms": ["bad", "nobody"]}, "/arms/1"),
        ({"arms": ["bad", "good"], "method": "interleave"}, "/method"),
        ({"arms": ["bad", "good"], "mode": 1}, "/mode"),
    ):
        unfit(arms.put("/v1/experiments/e", json=wrong), pointer)
    arms.put("/v1/experiments/e", json={"arms": ["bad", "good"]})
    unfit(arms.post("/v1/experiments/e/predict", json={"features": {"a": "b"}}), "/features/a")
    unfit(arms.post("/v1/experiments/e/promote", json={"arm": "good"}), "/alias")
    answer = arms.post("/v1/experiments/e/feedback", json={"prediction_id": "x", "label": "l1"})
    refused(answer, 404, "not-found")
    refused(arms.post("/v1/experiments/e/jump"), 404, "not-found")


def by_hand(units, number):
    """(units, mean) of each arm in the units' `number`-th round."""
    own = {"bad": [], "good": []}
    for arm, values in units.values():
        own[arm] += values[number - 1 : number]
    return {arm: (len(values), sum(values) / len(values) if values else None) for arm, values in own.items()}


def test_users_that_come_back_count_as_a_hand_would_count_them(arms):
    arms.put("/v1/experiments/e", json={"arms": ["bad", "good"], "measure": "reward"})
    rng = random.Random(1)
    units, verdicts = {}, []
    for _ in range(10):
        names = [f"user-{rng.randrange(300)}" for _ in range(100)]
        asked = [{"features": ["w1"], "unit": name} for name in names]
        shown = arms.post("/v1/experiments/e/predict", json={"instances": asked}).json()["predictions"]
        events = []
        for name, one in zip(names, shown, strict=True):
            reward = float(rng.random() < (0.21 if one["learner"] == "bad" else 0.65))
            units.setdefault(name, (one["learner"], []))[1].append(reward)
            events.append({"prediction_id": one["prediction_id"], "reward": reward})
        assert arms.post("/v1/experiments/e/feedback", json={"events": events}).status_code == 200
        reply = arms.get("/v1/experiments/e").json()
        verdicts.append(reply["verdict"])
        first = by_hand(units, 1)
        for arm, (count, mean) in first.items():
            assert reply["arms"][arm]["units"] == count
            assert reply["arms"][arm]["mean"] == pytest.approx(mean)
        (difference,) = reply["differences"]
        assert difference["units"] == sum(count for count, _ in first.values())
        assert difference["lower"] <= difference["difference"] <= difference["upper"]
        assert reply["rounds_per_unit"] == 1
        for one in reply["returns"]:
            for arm, (count, mean) in by_hand(units, one["round"]).items():
                assert one["units"][arm] == count
                assert one["means"][arm] == pytest.approx(mean)
    assert verdicts[0] == "undecided"
    assert verdicts[-1] == "good"
    assert len(reply["returns"]) >= 4


def test_clicks_and_retractions_over_http(client, later):
    for name in ("one", "two"):
        client.put(f"/v1/learners/{name}", json={"task": "subset-ranking", "algorithm": "listnet"})
    client.put("/v1/experiments/pages", json={"arms": ["one", "two"], "wait": 600, "measure": "clicks"})
    page = {"items": [{"id": "a", "features": [1]}, {"id": "b", "features": [2]}], "unit": "u"}
    shown = client.post("/v1/experiments/pages/predict", json=page).json()
    for clicks in (["a"], ["b"]):
        joined = client.post(
            "/v1/experiments/pages/clicks", json={"prediction_id": shown["prediction_id"], "clicks": clicks}
        )
        assert joined.status_code == 202
    assert joined.json()["clicks"] == ["a", "b"]
    later(601)
    until(lambda: any(arm["rounds"] for arm in client.get("/v1/experiments/pages").json()["arms"].values()))
    gone = client.post("/v1/experiments/pages/retract", json={"prediction_id": shown["prediction_id"]})
    assert gone.status_code in (200, 202)
    reply = client.get("/v1/experiments/pages").json()
    assert sum(arm["rounds"] for arm in reply["arms"].values()) == 0
    assert client.post("/v1/learners/one/evaluate", json={"learner": "two"}).status_code == 409
    assert client.delete("/v1/experiments/pages").status_code == 204
