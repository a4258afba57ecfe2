"""The state is a pure fold: exact through JSON at any place, equal to the vectorised watch, and fair to heavy units."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.service.errors import Unprocessable
from feedrank.service.experiments import plan as plans
from feedrank.service.experiments.state import State
from feedrank.service.experiments.verdict import report
from feedrank.service.experiments.watch import NEVER, split_verdicts

LISTS: dict[str, Any] = {"task": "subset-ranking", "algorithm": "listnet"}
CLASSES: dict[str, Any] = {"task": "multiclass", "algorithm": "predtron", "loss": "zero-one"}


def plan(arms: int = 2, spec: dict[str, Any] = CLASSES, **given: Any) -> plans.Plan:
    names = [f"arm{i}" for i in range(arms)]
    return plans.read("test", {"arms": names, **given}, [spec] * (arms + len(given.get("shadow", []))))


def feedback(arm: int, value: float, unit: int | None = None) -> dict[str, Any]:
    return {"kind": "feedback", "arm": arm, "value": value, "unit": unit}


EVENT = st.one_of(
    st.builds(feedback, st.integers(0, 2), st.floats(0, 1), st.none() | st.integers(0, 2**64 - 1)),
    st.sampled_from([{"kind": "pause"}, {"kind": "resume"}, {"kind": "promote", "arm": "arm1"}]),
    st.just({"kind": "feedback", "arm": None, "value": None, "shadow": [0.5]}),
)


@given(st.lists(EVENT, max_size=20), st.data())
def test_saving_and_loading_anywhere_changes_nothing(
    events: list[dict[str, Any]], data: st.DataObject
) -> None:
    experiment = plan(3, shadow=["quiet"], weights={"arm0": 1, "arm1": 2, "arm2": 1})
    cut = data.draw(st.integers(0, len(events)))
    whole, part = State.new(experiment), State.new(experiment)
    for event in events:
        whole.apply(experiment, event)
    for event in events[:cut]:
        part.apply(experiment, event)
    part = State.from_json(orjson.loads(orjson.dumps(part.to_json())))
    for event in events[cut:]:
        part.apply(experiment, event)
    assert part == whole
    assert orjson.dumps(part.to_json()) == orjson.dumps(whole.to_json())
    orjson.dumps(report(experiment, whole))


def test_the_fold_and_the_watch_agree() -> None:
    rng = np.random.default_rng(0)
    runs, events = 5, 400
    first = rng.random((runs, events)) < 0.3
    y = (rng.random((runs, events)) < np.where(first, 0.9, 0.5)).astype(float)
    found = split_verdicts(y, first, 0.9, 0.3)
    assert (found != NEVER).any()
    experiment = plan(weights={"arm0": 3, "arm1": 7}, confidence=0.9, measure="reward")
    for run in range(runs):
        state, decided = State.new(experiment), NEVER
        for t in range(events):
            state.apply(experiment, feedback(int(not first[run, t]), y[run, t]))
            told = report(experiment, state)
            if decided == NEVER and told["differences"][0]["better"]:
                decided = t + 1
                assert told["differences"][0]["better"] == "arm0"
        assert decided == found[run]


def test_a_unit_counts_once_so_that_heavy_units_cannot_fake_a_difference() -> None:
    rng = np.random.default_rng(0)
    false = {"units": 0, "rounds": 0}
    for count in false:
        experiment = plan(measure="reward", count=count)
        for run in range(40):
            state = State.new(experiment)
            arms, tastes = rng.integers(2, size=20), rng.integers(2, size=20)
            for unit in rng.integers(20, size=600):
                state.apply(experiment, feedback(int(arms[unit]), float(tastes[unit]), run * 100 + int(unit)))
            false[count] += report(experiment, state)["differences"][0]["better"] is not None
    assert false["units"] <= 2
    assert false["rounds"] > 10  # why it is not the default
    assert sum(tally.units for tally in state.arms) == 20
    assert sum(tally.rounds for tally in state.arms) == 600


def test_the_best_of_three_is_named_and_until_then_the_traffic_it_takes() -> None:
    rng = np.random.default_rng(0)
    experiment = plan(3)  # a loss: lower is better
    state = State.new(experiment)
    rates = [0.5, 0.2, 0.5]
    seen = []
    for _ in range(3000):
        arm = int(rng.integers(3))
        state.apply(experiment, feedback(arm, float(rng.random() < rates[arm])))
        if state.events % 100 == 0:
            seen.append(report(experiment, state))
    assert seen[0]["verdict"] == "undecided"
    assert seen[0]["more_rounds"] > 0
    assert seen[-1]["verdict"] == "arm1"
    assert seen[-1]["more_rounds"] == 0
    assert [d["better"] for d in seen[-1]["differences"]] == ["arm1", None, "arm1"]
    for told in seen[-1]["differences"]:
        i, j = (int(name[-1]) for name in told["arms"])
        assert told["lower"] <= rates[i] - rates[j] <= told["upper"]
    decided = next(i for i, told in enumerate(seen) if told["verdict"] == "arm1")
    foretold = 500 + seen[4]["more_rounds"]
    assert foretold / 3 <= 100 * (decided + 1) <= foretold * 3


def test_a_lost_arm_spoils_the_verdict() -> None:
    experiment = plan(measure="reward")
    state = State.new(experiment)
    for i in range(1000):
        state.apply(experiment, feedback(0, 1.0))
        if i % 2:
            state.apply(experiment, feedback(1, 0.0))
    told = report(experiment, state)
    assert told["differences"][0]["better"] == "arm0"
    assert told["sample_ratio"]["mismatch"] is True
    assert told["verdict"] == "undecided"
    assert "weights" in told["reason"]


def test_stopping_freezes_and_pausing_does_not_lose_what_was_served() -> None:
    experiment = plan(measure="reward")
    state = State.new(experiment)
    for event in (feedback(0, 1.0), {"kind": "pause"}, feedback(0, 1.0), {"kind": "stop"}, feedback(0, 1.0)):
        state.apply(experiment, event)
    assert (state.arms[0].rounds, state.status, state.events) == (2, "stopped", 5)
    state.apply(experiment, {"kind": "resume"})
    assert state.status == "stopped"


def test_interleaved_rounds_move_every_pair() -> None:
    experiment = plan(spec=LISTS, method="interleave")
    state = State.new(experiment)
    for _ in range(60):
        state.apply(experiment, {"kind": "feedback", "unit": 7, "credits": [1.0, 0.0], "wins": [1.0]})
    told = report(experiment, state)
    assert told["verdict"] == "arm0"
    assert told["sample_ratio"] is None
    assert told["arms"]["arm0"] == {"units": 1, "rounds": 60, "mean": 1.0}


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"arms": ["a"]}, "/arms"),
        ({"arms": ["a", "a"]}, "/arms"),
        ({"arms": ["a", "undecided"]}, "/arms"),
        ({"arms": "ab"}, "/arms"),
        ({"arms": ["a", "b"], "what": 1}, "/what"),
        ({"arms": ["a", "b"], "method": "coin"}, "/method"),
        ({"arms": ["a", "b"], "method": "interleave"}, "/method"),
        ({"arms": ["a", "b"], "measure": "ndcg"}, "/measure"),
        ({"arms": ["a", "b"], "measure": "clicks@0"}, "/measure"),
        ({"arms": ["a", "b"], "confidence": 1}, "/confidence"),
        ({"arms": ["a", "b"], "confidence": True}, "/confidence"),
        ({"arms": ["a", "b"], "share": 0}, "/share"),
        ({"arms": ["a", "b"], "weights": {"a": 1}}, "/weights"),
        ({"arms": ["a", "b"], "weights": {"a": 1, "b": 0}}, "/b"),
        ({"arms": ["a", "b"], "learn": "none"}, "/learn"),
        ({"arms": ["a", "b"], "seed": 1}, "/seed"),
        ({"arms": ["a", "b"], "shadow": ["a"]}, "/arms"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_place(given: dict[str, Any], place: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        plans.read("test", given, [CLASSES] * 3)
    assert refused.value.errors[0]["pointer"] == place


def test_arms_must_do_the_same() -> None:
    with pytest.raises(Unprocessable, match="does multilabel"):
        plans.read("test", {"arms": ["a", "b"]}, [CLASSES, {**CLASSES, "task": "multilabel"}])
    for wrong in ({"learn": "served"}, {"weights": {"a": 1, "b": 2}}, {"measure": "reward"}):
        with pytest.raises(Unprocessable):
            plans.read("test", {"arms": ["a", "b"], "method": "interleave", **wrong}, [LISTS, LISTS])


def test_a_full_definition_reads_as_itself() -> None:
    first = plan(3, weights={"arm0": 1, "arm1": 2, "arm2": 1}, share=0.5, learn="served", alias="search")
    again = plans.read("test", first.to_json(), [CLASSES] * 3)
    assert again == first
