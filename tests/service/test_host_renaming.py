"""A renamed label always had its new name: the learner is the fold of the same events, read so, whatever else is done."""

import asyncio

import pytest
from host_events import LABELS, SPEC, both_equal, crash, event, settle, teach
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.experiments.evaluation import Evaluation
from feedrank.service.runtime import Host
from feedrank.service.runtime.replay import replay, verify
from feedrank.service.runtime.trials import collect, run_trial


def fold(events, renames, version, spec=SPEC):
    """A learner to which the old names were never said."""
    learner = learners.build(spec)
    for one in events:
        learner.learn({"features": one["features"]}, {"label": renames.get(one["label"], one["label"])})
    learner.version, learner.renames = version, renames
    return learners.dump(learner)


@pytest.mark.parametrize("every", [1, 4, 1000])
@pytest.mark.parametrize("new", ["b", "other"])
def test_the_old_label_always_was_the_new_one(with_host, every, new):
    renames = {"a": new}

    async def body(host):
        await host.create("a", SPEC)
        first = await teach(host, "a", 10)
        await settle(host)
        served = await host.predict("a", {"features": event(0)["features"]})
        done = await host.rename("a", {"rename": renames})
        labels = list(dict.fromkeys(renames.get(label, label) for label in LABELS))
        assert done == {
            "version": 11,
            "renames": renames,
            "labels": labels,
            "duplicate": False,
            "state": "done",
        }
        assert await host.export("a") == fold(map(event, range(10)), renames, 11)
        assert await host.rename("a", {"rename": renames}) == {**done, "duplicate": True}
        await teach(host, "a", 5, start=10)  # some of them say the old name
        reply = await host.feedback("a", {"prediction_id": served["prediction_id"], "label": new})
        assert reply["served_loss"] == float(renames.get(served["label"], served["label"]) != new)
        info = await host.info("a")
        assert info["spec"] == learners.build(SPEC).spec
        assert (info["labels"], info["renames"], info["progress"]["rounds"]) == (labels, renames, 16)
        counts = await host.labels("a")
        assert {row["label"] for row in counts["labels"]} == set(labels)
        assert sum(row["events"] for row in counts["labels"]) == 16
        shown = (await host.events("a"))["events"]
        assert [e["truth"]["label"] for e in shown[:3]] == ["a", "b", "c"]  # as they were sent
        assert {"version": 11, "kind": "rename", "rename": renames} == {
            name: value for name, value in shown[10].items() if name != "at"
        }
        assert await teach(host, "a", 10) == [{**reply, "duplicate": True} for reply in first]
        with pytest.raises(errors.Conflict):
            await host.feedback("a", {**event(0), "feedback_id": "f0", "label": "c"})
        return await host.export("a"), first

    async def after(host):
        export, first = seen
        assert await host.export("a") == export
        assert await teach(host, "a", 10) == [{**reply, "duplicate": True} for reply in first]
        (report,) = await verify(host.store, ["a"])
        assert report.problems == []
        now = await replay(host.store, "a", spec=SPEC)
        assert learners.dump(now.own.learner) == export
        assert learners.fingerprint(now.other.learner) == learners.fingerprint(now.own.learner)
        before = await replay(host.store, "a", until=10)
        assert learners.dump(before.own.learner) == fold(map(event, range(10)), {}, 10)
        lessons = await collect(host.store, "a")
        assert run_trial(lessons.spec, lessons.lines).refused == 0
        trial = await Evaluation(host)("a", {"spec": SPEC})
        # Where no label is known there is no decision to compare, and its loss is 1.
        assert (trial["difference"], trial["left_out"]) == (0.0, 1)
        assert trial["own"]["total"] == (await host.info("a"))["progress"]["cumulative_loss"] - 1
        await host.restore("copy", export)
        await host.feedback("copy", {"features": ["x"], "label": "a"})
        assert "a" not in (await host.info("copy"))["labels"]

    seen = with_host(body, snapshot_every=every)
    with_host(after, snapshot_every=every)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.integers(0, 30)),
        st.tuples(st.just("learn"), st.integers(0, 30)),
        st.tuples(st.just("retract"), st.integers(0, 30)),
        st.tuples(st.just("rename"), st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"))),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps, every=st.sampled_from([1, 2, 5, 1000]))
def test_any_history_folds_to_the_names_that_stand(tmp_path_factory, steps, every):
    """Learn, retract, rename, stop and crash in any order."""
    url = f"sqlite:{tmp_path_factory.mktemp('any') / 'a.db'}"
    standing, renames, version = [], {}, 0
    todo = [*steps, ("restart", False)]

    async def main():
        nonlocal version
        options = Settings(snapshot_every=every)
        while todo:
            async with Host.open(url, options) as host:
                await host.create("a", SPEC)
                while todo:
                    step, value = todo.pop(0)
                    if step == "learn" and value not in standing:
                        reply = await host.feedback("a", event(value, feedback_id=f"f{value}"))
                        if not reply["duplicate"]:
                            standing.append(value)
                            version += 1
                    elif step == "retract" and value in standing:
                        await host.retract("a", {"feedback_id": f"f{value}"})
                        standing.remove(value)
                        version += 1
                    elif step == "rename":
                        labels = (await host.info("a"))["labels"]
                        try:
                            done = await host.rename("a", {"rename": dict([value])})
                        except (errors.Conflict, errors.Unprocessable):
                            assert value[0] == value[1] or value[0] not in labels or renames
                        else:
                            if not done["duplicate"]:
                                renames[value[0]] = value[1]
                                version += 1
                    elif step == "restart":
                        if value:
                            await crash(host)
                        break
                    resolved = {}
                    for old in renames:
                        name = old
                        while name in renames:
                            name = renames[name]
                        resolved[old] = name
                    assert await host.export("a") == fold(map(event, standing), resolved, version)

    asyncio.run(main())


def test_what_cannot_be_renamed(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 6)
        for rename, pointer in (
            ({"nobody": "b"}, "/rename/nobody"),
            ({"a": "a"}, "/rename/a"),
            ({"a": "b", "b": "a"}, "/rename/a"),
            ({"a": ""}, "/rename/a"),
            ({"a": 1}, "/rename/a"),
            ({"a": "x" * 1001}, "/rename/a"),
            ({}, "/rename"),
            ([], "/rename"),
            ({"__class__": "b"}, "/rename/__class__"),
        ):
            with pytest.raises(errors.Unprocessable) as refused:
                await host.rename("a", {"rename": rename})
            assert refused.value.errors[0]["pointer"] == pointer
        with pytest.raises(errors.Unprocessable):
            await host.rename("a", {"rename": {"a": "b"}, "more": 1})
        await host.rename("a", {"rename": {"a": "d"}})
        for rename in ({"a": "c"}, {"d": "a"}):  # was renamed; a circle
            with pytest.raises(errors.Conflict):
                await host.rename("a", {"rename": rename})
        assert (await host.rename("a", {"rename": {"d": "b"}}))["renames"] == {"d": "b"}
        assert (await host.info("a"))["renames"] == {"a": "b", "d": "b"}
        assert (await host.info("a"))["version"] == 8
        await host.create("items", {"task": "subset-ranking"})
        await host.create("two", {"task": "binary", "labels": ["no", "yes"]})
        with pytest.raises(errors.Unprocessable):
            await host.rename("items", {"rename": {"a": "b"}})
        with pytest.raises(errors.Conflict):
            await host.rename("two", {"rename": {"no": "yes"}})
        with pytest.raises(errors.NotFound):
            await host.rename("three", {"rename": {"no": "yes"}})

    with_host(body)


def test_labels_of_the_spec_are_renamed_with_what_it_says_of_them(with_host):
    async def body(host):
        await host.create("two", {"task": "binary", "labels": ["ham", "spam"]})
        await host.feedback("two", {"features": ["x"], "label": "ham"})
        await host.rename("two", {"rename": {"ham": "__class__"}})
        assert (await host.predict("two", {"features": ["x"]}))["label"] == "__class__"
        for label in ("ham", "__class__", "spam"):
            await host.feedback("two", {"features": ["x"], "label": label})
        with pytest.raises(errors.Unprocessable):
            await host.feedback("two", {"features": ["x"], "label": "other"})
        assert not (await host.create("two", {"task": "binary", "labels": ["ham", "spam"]}))[1]
        costs = {
            "task": "multiclass",
            "algorithm": "predtron",
            "loss": "weighted",
            "weights": {"a": 5, "b": 2},
        }
        await host.create("costs", costs)
        for _ in range(3):
            await host.feedback("costs", {"features": ["x"], "label": "c"})
        await host.feedback("costs", {"features": ["x"], "label": "a"})
        await host.rename("costs", {"rename": {"a": "dear"}})
        reply = await host.feedback("costs", {"features": ["y"], "label": "dear"})
        assert reply["loss"] in (0.0, 5.0)
        return await host.export("costs")

    def again(expected):
        async def body(host):
            assert await host.export("costs") == expected

        return body

    with_host(again(with_host(body)))


def test_a_trimmed_log_renames_what_it_still_has_in_full(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 30)
        await settle(host)
        await host.feedback("a", {"features": ["x"], "label": "late"})
        assert (await host.events("a"))["floor"] > 1
        with pytest.raises(errors.Conflict, match="reaches back"):
            await host.rename("a", {"rename": {"a": "b"}})
        await host.rename("a", {"rename": {"late": "b"}})
        assert (await host.info("a"))["labels"] == LABELS
        return await host.export("a")

    async def after(host):
        assert await host.export("a") == seen

    seen = with_host(body, snapshot_every=10, snapshots_kept=1, log_retention=1)
    with_host(after, snapshot_every=10, snapshots_kept=1, log_retention=1)


def test_a_long_rename_goes_on_in_the_background_and_over_a_kill(with_host, monkeypatch):
    monkeypatch.setattr("feedrank.service.runtime.rebuilding.LONG", 3)

    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 60)
        done = await host.rename("a", {"rename": {"a": "b"}})
        assert done["state"] == "pending"
        await host.feedback("a", {"features": ["x"], "label": "a"})
        if seen:
            await crash(host)
            return None
        for _ in range(1000):
            if (info := await host.info("a")).get("renames"):
                break
            await asyncio.sleep(0.01)
        assert info["labels"] == ["b", "c"]
        return await host.export("a")

    async def after(host):
        events = [*map(event, range(60)), {"features": ["x"], "label": "a"}]
        assert await host.export("a") == fold(events, {"a": "b"}, 62)

    seen = False
    with_host(body)
    with_host(after)


def test_replicas_agree_while_labels_are_renamed(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        await teach(one, "a", 20)
        await both_equal(one, two)
        calls = []
        for i in range(20, 100):
            calls.append((one, two)[i % 2].feedback("a", event(i, feedback_id=f"f{i}")))
            if i == 50:
                calls += [one.rename("a", {"rename": {"a": "z"}}), two.rename("a", {"rename": {"a": "z"}})]
            if i == 70:
                calls.append(two.retract("a", {"feedback_id": "f3"}))
        replies = await asyncio.gather(*calls)
        assert sorted(reply["duplicate"] for reply in replies if "renames" in reply) == [False, True]
        assert await both_equal(one, two) == 102
        assert "a" not in (await two.info("a"))["labels"]
        exported.append(await one.export("a"))

    async def again(one, two):
        assert [await one.export("a")] == exported
        assert [await two.export("a")] == exported

    exported = []
    replicas(body, snapshot_every=16)
    replicas(again, snapshot_every=16)


def test_what_waits_for_an_answer_has_the_names_of_now(with_host):
    async def body(host):
        await host.create("a", {"task": "multiclass"})
        await teach(host, "a", 9)
        asked = [await host.predict("a", {"features": event(i)["features"]}) for i in range(6)]
        assert "a" in {answer["label"] for answer in asked}
        await host.rename("a", {"rename": {"a": "z"}})
        shown = (await host.queue("a", 20, 0.0, None))["queue"]
        renamed = {answer["prediction_id"]: answer["label"].replace("a", "z") for answer in asked}
        assert {one["prediction_id"]: one["label"] for one in shown} == renamed

    with_host(body)
