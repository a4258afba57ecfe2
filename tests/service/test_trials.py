"""One log under many specs: the same bits wherever a trial runs, and nothing run twice."""

import json
import os
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from feedrank import learners
from feedrank.clients import Client, Refused
from feedrank.embedded import Embedded
from feedrank.service.commands import evaluate
from feedrank.service.commands.rebuild import DIED, executor
from feedrank.service.commands.sweep import app
from feedrank.service.runtime import trials

SPEC = {"task": "multiclass", "algorithm": "dual-ascent"}


class Counting:
    """An executor that runs at once, and counts."""

    ran = 0

    def submit(self, work, *arguments):
        self.ran += 1
        future = Future()
        future.set_result(work(*arguments))
        return future


def lines_of(count):
    rows = [
        [{"features": [f"w{i % 5}", f"v{i % 3}"]}, {"label": "xyz"[i % 3]}, None, 1.0] for i in range(count)
    ]
    return b"\n".join(json.dumps(row).encode() for row in rows)


def lessons_of(count):
    return trials.Lessons("l", SPEC, lines_of(count), count)


def judged_of(count):
    rows = [
        {
            "version": i + 1,
            "kind": "feedback",
            "instance": {"features": [f"w{i % 5}"]},
            "truth": {"label": "xyz"[i % 3]},
        }
        for i in range(count)
    ]
    return trials.Lessons("l", SPEC, b"\n".join(json.dumps(row).encode() for row in rows), count)


def test_a_trial_is_what_the_learner_itself_would_have_lost():
    learner = learners.build(SPEC)
    losses = [
        learner.learn({"features": [f"w{i % 5}", f"v{i % 3}"]}, {"label": "xyz"[i % 3]}).loss
        for i in range(90)
    ]
    trial = trials.run_trial(SPEC, lines_of(90))
    assert trial.rounds == 90
    assert trial.mean_loss == pytest.approx(sum(losses) / 90)
    assert trial.fingerprint == learners.fingerprint(learner)
    assert trial.half_width is not None


def test_what_a_spec_cannot_learn_from_is_counted_and_a_spec_that_cannot_be_says_why():
    assert trials.run_trial({"task": "multilabel"}, lines_of(4)).refused == 4
    assert "gamma" in trials.run_trial({**SPEC, "gamma": -1}, lines_of(4)).problem


def test_a_pool_of_processes_gives_the_same_bits():
    lessons = lessons_of(60)
    specs = list(trials.grid(SPEC, {"update": ["I", "III"], "C": [0.5, 2]}))
    with executor(2, None) as pool:
        results = trials.sweep(lessons, specs, pool)
    alone = {t.fingerprint: t.mean_loss for t in (trials.run_trial(spec, lessons.lines) for spec in specs)}
    assert {t.fingerprint: t.mean_loss for t in results} == alone
    assert [t.mean_loss for t in results] == sorted(t.mean_loss for t in results)


def test_a_dask_cluster_gives_the_same_bits():
    distributed = pytest.importorskip("distributed")
    lessons = lessons_of(30)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        executor(None, cluster.scheduler_address) as pool,
    ):
        (trial,) = trials.sweep(lessons, [SPEC], pool)
        jobs = evaluate.jobs(judged_of(30), [{"spec": {**SPEC, "C": 10.0}}])
        (reply,) = trials.run_jobs(jobs, pool)
    assert trial == trials.run_trial(SPEC, lessons.lines)
    assert reply["rounds"] + reply["left_out"] == 30
    assert reply == jobs[0].work(*jobs[0].arguments)


def test_a_sweep_that_was_stopped_goes_on_where_it_was(tmp_path):
    lessons, state = lessons_of(30), tmp_path / "state.jsonl"
    specs = list(trials.grid(SPEC, {"C": [0.1, 1, 10]}))
    with ThreadPoolExecutor(1) as pool:
        first = trials.sweep(lessons, specs[:2], pool, state)
    with state.open("ab") as file:
        file.write(b'\n{"key": "torn')

    pool = Counting()
    results = trials.sweep(lessons, specs, pool, state)
    assert pool.ran == 1
    assert {trial.fingerprint for trial in first} < {trial.fingerprint for trial in results}
    other = trials.Lessons("l", SPEC, lines_of(31), 31)  # other events: nothing is known of them
    assert len(trials.sweep(other, specs, pool, state)) == 3
    assert pool.ran == 4


def test_another_algorithm_starts_from_its_own_defaults():
    own = learners.build({"task": "multiclass", "labels": ["a", "b"]}).spec
    specs = list(
        trials.grid(own, {"algorithm": ["predtron", "dual-ascent", own["algorithm"]], "bias": [False]})
    )
    assert specs[0] == {"task": "multiclass", "labels": ["a", "b"], "algorithm": "predtron", "bias": False}
    assert specs[2] == {**own, "bias": False}
    assert all(learners.build(spec) for spec in specs)


def test_random_settings_can_be_built_and_are_the_same_for_a_seed():
    specs = list(trials.sampled(SPEC, 12, seed=4))
    assert specs == list(trials.sampled(SPEC, 12, seed=4))
    assert len({json.dumps(spec) for spec in specs}) == len(specs) == 12
    built = [trials.run_trial(spec, lines_of(3)) for spec in specs]
    assert not any(trial.problem for trial in built)
    few = [trials.completed(spec) for spec in trials.sampled({"task": "multiclass"}, 30, seed=4)]
    assert len({json.dumps(spec) for spec in few}) == len(few)
    assert {spec["loss"] for spec in few} == {"zero-one"}  # one loss, or the table would compare nothing
    costs = {"task": "multiclass", "loss": "weighted", "weights": {"x": 3.0}}
    assert all(spec["weights"] == {"x": 3.0} for spec in trials.sampled(costs, 3, seed=4))


def test_the_command_names_the_best_and_leaves_retracted_events_out(tmp_path):
    store = f"sqlite:{tmp_path}/s.db"
    with Client("http://localhost", transport=Embedded(store)) as client:
        client.create("l", SPEC)
        for i in range(8):
            client.feedback("l", {"features": [f"w{i % 2}"], "label": "xy"[i % 2], "feedback_id": str(i)})
        client.retract("l", feedback_id="3")
    arguments = ["l", "--grid", '{"update": ["I", "II", "III"]}', "--store", store, "--workers", "1"]
    result = CliRunner().invoke(app, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["rounds"] for row in rows} == {7}
    assert len(rows) == 3
    shown = CliRunner().invoke(app, arguments)
    assert "best: " in shown.output
    losses = '{"algorithm": ["predtron"], "loss": ["zero-one", "weighted"]}'
    assert (
        "no best"
        in CliRunner().invoke(app, ["l", "--grid", losses, "--store", store, "--workers", "1"]).output
    )
    wrong = CliRunner().invoke(app, ["nobody", "--store", store])
    assert wrong.exit_code == 1
    assert "there is no learner" in wrong.output


# ---- evaluate

LISTS = {"task": "subset-ranking", "algorithm": "listnet"}
CHOICE = {"task": "choice", "range": [0, 2]}


def teach(client):
    """Logs of labels (one event retracted), of drawn choices and of clicks, and one that is empty."""
    client.create("labels", SPEC)
    for i in range(40):
        features = [f"w{i % 5}", f"v{i % 3}"]
        client.feedback("labels", {"features": features, "label": "xyz"[i % 3], "feedback_id": str(i)})
    client.retract("labels", feedback_id="7")
    items = [{"id": name, "features": [name]} for name in ("good", "bad")]
    client.create("choices", CHOICE)
    for i in range(30):
        served = {"id": ("good", "bad")[i % 2], "probability": 0.5}
        client.feedback(
            "choices",
            {"items": items, "reward": 1 + (-1) ** i * 0.5, "served": served, "feedback_id": str(i)},
        )
    client.create("clicks", LISTS)
    client.feedback("clicks", {"items": items, "clicks": ["bad"], "feedback_id": "0"})
    client.create("empty", SPEC)


def test_the_command_gives_what_the_call_over_http_gives(tmp_path):
    store = f"sqlite:{tmp_path}/s.db"
    asked = {
        "labels": [{**SPEC, "C": 0.01}, {"task": "multiclass"}, LISTS, {**SPEC, "gamma": -1}],
        "choices": [{**CHOICE, "floor": 0.05}],
        "clicks": [LISTS],
        "empty": [SPEC],
    }
    replies = {}
    with Client("http://localhost", transport=Embedded(store)) as client:
        teach(client)
        for name, specs in asked.items():
            for spec in specs:
                try:
                    reply = client.evaluate(name, spec=spec)
                except Refused as error:
                    reply = {"learner": name, "problem": error.detail}
                replies.setdefault(name, []).append({"spec": spec, **reply})
    for name, specs in asked.items():
        (tmp_path / "specs.json").write_text(json.dumps(specs))
        arguments = [name, "--spec", str(tmp_path / "specs.json"), "--store", store, "--workers", "1"]
        result = CliRunner().invoke(evaluate.app, [*arguments, "--format", "json"])
        assert [json.loads(line) for line in result.stdout.splitlines()] == replies[name], result.output
        assert result.exit_code == (name in ("clicks", "empty"))
    # One was retracted, and at the first no label was known.
    assert [reply.get("rounds") for reply in replies["labels"]] == [38, 38, None, None]
    assert "interleave" in replies["clicks"][0]["problem"]
    shown = CliRunner().invoke(evaluate.app, ["labels", *arguments[1:]])
    assert "labels: 39 events under 1 specs" in shown.output
    wrong = CliRunner().invoke(evaluate.app, [*arguments, "--confidence", "2"])
    assert wrong.exit_code == 1
    assert "below 1" in wrong.output


def test_an_evaluation_goes_on_where_it_was_and_shares_its_file_with_a_sweep(tmp_path):
    state, pool = tmp_path / "state.jsonl", Counting()
    trials.sweep(lessons_of(30), [SPEC], pool, state)
    requests = [{"spec": {**SPEC, "C": C}} for C in (0.1, 1.0, 10.0)]
    first = trials.run_jobs(evaluate.jobs(judged_of(30), requests[:2]), pool, state)
    assert pool.ran == 3
    again = trials.run_jobs(evaluate.jobs(judged_of(30), requests), pool, state)
    assert pool.ran == 4
    assert again[:2] == first
    assert again == trials.run_jobs(evaluate.jobs(judged_of(30), requests), Counting())
    trials.run_jobs(evaluate.jobs(judged_of(31), requests[:1]), pool, state)  # other events
    trials.run_jobs(evaluate.jobs(judged_of(30), [{**requests[0], "confidence": 0.9}]), pool, state)
    assert pool.ran == 6


def test_a_worker_that_dies_is_one_line_and_what_was_done_is_kept(tmp_path, monkeypatch):
    state, lessons = tmp_path / "state.jsonl", lessons_of(30)
    dies, whole = trials.Job("dies", os._exit, (1,)), trials.sweep

    def sweep(_, specs, pool, state, progress):
        whole(lessons, [SPEC], pool, state)
        return trials.run_jobs([dies], pool, state, progress)

    store = f"sqlite:{tmp_path}/s.db"
    with Client("http://localhost", transport=Embedded(store)) as client:
        client.create("l", SPEC)
    with monkeypatch.context() as patch:
        patch.setattr("feedrank.service.commands.sweep.trials.sweep", sweep)
        result = CliRunner().invoke(
            app, ["l", "--store", store, "--workers", "1", "--state", str(state)], catch_exceptions=False
        )
    assert result.exit_code == 1
    assert result.output.splitlines() == [f"feedrank sweep: {DIED}"]
    pool = Counting()
    trials.sweep(lessons, [SPEC], pool, state)
    assert pool.ran == 0


def test_what_ends_after_a_failure_is_still_written_down(tmp_path):
    state, pool = tmp_path / "state.jsonl", Counting()
    fails = Future()
    fails.set_exception(BrokenExecutor())
    first, submit = iter([fails]), pool.submit
    pool.submit = lambda work, *arguments: next(first, None) or submit(work, *arguments)
    jobs = [trials.Job(key, dict, ({"done": key},)) for key in "abc"]
    with pytest.raises(BrokenExecutor):
        trials.run_jobs(jobs, pool, state)
    again = Counting()
    assert trials.run_jobs(jobs, again, state) == [{"done": key} for key in "abc"]
    assert again.ran == 1


def test_what_a_reward_counts_is_the_same_in_every_spec_that_is_drawn():
    base = {"task": "choice", "range": [0, 5], "outside": "clip", "baseline": 0.2}
    for spec in trials.sampled(base, 5, seed=1):
        assert {name: spec[name] for name in base} == base
