"""Azure Personalizer's calls: both published SDKs run unchanged, and what was ignored there is ignored here."""

from urllib.parse import quote

import pytest
from waiting import until

BODY = {
    "contextFeatures": [{"user": {"age": 30, "tags": ["new", "eu"]}}, {"time": "morning"}],
    "actions": [
        {"id": "pasta", "features": [{"taste": "salty", "spice": 0.2}]},
        {"id": "cake", "features": [{"taste": "sweet"}, {"sugar": {"grams": 40}}]},
        {"id": "soup", "features": []},
    ],
    "excludedActions": ["soup"],
    "eventId": "visit-1",
}


@pytest.fixture
def food(make_client):
    client = make_client(personalizer="food")
    assert client.put("/v1/learners/food", json={"task": "choice"}).status_code == 201
    return client


def version(client):
    return client.get("/v1/learners/food").json()["version"]


def test_nested_features_are_flattened_by_their_path():
    from feedrank.service.http.routes.personalizer_calls import flat

    assert flat(BODY["contextFeatures"]) == {
        "user.age": 30.0,
        "user.tags=new": 1.0,
        "user.tags=eu": 1.0,
        "time=morning": 1.0,
    }
    assert flat(None) == {}


def test_rank_reward_and_what_is_ignored(food):
    ranked = food.post("/personalizer/v1.0/rank", json=BODY)
    assert ranked.status_code == 201
    reply = ranked.json()
    assert reply["eventId"] == "visit-1"
    assert reply["rewardActionId"] == reply["ranking"][0]["id"]
    shares = {entry["id"]: entry["probability"] for entry in reply["ranking"]}
    assert shares["soup"] == 0.0
    assert sum(shares.values()) == pytest.approx(1)
    assert food.post("/personalizer/v1.0/rank", json=BODY).json() == reply
    sent = [food.post("/personalizer/v1.0/events/visit-1/reward", json={"value": v}) for v in (1, 1, 0.2)]
    assert [one.status_code for one in sent] == [204, 204, 204]
    assert food.post("/personalizer/v1.0/events/unknown/reward", json={"value": 1}).status_code == 204
    assert version(food) == 1


def test_an_event_id_may_hold_slashes_and_blanks(food):
    for number, at in enumerate(("/personalizer/v1.0", "/at/food/personalizer/v1.0")):
        event = f"shop/{number} ä/reward"
        body = {**BODY, "eventId": event, "deferActivation": True}
        assert food.post(f"{at}/rank", json=body).status_code == 201
        assert food.post(f"{at}/events/{quote(event, safe='')}/activate").status_code == 204
        sent = food.post(f"{at}/events/{quote(event, safe='')}/reward", json={"value": 1})
        assert sent.status_code == 204
        assert version(food) == number + 1


def test_a_deferred_choice_counts_only_once_it_is_activated(food):
    body = {**BODY, "eventId": "later", "deferActivation": True}
    assert food.post("/at/food/personalizer/v1.0/rank", json=body).status_code == 201
    assert food.post("/at/food/personalizer/v1.0/events/later/reward", json={"value": 1}).status_code == 204
    assert version(food) == 0
    for _ in range(2):
        assert food.post("/at/food/personalizer/v1.0/events/later/activate").status_code == 204
    assert food.post("/at/food/personalizer/v1.0/events/later/reward", json={"value": 1}).status_code == 204
    assert version(food) == 1
    assert food.post("/at/food/personalizer/v1.0/events/none/activate").status_code == 204


def test_a_deferred_choice_gets_no_default_reward_before_it_is_activated(make_client):
    client = make_client()
    client.put("/v1/learners/food", json={"task": "choice", "default_reward": 0, "wait": 0.2})
    for event, deferred in (("now", False), ("aside", True)):
        body = {**BODY, "eventId": event, "deferActivation": deferred}
        assert client.post("/at/food/personalizer/v1.0/rank", json=body).status_code == 201
    until(lambda: version(client) >= 1)
    assert version(client) == 1
    client.post("/at/food/personalizer/v1.0/events/aside/activate")
    until(lambda: version(client) == 2)


def test_errors_are_in_personalizers_words(food):
    bad = food.post("/personalizer/v1.0/rank", json={"actions": [{"id": "a"}, {"id": "a"}]})
    assert bad.status_code == 400
    assert bad.json()["error"]["code"] == "BadRequest"
    assert "duplicated" in bad.json()["error"]["message"] or "id" in bad.json()["error"]["message"]
    assert (
        food.post("/at/nobody/personalizer/v1.0/rank", json=BODY).json()["error"]["code"]
        == "ResourceNotFound"
    )
    assert food.post("/personalizer/v1.0/events/x/reward", json={"value": "much"}).status_code == 400


def test_the_key_comes_in_their_header(make_client, tmp_path):
    from feedrank.service.http.keyring import add_key

    keys = tmp_path / "keys"
    secret = add_key(str(keys), ["predict", "feedback"], ["fo"])
    admin = add_key(str(keys), ["admin"], [])
    client = make_client(keys_file=str(keys))
    client.put("/v1/learners/food", json={"task": "choice"}, headers={"authorization": f"Bearer {admin}"})
    assert client.post("/at/food/personalizer/v1.0/rank", json=BODY).status_code == 401
    header = {"Ocp-Apim-Subscription-Key": secret}
    assert client.post("/at/food/personalizer/v1.0/rank", json=BODY, headers=header).status_code == 201
    assert client.post("/at/bar/personalizer/v1.0/rank", json=BODY, headers=header).status_code == 403


@pytest.mark.filterwarnings("ignore")
def test_the_released_sdk_runs_unchanged(food):
    personalizer = pytest.importorskip("azure.cognitiveservices.personalizer")
    from azure.cognitiveservices.personalizer import models
    from msrest.authentication import CognitiveServicesCredentials

    client = personalizer.PersonalizerClient(
        str(food.base_url).rstrip("/"), CognitiveServicesCredentials("key")
    )
    request = models.RankRequest(
        actions=[
            models.RankableAction(id="pasta", features=[{"taste": "salty"}]),
            models.RankableAction(id="cake", features=[{"taste": "sweet"}]),
        ],
        context_features=[{"time": "morning"}],
        event_id="sdk-1",
        defer_activation=True,
    )
    response = client.rank(rank_request=request)
    assert response.reward_action_id in ("pasta", "cake")
    client.events.activate(event_id=response.event_id)
    client.events.reward(event_id=response.event_id, value=1.0)
    assert version(food) == 1
    with pytest.raises(models.ErrorResponseException):
        client.rank(rank_request=models.RankRequest(actions=[], event_id="sdk-2"))


@pytest.mark.filterwarnings("ignore")
def test_the_preview_sdk_runs_unchanged(food):
    pytest.importorskip("azure.ai.personalizer")
    from azure.ai.personalizer import PersonalizerClient
    from azure.core.credentials import AzureKeyCredential

    client = PersonalizerClient(str(food.base_url).rstrip("/"), AzureKeyCredential("key"))
    actions = [
        {"id": "pasta", "features": [{"taste": "salty"}]},
        {"id": "cake", "features": [{"taste": "sweet"}]},
    ]
    response = client.rank({"actions": actions, "contextFeatures": [{"time": "night"}], "eventId": "new-1"})
    assert response["rewardActionId"] in ("pasta", "cake")
    client.reward(response["eventId"], {"value": 0.5})
    client.activate(response["eventId"])
    assert version(food) == 1
