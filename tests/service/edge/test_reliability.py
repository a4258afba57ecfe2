"""What `GET .../reliability` counts: the decision that `predict` gave before each event, and nothing else."""

import random
from io import BytesIO
from itertools import pairwise

import orjson
import pytest

from feedrank import learners
from feedrank.service.contract.events import Event
from feedrank.service.runtime.learner_state import START, LearnerState

SINGLE = {"task": "multiclass"}
SETS = {"task": "multilabel"}


def events(n, sets=False, seed=3):
    chance = random.Random(seed)
    for i in range(n):
        label = chance.choice("aabc")
        words = {
            f"{label}{chance.randrange(4)}" if chance.random() < 0.7 else f"x{chance.randrange(9)}"
            for _ in range(3)
        }
        truth = {"labels": sorted({label, chance.choice("ad")})} if sets else {"label": label}
        yield {"features": sorted(words)}, truth, str(i)


def taught(client, name, spec, n, sets=False):
    """Decide, then learn; what was decided and what was true."""
    client.put(f"/v1/learners/{name}", json=spec)
    rows = []
    for instance, truth, id in events(n, sets):
        served = client.post(f"/v1/learners/{name}/predict", json={**instance, "remember": False}).json()
        done = client.post(
            f"/v1/learners/{name}/feedback", json={**instance, **truth, "feedback_id": id}
        ).json()
        rows.append((served, truth, done))
    return rows


def reliability(client, name):
    return client.get(f"/v1/learners/{name}/reliability").json()


def test_it_counts_the_decision_before_each_event(client):
    rows = taught(client, "m", SINGLE, 120)
    reply = reliability(client, "m")
    said = [(r["label"], r["ranking"][0].get("probability"), t["label"]) for r, t, _ in rows if r["label"]]
    for low in range(10):
        inside = [
            (p, label == truth)
            for label, p, truth in said
            if low <= 10 * p < low + 1 or (low == 9 and p == 1)
        ]
        row = next((bin for bin in reply["bins"] if bin["from"] == low / 10), None)
        assert (row is None) == (not inside)
        if row is not None:
            assert row["n"] == len(inside)
            assert row["right"] == pytest.approx(sum(right for _, right in inside) / len(inside))
            assert row["mean"] == pytest.approx(sum(p for p, _ in inside) / len(inside))
    for label, row in reply["labels"].items():
        true = [one for one in said if one[2] == label]
        named = [one for one in said if one[0] == label]
        taken = {}
        for one in true:
            if one[0] != label:
                taken[one[0]] = taken.get(one[0], 0) + 1
        assert row["taken_for"] == taken
        assert row["n"] == sum(t["label"] == label for _, t, _ in rows)
        if named:
            assert row["precision"] == pytest.approx(sum(one[2] == label for one in named) / len(named))
    assert reply["loss"] == pytest.approx(sum(done["loss"] for *_, done in rows) / len(rows))
    truths = [t["label"] for _, t, _ in rows]
    wrong_last = 1 + sum(a != b for a, b in pairwise(truths))
    assert reply["baselines"]["last"] == pytest.approx(wrong_last / len(rows))
    assert reply["loss"] < reply["baselines"]["commonest"] < 1
    shares = [row["share"] for row in reply["coverage"]]
    assert shares == sorted(shares, reverse=True)
    assert [row["precision"] for row in reply["coverage"]] == [0.9, 0.95, 0.99]
    assert all(row["proved"] is None or row["proved"] < 1 for row in reply["coverage"])


def test_sets_count_each_label_by_itself(client):
    rows = taught(client, "s", SETS, 80, sets=True)
    reply = reliability(client, "s")
    assert reply["stated"]
    for label in "abcd":
        named = [t for r, t, _ in rows if label in r["labels"]]
        assert reply["labels"][label]["precision"] == pytest.approx(
            sum(label in t["labels"] for t in named) / len(named)
        )
    assert 0 < reply["loss"] < reply["baselines"]["commonest"]


def test_a_retraction_rewinds_it(client):
    for name, n in (("long", 60), ("short", 59)):
        taught(client, name, SINGLE, n)
    assert client.post("/v1/learners/long/retract", json={"feedback_id": "59"}).status_code == 200
    again = reliability(client, "long")
    short = reliability(client, "short")
    assert {**again, "version": 0} == {**short, "version": 0}


def test_a_checkpoint_keeps_it_and_one_of_an_older_release_counts_from_there():
    state = LearnerState(learners.build(SINGLE))
    for version, (instance, truth, _) in enumerate(events(40), 1):
        state.apply(version, Event(truth, instance))
    data = BytesIO()
    digest = state.dump(data)
    data.seek(0)
    assert LearnerState.load(data, digest).judging.reliability == state.judging.reliability
    assert state.judging.reliability.events == 40
    magic, form, length = START.unpack(data.getvalue()[: START.size])
    head = orjson.loads(data.getvalue()[START.size : START.size + length])
    del head["judging"]
    short = orjson.dumps(head)
    older = START.pack(magic, form, len(short)) + short + data.getvalue()[START.size + length :]
    loaded = LearnerState.load(BytesIO(older), digest)
    assert (loaded.judging.reliability.since, loaded.judging.reliability.events) == (40, 0)


@pytest.mark.parametrize(
    "spec",
    [
        {
            "task": "binary",
            "labels": ["no", "yes"],
            "algorithm": "predtron",
            "loss": "reject",
            "reject_costs": {"yes": 0.1},
        },
        {"task": "ordinal", "labels": ["no", "yes"]},
        {"task": "multiclass", "algorithm": "predtron", "loss": "weighted", "weights": {"yes": 3}},
        {"task": "label-ranking"},
        {"task": "subset-ranking"},
        {"task": "choice"},
    ],
    ids=lambda spec: spec["task"],
)
def test_every_task_has_one(client, spec):
    client.put("/v1/learners/t", json=spec)
    empty = reliability(client, "t")
    assert (empty["events"], empty["bins"], empty["loss"]) == (0, [], None)
    items = {"items": [{"id": "a", "features": [1]}, {"id": "b", "features": [2]}]}
    event = {
        "subset-ranking": {**items, "relevance": {"a": 1}},
        "choice": {**items, "reward": 1, "served": {"id": "a", "probability": 0.5}},
    }.get(spec["task"], {"features": ["w"], "label": "yes"})
    for _ in range(3):
        assert client.post("/v1/learners/t/feedback", json=event).status_code == 200
    reply = reliability(client, "t")
    if spec["task"] in ("subset-ranking", "choice"):
        assert (reply["events"], reply["labels"]) == (0, {})
    else:
        assert reply["events"] == 3
        assert reply["labels"]["yes"]["n"] == 3
        last = reply["baselines"]["last"]
        assert last == (None if spec["task"] == "label-ranking" else pytest.approx(1 / 3))


def test_a_learner_that_came_as_a_snapshot_counts_from_there(client):
    taught(client, "m", SINGLE, 20)
    data = client.get("/v1/learners/m/snapshot").content
    assert client.put("/v1/learners/copy/snapshot", content=data).status_code == 201
    client.post("/v1/learners/copy/feedback", json={"features": ["a1"], "label": "a"})
    reply = reliability(client, "copy")
    assert (reply["since"], reply["events"]) == (20, 1)
