"""`per` as a pure fold: every figure is that of a brute-force computation, through snapshots, retractions and churn."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.experiments import plan as plans
from feedrank.service.experiments.state import State
from feedrank.service.experiments.verdict import report

SPEC: dict[str, Any] = {"task": "multiclass", "algorithm": "predtron", "loss": "zero-one"}
WINDOW = 10.0
RULES = [{"value": "mean"}, {"value": "total", "cap": 4}, {"value": "any"}, {"value": "returns"}]
Json = dict[str, Any]


def plan(per: Json, **fields: Any) -> plans.Plan:
    definition = {"arms": ["a", "b"], "measure": "reward", "per": {"window": WINDOW, **per}, **fields}
    return plans.read("test", definition, [SPEC, SPEC])


def exposed(at: float, unit: str, arm: int, **more: Any) -> tuple[float, Json]:
    return at, {"kind": "exposed", "unit": unit, "arm": arm, **more}


def valued(at: float, unit: str, arm: int, value: float, measure: int = 0) -> tuple[float, Json]:
    return at, {"kind": "value", "unit": unit, "arm": arm, "measure": measure, "value": value}


def folded(experiment: plans.Plan, log: list[tuple[float, Json]]) -> State:
    state = State.new(experiment)
    for at, event in log:
        state.apply(experiment, event, at)
    return state


def brute(
    log: list[tuple[float, Json]], per: Json, measure: int = 0
) -> dict[str, tuple[int, float, float, bool]]:
    """unit: (arm, first exposure, value, whether it has counted), from the whole log at once."""
    end, units = log[-1][0], dict[str, tuple[int, float, float, bool]]()
    for first, event in log:
        unit = event.get("unit")
        if event["kind"] not in ("exposed", "feedback") or unit in units:
            continue
        within = [(at, one) for at, one in log if one.get("unit") == unit and first <= at < first + WINDOW]
        values = [one["value"] for _, one in within if one["kind"] == "value" and one["measure"] == measure]
        values += [one["value"] for _, one in within if one["kind"] == "feedback" and measure == 0]
        shown = sum(one["kind"] == "exposed" for _, one in within) - (event["kind"] == "exposed")
        value = {
            "mean": sum(values) / len(values) if values else 0.0,
            "total": min(max(sum(values), 0.0), per.get("cap", 1)),
            "any": float(any(value > 0 for value in values)),
            "returns": float(shown > 0),
        }[per["value"]]
        units[unit] = event["arm"], first, value, first + WINDOW <= end
    return units


EVENTS = st.lists(
    st.tuples(
        st.floats(0, 9),
        st.sampled_from(["exposed", "exposed", "value", "feedback"]),
        st.integers(0, 7),
        st.sampled_from([0.0, 0.25, 1.0]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)


def log_of(drawn: list[tuple[float, str, int, float, int]]) -> list[tuple[float, Json]]:
    """A unit's arm is the parity of its number; values of units that were never exposed come as well."""
    log, now, seen = list[tuple[float, Json]](), 100.0, set[int]()
    for pause, kind, number, value, measure in drawn:
        now += pause
        unit, arm = f"u{number}", number % 2
        if kind == "value":
            if number in seen:
                log.append(valued(now, unit, arm, value, measure))
            continue
        seen.add(number)
        event = {"kind": kind, "unit": unit, "arm": arm}
        log.append((now, event if kind == "exposed" else {**event, "value": value, "guards": [None]}))
    return log


@pytest.mark.parametrize("per", RULES, ids=lambda per: per["value"])
@given(drawn=EVENTS, data=st.data())
@settings(max_examples=60)
def test_every_figure_is_that_of_brute_force(per: Json, drawn: Any, data: st.DataObject) -> None:
    experiment = plan(per, guardrails=[{"measure": "cost:refunds", "limit": 0.1, "value": "any"}])
    log = log_of(drawn)
    if not log:
        return
    cut = data.draw(st.integers(0, len(log)))
    state = folded(experiment, log[:cut])
    saved = orjson.loads(orjson.dumps(state.to_json()))
    state = State.from_json(experiment, saved)
    for at, event in log[cut:]:
        state.apply(experiment, event, at)
    assert state.to_json() == folded(experiment, log).to_json()
    table, wanted = state.units, brute(log, per)
    guard = brute(log, {"value": "any"}, 1)
    assert table is not None
    assert list(table.rows) == list(wanted)
    for unit, row in table.rows.items():
        arm, first, value, counted = wanted[unit]
        assert (table.arms[row], table.first[row], row < table.closed) == (arm, first, counted)
        assert table.value(row, 0, experiment.rules[0]) * experiment.scale == pytest.approx(value)
        assert table.value(row, 1, experiment.rules[1]) == guard[unit][2]
    shown = report(experiment, state)
    for arm, name in enumerate("ab"):
        own = [value for number, _, value, counted in wanted.values() if number == arm and counted]
        assert shown["arms"][name]["units"] == len(own)
        assert shown["arms"][name]["exposed"] == sum(number == arm for number, *_ in wanted.values())
        mean = shown["arms"][name]["mean"]
        assert mean == (pytest.approx(sum(own) / len(own)) if own else None)
    assert shown["waiting"] == sum(not counted for *_, counted in wanted.values())


def test_a_value_at_the_end_of_the_window_comes_too_late() -> None:
    experiment = plan({"value": "any"})
    state = folded(
        experiment,
        [
            exposed(0.0, "early", 0),
            exposed(0.0, "late", 1),
            valued(WINDOW - 1e-6, "early", 0, 1.0),
            valued(WINDOW, "late", 1, 1.0),
        ],
    )
    shown = report(experiment, state)
    assert [shown["arms"][name]["mean"] for name in "ab"] == [1.0, 0.0]


def test_a_clock_that_goes_back_closes_no_window_twice() -> None:
    experiment = plan({"value": "mean"})
    log = [exposed(50.0, "u", 0), exposed(20.0, "v", 1), (61.0, {"kind": "tick", "at": 61.0})]
    state = folded(experiment, log)
    assert state.units is not None
    assert list(state.units.first) == [50.0, 50.0]
    assert state.units.closed == 2


@pytest.mark.parametrize("leaves", [0.05, 0.2])
def test_an_arm_that_drives_its_users_away_is_never_named(leaves: float) -> None:
    """Equal chances of success; users of the second arm leave after a failure. By their rounds it would look better."""
    experiment = plan({"value": "total", "cap": 12})
    rng, named = np.random.default_rng(1), list[str]()
    for _ in range(10):
        state, at = State.new(experiment), 0.0
        for number in range(400):
            at += 1.0
            arm = int(rng.integers(2))
            state.apply(experiment, {"kind": "exposed", "unit": str(number), "arm": arm}, at)
            for step in range(10):
                success = float(rng.random() < 0.5)
                event = {"kind": "value", "unit": str(number), "arm": arm, "measure": 0, "value": success}
                state.apply(experiment, event, at + step / 100)
                if arm and not success and rng.random() < leaves:
                    break
        state.apply(experiment, {"kind": "tick"}, at + WINDOW)
        named.append(report(experiment, state)["verdict"])
    assert "b" not in named
    assert leaves < 0.2 or named.count("a") >= 8


def test_days_and_segments_are_told_apart() -> None:
    experiment = plan({"value": "mean"}, segments={"country": ["DE"], "device": []})
    log = []
    for number in range(40):
        at = number * 86400.0 / 10
        country = "DE" if number % 4 < 2 else "FR"
        log.append(exposed(at, str(number), number % 2, segments=[country, None]))
        log.append(valued(at, str(number), number % 2, float(number % 2)))
    log.append((9e9, {"kind": "tick", "at": 9e9}))
    shown = report(experiment, folded(experiment, log))
    assert [day["day"] for day in shown["days"]] == [0, 1, 2, 3]
    assert all(
        day["units"] == {"a": 5, "b": 5} and day["means"] == {"a": 0.0, "b": 1.0} for day in shown["days"]
    )
    (own,) = shown["segments"]
    assert (own["segment"], own["value"], own["units"], own["means"]) == ("country", "DE", 20, [0.0, 1.0])
    assert own["lower"] <= -1.0 <= own["upper"]
    assert shown["sentence"].startswith("b is better than a by ") == (shown["verdict"] == "b")


@pytest.mark.parametrize("value", ["total", "returns"])
def test_what_came_by_day_since_the_exposure_is_of_those_who_are_in_so_long(value: str) -> None:
    day = 86400.0
    experiment = plan({"window": 3 * day, "value": value} | ({"cap": 9} if value == "total" else {}))
    log = [exposed(0.0, "u", 0), exposed(10.0, "v", 1), exposed(1.5 * day, "w", 0)]
    for at, unit, arm in ((5.0, "u", 0), (1.1 * day, "u", 0), (1.6 * day, "w", 0), (2.5 * day, "v", 1)):
        log.append(exposed(at, unit, arm) if value == "returns" else valued(at, unit, arm, 2.0))
    log.sort(key=lambda each: each[0])
    shown = report(experiment, folded(experiment, log))["ages"]
    one = 1.0 if value == "returns" else 2.0
    assert [each["units"] for each in shown] == [{"a": 2, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 1}]
    assert [each["means"] for each in shown] == [
        {"a": one, "b": 0.0},
        {"a": one / 2, "b": 0.0},
        {"a": 0.0, "b": one},
    ]


RATIO = {"value": "ratio", "cap": 4, "over": {"measure": "metric:visits", "cap": 8}}


def shop(
    chance: np.random.Generator, units: int, rates: tuple[float, float], visits: tuple[float, float]
) -> list[tuple[float, Json]]:
    """Users who buy on a share of their visits that is their own."""
    log, at = list[tuple[float, Json]](), 0.0
    for number in range(units):
        at += 1.0
        unit, arm = f"u{number}", int(chance.integers(2))
        came = 1 + int(chance.poisson(visits[arm]))
        own = min(1.0, rates[arm] * 2 * float(chance.beta(2, 2)))
        log.append(exposed(at, unit, arm))
        log.append(valued(at, unit, arm, float(chance.binomial(came, own)), 0))
        log.append(valued(at, unit, arm, float(came), 1))
    return [*log, (at + WINDOW, {"kind": "tick"})]


def test_a_ratio_is_of_the_totals_and_its_interval_holds_it() -> None:
    experiment = plan(RATIO)
    log = shop(np.random.default_rng(3), 3000, (0.15, 0.35), (2.0, 2.0))
    state = folded(experiment, log)
    assert (
        State.from_json(experiment, orjson.loads(orjson.dumps(state.to_json()))).to_json() == state.to_json()
    )
    shown = report(experiment, state)
    units, totals = brute(log, {"value": "total", "cap": 4}), brute(log, {"value": "total", "cap": 8}, 1)
    for arm, name in enumerate("ab"):
        bought = sum(value for number, _, value, _ in units.values() if number == arm)
        came = sum(value for number, _, value, _ in totals.values() if number == arm)
        assert shown["arms"][name]["mean"] == pytest.approx(bought / came)
    (pair,) = shown["differences"]
    assert pair["difference"] == pytest.approx(pair["means"][0] - pair["means"][1])
    assert pair["lower"] < pair["difference"] < pair["upper"] < 0.0
    assert pair["lower"] <= -0.2 <= pair["upper"]
    assert (shown["verdict"], shown["more_units"]) == ("b", 0)
    assert shown["sentence"].startswith("b is better than a by ")
    assert shown["measure_in_words"].startswith("reward per visits, totals of all units")
    assert [day["means"] for day in shown["days"]] == [
        pytest.approx({"a": pair["means"][0], "b": pair["means"][1]})
    ]


def test_who_only_comes_more_often_has_no_better_ratio() -> None:
    experiment, chance = plan(RATIO), np.random.default_rng(8)
    for _ in range(5):
        shown = report(experiment, folded(experiment, shop(chance, 600, (0.3, 0.3), (1.0, 4.0))))
        assert shown["verdict"] == "undecided"
        (pair,) = shown["differences"]
        assert pair["lower"] < 0.0 < pair["upper"]


def test_a_ratio_without_anything_to_divide_by_is_open() -> None:
    experiment = plan(RATIO)
    (pair,) = report(experiment, State.new(experiment))["differences"]
    assert (pair["means"], pair["difference"], pair["lower"], pair["upper"]) == (
        [None, None],
        None,
        -4.0,
        4.0,
    )
    log = [exposed(0.0, "u", 0), exposed(1.0, "v", 1), valued(2.0, "u", 0, 3.0), (99.0, {"kind": "tick"})]
    (pair,) = report(experiment, folded(experiment, log))["differences"]
    assert (pair["means"], pair["lower"], pair["upper"], pair["better"]) == ([None, None], -4.0, 4.0, None)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"per": {"window": 9, "value": "ratio"}}, "/per/cap"),
        ({"per": {"window": 9, "value": "ratio", "cap": 2}}, "/per/over"),
        ({"per": {"window": 9, "value": "ratio", "cap": 2, "over": {"measure": "metric:v"}}}, "/per/over"),
        ({"per": {"window": 9, **RATIO, "over": {"measure": "metric:v", "cap": 0}}}, "/per/over/cap"),
        ({"per": {"window": 9, **RATIO, "over": {"measure": "reward", "cap": 1}}}, "/per/over/measure"),
        ({"per": {"window": 9, "value": "any", "over": {"measure": "metric:v", "cap": 1}}}, "/per/over"),
        ({"per": {"window": 9, **RATIO}, "segments": {"c": ["DE"]}}, "/segments"),
        (
            {"per": {"window": 9}, "guardrails": [{"measure": "reward", "value": "ratio", "cap": 2}]},
            "/guardrails/0/value",
        ),
        ({"per": {"value": "mean"}}, "/per/window"),
        ({"per": {"window": 0}}, "/per/window"),
        ({"per": {"window": True}}, "/per/window"),
        ({"per": {"window": float("nan")}}, "/per/window"),
        ({"per": {"window": 9, "value": "median"}}, "/per/value"),
        ({"per": {"window": 9, "value": "total"}}, "/per/cap"),
        ({"per": {"window": 9, "value": "total", "cap": 0}}, "/per/cap"),
        ({"per": {"window": 9, "value": "any", "cap": 2}}, "/per/cap"),
        ({"per": {"window": 9, "days": 2}}, "/per/days"),
        ({"per": 7}, "/per"),
        ({"per": {"window": 9}, "wait": 5}, "/wait"),
        ({"per": {"window": 9}, "default": 0}, "/default"),
        ({"per": {"window": 9}, "count": "rounds"}, "/per"),
        ({"per": {"window": 9}, "segments": {"c": "DE"}}, "/segments/c"),
        (
            {"per": {"window": 9}, "guardrails": [{"measure": "reward", "value": "total"}]},
            "/guardrails/0/cap",
        ),
        ({"per": {"window": 9}, "measure": "metric:"}, "/measure"),
        ({"measure": "metric:revenue"}, "/measure"),
        ({"segments": {"c": []}}, "/segments"),
        ({"guardrails": [{"measure": "reward", "value": "any"}]}, "/guardrails/0"),
    ],
)
def test_what_does_not_fit_together_is_refused(fields: Json, pointer: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        plans.read("test", {"arms": ["a", "b"], "measure": "reward", **fields}, [SPEC, SPEC])
    assert refused.value.errors[0]["pointer"] == pointer


def test_lists_drafted_from_all_arms_have_no_unit_of_an_arm() -> None:
    lists = {"task": "subset-ranking", "algorithm": "listnet"}
    with pytest.raises(Unprocessable) as refused:
        plans.read("t", {"arms": ["a", "b"], "method": "interleave", "per": {"window": 9}}, [lists, lists])
    assert refused.value.errors[0]["pointer"] == "/per"


def test_a_snapshot_of_before_units_were_listed_still_loads() -> None:
    experiment = plans.read("test", {"arms": ["a", "b"], "measure": "reward", "share": 0.5}, [SPEC, SPEC])
    state = State.new(experiment)
    state.apply(experiment, {"kind": "feedback", "arm": 1, "value": 0.5, "unit": 7})
    state.apply(experiment, {"kind": "promote", "arm": "b", "alias": "live"})
    saved = orjson.loads(orjson.dumps(state.to_json()))
    old = {
        name: value
        for name, value in saved.items()
        if name not in ("share", "units", "segments", "promotion", "firsts")
    }
    loaded = State.from_json(experiment, old)
    assert loaded.share == 0.5
    other = {"promotion": 0, "firsts": 0}
    assert {**loaded.to_json(), **other} == {**state.to_json(), **other}
    # Who has counted before cannot be listed; who comes now can.
    for each in (state, loaded):
        each.firsts[0].add(0, 0.25, 9.0, 0.5)
        each.main.add(8, 0, [0.25])
    assert list(state.firsts[0].page(state.main, 0, 9)) == [
        (7, 0, 1, pytest.approx(float("nan"), nan_ok=True)),
        (8, 1, 1, 0.5),
    ]
    assert list(loaded.firsts[0].page(loaded.main, 0, 9)) == [(8, 0, 1, 0.5)]
    assert loaded.firsts[0].value_of(loaded.main, 7) is None
