"""Answers from the log: exact where the truth does not depend on what was shown, covered or refused where it does."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_runs import JSON, LISTS, run

from feedrank import learners
from feedrank.service.contract.faults import Conflict, NotFound, Unprocessable
from feedrank.service.experiments.choice_trial import ChoiceTrial, LoggedDraw, RewardedRound
from feedrank.service.experiments.evaluation import Evaluation
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host

CLASSES = {"task": "multiclass", "algorithm": "predtron", "loss": "zero-one", "labels": ["x", "y"]}
SLOW = {**CLASSES, "learning_rate": 0.5, "bias": True}


def events(n: int) -> list[JSON]:
    rng = np.random.default_rng(0)
    result = []
    for i in range(n):
        values = rng.normal(size=3).tolist()
        result.append({"features": values, "label": "x" if values[0] > 0.2 else "y", "feedback_id": f"n{i}"})
    return result


def test_a_replay_is_what_the_other_learner_would_have_lost_to_the_last_bit(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await host.create("own", CLASSES)
        await host.create("slow", SLOW)
        log = events(60)
        await host.feedback("own", {"events": log})
        await host.retract("own", {"feedback_id": "n5"})
        answer = await Evaluation(host)("own", {"spec": SLOW})
        other, own = learners.build(SLOW), learners.build(CLASSES)
        kept = [event for event in log if event["feedback_id"] != "n5"]
        lost = [
            sum(learner.learn({"features": e["features"]}, {"label": e["label"]}).loss for e in kept)
            for learner in (own, other)
        ]
        assert [answer["own"]["total"], answer["other"]["total"]] == lost
        assert (answer["method"], answer["measure"], answer["rounds"]) == ("replay", "zero-one", 59)
        assert answer["lower"] <= answer["difference"] <= answer["upper"]
        again = await Evaluation(host)("own", {"learner": "slow"})
        assert {**again, "learner": 0} == {**answer, "learner": 0}
        assert (await Evaluation(host)("own", {"spec": SLOW, "until": 10}))["rounds"] == 9
        for wrong in (
            {},
            {"spec": SLOW, "learner": "slow"},
            {"spec": {"task": "nothing"}},
            {"spec": LISTS},
            {"policy": "best"},
            {"spec": SLOW, "confidence": 2},
            {"spec": SLOW, "measure": "ndcg"},
            {"spec": SLOW, "more": 1},
        ):
            with pytest.raises(Unprocessable):
                await Evaluation(host)("own", wrong)
        with pytest.raises(NotFound):
            await Evaluation(host)("own", {"learner": "none"})
        with pytest.raises(Conflict, match="probabilities"):
            await Evaluation(host)("own", {"policy": "uniform"})

    run(store_url, body)


def test_clicks_on_one_learners_lists_cannot_tell_of_another(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await host.create("own", LISTS)
        with pytest.raises(Conflict, match="empty"):
            await Evaluation(host)("own", {"spec": LISTS})
        page = {"items": [{"id": "d1", "features": [1]}, {"id": "d2", "features": [2]}]}
        await host.feedback("own", {**page, "clicks": ["d2"]})
        with pytest.raises(Conflict, match="interleave"):
            await Evaluation(host)("own", {"spec": LISTS})
        await host.create("graded", LISTS)
        await host.feedback("graded", {**page, "relevance": {"d2": 1}})
        answer = await Evaluation(host)("graded", {"spec": LISTS, "measure": "ap"})
        assert answer["difference"] == 0
        await host.feedback("graded", {**page, "clicks": ["d2"]})
        with pytest.raises(Conflict, match="until"):
            await Evaluation(host)("graded", {"spec": LISTS})
        assert (await Evaluation(host)("graded", {"spec": LISTS, "until": 1}))["rounds"] == 1

    run(store_url, body)


def test_an_interleaved_log_values_what_another_ranker_would_put_first(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        for name in ("a", "b"):
            await host.create(name, LISTS)
        grades = {"d1": 0, "d2": 1, "d3": 2}
        page = {"items": [{"id": name, "features": {"g": g}} for name, g in grades.items()]}
        await host.feedback("a", {"events": [{**page, "relevance": {"d3": 2, "d2": 1}}] * 50})
        await host.feedback("b", {"events": [{**page, "relevance": {"d1": 2, "d2": 1}}] * 50})
        await experiments.create("e", {"arms": ["a", "b"], "method": "interleave", "learn": []})
        for i in range(60):
            # What is drafted is drawn by the id: one of our own makes it the same in every run.
            shown = await experiments.predict("e", {**page, "unit": f"u{i}", "prediction_id": f"p{i}"})
            top = shown["ranking"][0]["id"]
            clicks = ["d3"] if top == "d3" else []
            await experiments.feedback("e", {"prediction_id": shown["prediction_id"], "clicks": clicks})
        good = await experiments.evaluate("e", {"policy": "logged"})
        assert good["other"]["mean"] == pytest.approx(good["own"]["mean"], abs=0.1)
        assert 0.2 < good["own"]["mean"] < 0.8
        fresh = await experiments.evaluate("e", {"spec": LISTS})
        assert (fresh["method"], fresh["measure"], fresh["rounds"]) == ("off-policy", "clicks@1", 60)
        assert fresh["other"]["lower"] <= fresh["other"]["mean"] <= fresh["other"]["upper"]
        await experiments.create("split", {"arms": ["a", "b"]})
        with pytest.raises(Conflict, match="only interleaved"):
            await experiments.evaluate("split", {"spec": LISTS})

    run(store_url, body)


def test_a_policy_is_valued_from_logged_probabilities() -> None:
    rng = np.random.default_rng(0)
    rewards = {"a": 0.8, "b": 0.2}
    trials = {name: ChoiceTrial(name, "reward") for name in ("uniform", "first", "logged")}
    for _ in range(600):
        chosen = "a" if rng.random() < 0.3 else "b"
        reward, p = float(rng.random() < rewards[chosen]), [0.3, 0.7]
        draw = LoggedDraw(["a", "b"], chosen, reward, p["ab".index(chosen)], p)
        for trial in trials.values():
            trial.apply(RewardedRound([draw], {"instance": {}}))
    for name, value in (("uniform", 0.5), ("first", 0.8), ("logged", 0.38)):
        answer = trials[name].report(0.05)
        assert answer["other"]["lower"] <= value <= answer["other"]["upper"]
        assert answer["other"]["upper"] - answer["other"]["lower"] < 0.4
        assert abs(answer["other"]["mean"] - value) < 0.1


def test_a_log_of_choices_values_another_policy(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        spec = {"task": "choice", "range": [0, 2]}
        await host.create("chooser", spec)
        items = {"items": [{"id": name, "features": [name]} for name in ("good", "bad")]}
        rng = np.random.default_rng(0)
        log = []
        for i in range(200):
            chosen = "good" if rng.random() < 0.5 else "bad"
            reward = 2.0 * float(rng.random() < (0.8 if chosen == "good" else 0.2))
            served = {"id": chosen, "probability": 0.5}
            log.append({**items, "reward": reward, "served": served, "feedback_id": f"n{i}"})
        await host.feedback("chooser", {"events": log})
        for policy, value in (("first", 1.6), ("uniform", 1.0), ("logged", 1.0)):
            answer = await Evaluation(host)("chooser", {"policy": policy})
            assert (answer["method"], answer["measure"], answer["rounds"]) == ("off-policy", "reward", 200)
            assert answer["other"]["lower"] <= value <= answer["other"]["upper"]
            assert abs(answer["other"]["mean"] - value) < 0.4
        learned = await Evaluation(host)("chooser", {"spec": {**spec, "floor": 0.05}})
        assert 0 <= learned["other"]["lower"] <= learned["other"]["mean"] <= learned["other"]["upper"] <= 2
        assert learned["other"]["mean"] > 1.1

    run(store_url, body)
