"""`feedrank personalizer`: a mirrored log becomes feedback, each event once; both npm packages call a real server."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from feedrank.personalizer_log import event_of

LINE = {
    "_label_cost": -1.0,
    "_label_probability": 0.8,
    "_label_Action": 2,
    "_labelIndex": 1,
    "EventId": "e1",
    "a": [2, 1],
    "p": [0.8, 0.2],
    "c": {
        "FromUrl": [{"time": "noon", "user": {"age": 30}}],
        "_multi": [
            {"_tag": "pasta", "i": {"constant": 1, "id": "pasta"}, "j": [{"taste": "salty"}]},
            {"_tag": "cake", "i": {"constant": 1, "id": "cake"}, "j": [{"sugar": 40}]},
        ],
    },
}


def test_a_line_is_what_the_call_rank_would_have_made_of_it():
    assert event_of(json.dumps(LINE), [0, 1]) == {
        "items": [
            {"id": "pasta", "features": {"taste=salty": 1.0}},
            {"id": "cake", "features": {"sugar": 40.0}},
        ],
        "features": {"time=noon": 1.0, "user.age": 30.0},
        "served": {"id": "cake", "probability": 0.8},
        "reward": 1.0,
        "feedback_id": "e1",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"_label_probability": 0},
        {"_label_probability": None},
        {"_labelIndex": 2},
        {"_skipLearn": True},
        {"c": {}},
        {"c": {"_multi": 3}},
        {"_label_cost": "much"},
    ],
)
def test_a_line_that_is_no_rewarded_choice_is_passed_over(change):
    assert event_of(json.dumps({**LINE, **change}), [0, 1]) is None
    assert event_of("[]", [0, 1]) is None
    assert event_of("no JSON", [0, 1]) is None


@pytest.fixture
def server(tmp_path):
    command = [Path(sys.executable).parent / "feedrank", "serve", "--port", "0", "--store"]
    environment = {"FEEDRANK_PERSONALIZER": "food", "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        [*command, f"sqlite:{tmp_path}/p.db"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield re.search(r"http://[\d.:]+", process.stdout.readline())[0]
        finally:
            process.terminate()


def test_a_log_is_learned_once_however_often_it_is_sent(server, tmp_path):
    log = tmp_path / "log.json"
    lines = [json.dumps({**LINE, "EventId": f"e{i}"}) for i in range(5)]
    log.write_text("\n".join([*lines, '{"RewardValue": 1}', ""]))
    command = [Path(sys.executable).parent / "feedrank", "personalizer", log, "--learner", "food"]
    for said in ("5 events learned, 0 known before, 1 lines", "0 events learned, 5 known before"):
        done = subprocess.run([*command, "--server", server], capture_output=True, text=True, check=False)
        assert said in done.stdout, done.stdout + done.stderr
    assert httpx.get(f"{server}/v1/learners/food").json()["version"] == 5
    report = httpx.post(f"{server}/v1/learners/food/evaluate", json={"policy": "first"}).json()
    assert report["rounds"] == 5


OLD = """
const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");
const { ApiKeyCredentials } = require("@azure/ms-rest-js");
const key = new ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": "key" } });
const client = new PersonalizerClient(key, process.argv[2]);
(async () => {
  const actions = [{ id: "a", features: [{ x: 1 }] }, { id: "b", features: [] }];
  const ranked = await client.rank({ actions, contextFeatures: [{ y: "z" }], eventId: "old 1" });
  await client.events.activate(ranked.eventId);
  await client.events.reward(ranked.eventId, { value: 1 });
  console.log(ranked.rewardActionId);
})();
"""
NEW = """
const create = require("@azure-rest/ai-personalizer").default;
const { AzureKeyCredential } = require("@azure/core-auth");
const client = create(process.argv[2] + "/at/food", new AzureKeyCredential("key"), { allowInsecureConnection: true });
(async () => {
  const actions = [{ id: "a", features: [{ x: 1 }] }, { id: "b", features: [] }];
  const body = { actions, slots: [{ id: "s", baselineAction: "a" }], contextFeatures: [], eventId: "new" };
  const ranked = await client.path("/multislot/rank").post({ body });
  const reward = { body: { reward: [{ slotId: "s", value: 1 }] } };
  const done = await client.path("/multislot/events/{eventId}/reward", "new").post(reward);
  const refused = await client.path("/evaluations").get();
  console.log(ranked.body.slots[0].rewardActionId, done.status, refused.body.error.code);
})();
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node and npm")
def test_both_npm_packages_run_unchanged(server, tmp_path):
    packages = ["cognitiveservices-personalizer@2.0.1", "ms-rest-js@2", "core-auth@1"]
    install = ["npm", "install", "--no-audit", "--no-fund", "@azure-rest/ai-personalizer@1.0.0-beta.1"]
    (tmp_path / "package.json").write_text('{"name": "app", "private": true}')
    done = subprocess.run(
        [*install, *(f"@azure/{name}" for name in packages)], cwd=tmp_path, capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("npm's packages cannot be had here")
    httpx.put(f"{server}/v1/learners/food", json={"task": "choice"})
    for name, program, said in (("old.js", OLD, "^[ab]$"), ("new.js", NEW, "^[ab] 204 BadRequest$")):
        (tmp_path / name).write_text(program)
        ran = subprocess.run(
            ["node", name, server], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert re.match(said, ran.stdout.strip()), ran.stdout + ran.stderr
    assert httpx.get(f"{server}/v1/learners/food").json()["version"] == 2
