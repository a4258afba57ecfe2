"""Every call of the Personalizer SDKs: works, or says in their form what to call; docs/personalizer.md lists each."""

import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import feedrank

GUIDE = Path(feedrank.__file__).resolve().parent.parent / "docs" / "personalizer.md"
ROOT = "/at/food/personalizer"
ACTIONS = [
    {"id": "pasta", "features": [{"taste": "salty"}]},
    {"id": "cake", "features": [{"taste": "sweet"}], "excludedSlots": ["main"]},
    {"id": "soup", "features": []},
]
SLOTS = [
    {"id": "main", "features": [{"size": "large"}], "baselineAction": "pasta"},
    {"id": "side", "features": [], "excludedActions": ["soup"], "baselineAction": "cake"},
]
PAGE = {"contextFeatures": [{"time": "noon"}], "actions": ACTIONS, "slots": SLOTS}


@pytest.fixture
def food(make_client):
    client = make_client()
    client.put("/v1/learners/food", json={"task": "choice", "default_reward": 0, "wait": 600})
    return client


@pytest.fixture
def learned(food):
    food.post(f"{ROOT}/rank", json={"actions": ACTIONS, "eventId": "e0"})
    food.post(f"{ROOT}/events/e0/reward", json={"value": 1})
    return food


def version(client):
    return client.get("/v1/learners/food").json()["version"]


@pytest.mark.parametrize("at", ["", "/v1.0", "/v1.1-preview.3"])
def test_several_slots_are_ranked_activated_and_rewarded(food, at):
    body = {**PAGE, "eventId": "page 1", "deferActivation": True}
    ranked = food.post(f"{ROOT}{at}/multislot/rank", json=body)
    assert ranked.status_code == 201, ranked.text
    reply = ranked.json()
    chosen = {slot["id"]: slot["rewardActionId"] for slot in reply["slots"]}
    assert reply["eventId"] == "page 1"
    assert list(chosen) == ["main", "side"]
    assert chosen["main"] != "cake"
    assert chosen["side"] not in ("soup", chosen["main"])
    event = f"{ROOT}{at}/multislot/events/page%201"
    rewards = {"reward": [{"slotId": "main", "value": 1.5}, {"slotId": "side", "value": 0.5}]}
    assert food.post(f"{event}/reward", json=rewards).status_code == 204
    assert version(food) == 0
    assert food.post(f"{event}/activate").status_code == 204
    assert food.post(f"{event}/reward", json=rewards).status_code == 204
    assert version(food) == 1
    logged = food.get("/v1/learners/food/events").json()["events"][0]
    assert logged["truth"] == {"reward": {"main": 1.0, "side": 0.5}}
    bad = food.post(f"{event}/reward", json={"reward": [{"value": 1}]})
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "BadRequest")


def test_the_configuration_and_the_policy_are_views_of_the_spec(food):
    shown = food.get(f"{ROOT}/configurations/service").json()
    assert shown["rewardWaitTime"] == "PT600S"
    assert (shown["defaultReward"], shown["explorationPercentage"]) == (0.0, 0.02)
    assert (shown["learningMode"], shown["rewardAggregation"]) == ("Online", "earliest")
    changed = {
        **shown,
        "rewardWaitTime": "PT1H30M",
        "explorationPercentage": 0.2,
        "learningMode": "Apprentice",
    }
    reply = food.put(f"{ROOT}/configurations/service", json=changed)
    assert reply.status_code == 200, reply.text
    assert reply.json() == {**changed, "rewardWaitTime": "PT5400S"}
    spec = food.get("/v1/learners/food").json()["spec"]
    assert (spec["wait"], spec["floor"], spec["baseline"]) == (5400.0, 0.2, 0.1)
    arguments = {"name": "mine", "arguments": "--gamma 50 --forget auto"}
    assert (
        "--gamma 50.0 --floor 0.2"
        in food.put(f"{ROOT}/configurations/policy", json=arguments).json()["arguments"]
    )
    assert "--gamma 20.0 --floor 0.02" in food.delete(f"{ROOT}/configurations/policy").json()["arguments"]
    assert food.get(f"{ROOT}/configurations/policy").json()["name"] == "inverse-gap"
    for place, wrong in (
        ("service", {"rewardWaitTime": "ten minutes"}),
        ("service", {"rewardAggregation": "sum"}),
        ("service", {"learningMode": "LoggingOnly"}),
        ("service", {"explorationPercentage": 7}),
        ("policy", {"arguments": "--cb_explore_adf"}),
    ):
        refused = food.put(f"{ROOT}/configurations/{place}", json=wrong)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "BadRequest")
    assert food.get("/v1/learners/food").json()["spec"]["wait"] == 5400.0


def test_a_spec_with_rewards_behind_it_is_kept_and_the_reply_names_our_calls(learned):
    shown = learned.get(f"{ROOT}/configurations/service").json()
    assert learned.put(f"{ROOT}/configurations/service", json=shown).json() == shown
    refused = learned.put(f"{ROOT}/configurations/service", json={**shown, "explorationPercentage": 0.5})
    assert refused.status_code == 400
    assert "PUT /v1/aliases/food" in refused.json()["error"]["message"]
    assert version(learned) == 1


def test_a_model_is_exported_reset_and_imported(learned):
    file = learned.get(f"{ROOT}/model?signed=true").content
    span = learned.get(f"{ROOT}/model/properties").json()
    assert set(span) == {"creationTime", "lastModifiedTime"}
    assert set(learned.get(f"{ROOT}/logs/properties").json()["dateRange"]) == {"from", "to"}
    assert learned.delete(f"{ROOT}/model").status_code == 204
    assert version(learned) == 0
    assert learned.get(f"{ROOT}/model/properties").json() == {}
    for damaged in (b"nothing", file[:-1]):
        assert learned.put(f"{ROOT}/model", content=damaged).status_code == 400
    assert learned.put(f"{ROOT}/model", content=file).status_code == 204
    assert version(learned) == 1
    assert learned.get(f"{ROOT}/model").content == file


ELSEWHERE = [
    ("PUT", "/evaluations/1", "/v1/learners/food/evaluate"),
    ("POST", "/evaluations", "/v1/learners/food/evaluate"),
    ("GET", "/evaluations/1", "/v1/learners/food/evaluate"),
    ("DELETE", "/evaluations/1", "/v1/learners/food/evaluate"),
    ("GET", "/evaluations", "/v1/learners/food/evaluate"),
    ("POST", "/configurations/applyFromEvaluation", "/v1/aliases/food"),
    ("PUT", "/featureImportances/1", "explain"),
    ("GET", "/featureImportances/1", "explain"),
    ("GET", "/featureImportances", "explain"),
    ("DELETE", "/featureImportances/1", "explain"),
    ("DELETE", "/logs", "/v1/learners/food/erase"),
    ("POST", "/logs/interactions", "/v1/learners/food/feedback"),
    ("POST", "/logs/observations", "/v1/learners/food/feedback"),
]


def test_what_has_no_counterpart_names_our_call(food):
    for start in ("", "/v1.1-preview.3"):
        for method, path, names in ELSEWHERE:
            reply = food.request(method, f"{ROOT}{start}{path}")
            assert reply.status_code == 400
            assert reply.json()["error"]["code"] == "BadRequest"
            assert names in reply.json()["error"]["message"]


def test_a_call_that_never_was_is_not_found_in_their_form(food):
    assert food.get(f"{ROOT}/nothing").json()["error"]["code"] == "ResourceNotFound"
    dropped = food.post("/at/food", json={"actions": ACTIONS})
    assert dropped.status_code == 404
    assert "the host alone" in dropped.json()["error"]["message"]


def test_a_key_with_one_prefix_names_the_learner_where_the_address_does_not(make_client, tmp_path):
    from feedrank.service.http.keyring import add_key

    keys = tmp_path / "keys"
    admin, own = add_key(str(keys), ["admin"], []), add_key(str(keys), ["predict"], ["food"])
    client = make_client(keys_file=str(keys))
    client.put("/v1/learners/food", json={"task": "choice"}, headers={"authorization": f"Bearer {admin}"})
    for key, status in ((own, 201), (admin, 404)):
        header = {"Ocp-Apim-Subscription-Key": key}
        body = {"actions": ACTIONS}
        assert client.post("/personalizer/v1.0/rank", json=body, headers=header).status_code == status
    header = {"Ocp-Apim-Subscription-Key": own}
    assert client.delete("/at/food/personalizer/model", headers=header).status_code == 403


@pytest.mark.filterwarnings("ignore")
def test_every_method_of_the_preview_sdk_works_or_says_what_to_call(food):
    pytest.importorskip("azure.ai.personalizer")
    from azure.ai.personalizer import PersonalizerAdministrationClient, PersonalizerClient
    from azure.core.credentials import AzureKeyCredential
    from azure.core.exceptions import HttpResponseError

    start = f"{str(food.base_url).rstrip('/')}/at/food", AzureKeyCredential("key")
    calls, admin = PersonalizerClient(*start), PersonalizerAdministrationClient(*start)
    works, refused = {}, {}

    def attempt(method, *arguments, **named):
        name = method.__name__
        try:
            done = method(*arguments, **named)
            works[name] = list(done) if name.startswith("list_") else done
        except HttpResponseError as error:
            refused[name] = error.message

    config = admin.get_service_configuration()
    attempt(admin.get_service_configuration)
    attempt(admin.update_service_configuration, {**config, "explorationPercentage": 0.1})
    attempt(admin.get_policy)
    attempt(admin.update_policy, works["get_policy"])
    attempt(admin.reset_policy)
    attempt(calls.rank, {"actions": ACTIONS, "eventId": "one"})
    attempt(calls.reward, "one", {"value": 1.0})
    attempt(calls.activate, "one")
    attempt(calls.rank_multi_slot, {**PAGE, "eventId": "two"})
    attempt(calls.reward_multi_slot, "two", {"reward": [{"slotId": "main", "value": 1.0}]})
    attempt(calls.activate_multi_slot, "two")
    attempt(admin.export_model)
    model = b"".join(works["export_model"])
    attempt(admin.reset_model)
    attempt(admin.import_model, io.BytesIO(model))
    attempt(admin.get_model_properties)
    attempt(admin.get_log_properties)
    attempt(admin.delete_logs)
    attempt(admin.create_evaluation, "1", {"startTime": "x", "endTime": "y", "policies": []})
    day = datetime(2026, 1, 1, tzinfo=UTC)
    attempt(admin.get_evaluation, "1", start_time=day, end_time=day)
    attempt(admin.list_evaluations)
    attempt(admin.delete_evaluation, "1")
    attempt(admin.apply_from_evaluation, {"evaluationId": "1", "policyName": "p"})
    attempt(admin.create_feature_importance, "1", {"startTime": "x", "endTime": "y"})
    attempt(admin.get_feature_importance, "1")
    attempt(admin.list_feature_importances)
    attempt(admin.delete_feature_importance, "1")
    public = {
        name
        for client in (calls, admin)
        for name in dir(client)
        if not name.startswith("_") and name not in ("close", "send_request")
    }
    assert works.keys() | refused.keys() == public
    assert len(public) == 26
    assert all("/v1/" in message and "BadRequest" in message for message in refused.values()), refused
    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| (works|names our call) \|", GUIDE.read_text(), flags=re.M))
    assert listed == dict.fromkeys(works, "works") | dict.fromkeys(refused, "names our call")
    assert food.get("/v1/learners/food").json()["version"] == 2
