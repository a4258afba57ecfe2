"""Erased: the learner never had the event, no byte of it is left, checksums are, and its ids are known as gone."""

import asyncio

import pytest
from host_events import SPEC, both_equal, crash, event, settle
from store_bytes import bytes_of

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime.eraser import KIND
from feedrank.service.runtime.replay import replay, verify
from feedrank.service.runtime.trials import collect
from feedrank.service.store.shared import checksum

SECRET = "jane.doe"


def secret(i, **more):
    """An event that names Jane in each of its parts."""
    return {
        "features": {f"{SECRET} {i}": 1.0, f"w{i % 7}": 1.0},
        "label": f"of {SECRET}" if i % 2 else "b",
        "feedback_id": f"{SECRET}/{i}",
        **more,
    }


def fold(events, version):
    learner = learners.build(SPEC)
    for one in events:
        learner.learn({"features": one["features"]}, {"label": one["label"]})
    learner.version = version
    return learners.dump(learner)


async def teach(host, name, everyone, jane, **more):
    for i in everyone:
        if i in jane:
            await host.feedback(name, secret(i, **more))
        else:
            await host.feedback(name, event(i, feedback_id=f"f{i}"))


async def bodies(host, name):
    """Of all entries, by version."""
    log = (await host._catalogue.resolve(name)).log
    return {entry.version: entry.body for entry in await host.store.read(log, 0, 1000)}


@pytest.mark.parametrize("every", [3, 1000])
def test_nothing_is_left_of_a_subject_but_checksums(with_host, store_url, every):
    jane = (2, 7, 8, 15)
    stays = [event(i) for i in range(20) if i not in jane]

    async def body(host):
        await host.create("a", SPEC)
        await host.create("b", SPEC)
        await teach(host, "a", range(20), jane, subject=SECRET)
        await host.feedback("b", secret(1, subject="somebody else", label="c"))
        asked = await host.predict("a", {"features": [f"{SECRET} asks"], "subject": SECRET})
        mine = {"features": [SECRET], "prediction_id": f"{SECRET}'s own", "subject": SECRET}
        await host.predict("a", mine)
        await settle(host)
        stored = await bodies(host, "a")
        assert SECRET.encode() in bytes_of(store_url)
        done = await host.erase("a", {"subject": SECRET})
        assert (done["erased"], done["version"], done["state"]) == (6, 24, "done")
        assert done["checksums"][:4] == [checksum(stored[i + 1]) for i in jane]
        assert await host.export("a") == fold(stays, 24)
        assert SECRET not in str((await host.info("a"), await host.labels("a"), await host.history("a")))
        assert SECRET.encode() in bytes_of(store_url)  # of the other one
        await host.erase("b", {"feedback_id": f"{SECRET}/1"})
        assert SECRET.encode() not in bytes_of(store_url)
        for call in (
            host.feedback("a", secret(7)),
            host.feedback("a", secret(7, label="another")),
            host.feedback("a", {"events": [event(30), secret(8)]}),
            host.feedback("a", {"prediction_id": asked["prediction_id"], "label": "b"}),
            host.predict("a", mine),
            host.erase("a", {"feedback_id": f"{SECRET}/2"}),
            host.retract("a", {"feedback_id": f"{SECRET}/2"}),
        ):
            with pytest.raises(errors.Gone):
                await call
        assert (await host.info("a"))["version"] == 24
        assert (await host.erase("a", {"subject": SECRET}))["erased"] == 0
        await host.feedback("a", event(20, feedback_id="f20", subject=SECRET))  # a subject may come again
        shown = (await host.events("a"))["events"]
        assert [e["version"] for e in shown if e["kind"] == "erased"] == [i + 1 for i in jane]
        assert [e["checksum"] for e in shown if e["kind"] == "erased"] == done["checksums"][:4]
        assert [e["retracts"] for e in shown if e["kind"] == "retraction"] == [i + 1 for i in jane]

    async def after(host):
        assert await host.export("a") == fold([*stays, event(20)], 25)
        for report in await verify(host.store):
            assert report.problems == []
        assert (await collect(host.store, "a")).count == 17
        early = await replay(host.store, "a", until=10)
        assert early.own.learner.progress.rounds == 7
        with pytest.raises(errors.Gone):
            await host.feedback("a", secret(7))
        assert (await host.erase("a", {"subject": SECRET}))["erased"] == 1
        assert SECRET.encode() not in bytes_of(store_url)

    with_host(body, snapshot_every=every)
    with_host(after, snapshot_every=every)


def test_by_the_id_of_a_prediction_with_its_event_or_before_there_is_one(with_host, store_url):
    async def body(host):
        await host.create("a", SPEC)
        answers = [await host.predict("a", {"features": [f"{SECRET} {i}"]}) for i in range(3)]
        await host.feedback("a", {"prediction_id": answers[0]["prediction_id"], "label": SECRET})
        done = await host.erase("a", {"prediction_id": answers[0]["prediction_id"]})
        assert (done["erased"], done["version"]) == (1, 2)
        done = await host.erase("a", {"prediction_id": answers[1]["prediction_id"]})
        assert (done["erased"], done["version"], len(done["checksums"])) == (1, 2, 1)
        await host.feedback("a", {"prediction_id": answers[2]["prediction_id"], "label": "b"})
        await host.retract("a", {"prediction_id": answers[2]["prediction_id"]})
        done = await host.erase("a", {"prediction_id": answers[2]["prediction_id"]})  # retracted before
        assert (done["erased"], done["version"]) == (1, 4)
        assert SECRET.encode() not in bytes_of(store_url)
        assert (await host.info("a"))["labels"] == []
        for answer in answers:
            with pytest.raises(errors.Gone):
                await host.feedback("a", {"prediction_id": answer["prediction_id"], "label": "b"})
        for request, kind in (
            ({"feedback_id": "unknown"}, errors.NotFound),
            ({"prediction_id": "unknown"}, errors.NotFound),
            ({}, errors.Unprocessable),
            ({"subject": ""}, errors.Unprocessable),
            ({"subject": "x" * 201}, errors.Unprocessable),
            ({"subject": 1}, errors.Unprocessable),
            ({"subject": "x", "feedback_id": "y"}, errors.Unprocessable),
            ({"label": "x"}, errors.Unprocessable),
        ):
            with pytest.raises(kind):
                await host.erase("a", request)

    with_host(body)


def test_who_forgets_ids_still_finds_a_subject(with_host, store_url):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", range(30), (1, 2), subject=SECRET)
        await settle(host)
        assert (await host.erase("a", {"subject": SECRET}))["erased"] == 2
        assert SECRET.encode() not in bytes_of(store_url)

    with_host(body, snapshot_every=5, id_retention=5)


def test_a_trimmed_log_says_that_it_cannot(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", range(30), (1, 28), subject=SECRET)
        await settle(host)
        with pytest.raises(errors.Conflict, match="reaches back"):
            await host.erase("a", {"feedback_id": f"{SECRET}/1"})
        assert await host.store.page(KIND, "", 10) == []
        await host.feedback("a", secret(31))
        assert (await host.erase("a", {"feedback_id": f"{SECRET}/31"}))["erased"] == 1

    with_host(body, snapshot_every=10, snapshots_kept=1, log_retention=5)


@pytest.mark.parametrize("at", ["append", "erase", "remove"])
def test_a_kill_on_the_way_is_made_good_at_the_next_start(with_host, store_url, monkeypatch, at):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", range(12), (2, 5), subject=SECRET)

        async def kill(*_, **__):
            raise errors.StoreUnavailable("killed")

        monkeypatch.setattr(host.store, at, kill)
        with pytest.raises(errors.StoreUnavailable):
            await host.erase("a", {"subject": SECRET})
        monkeypatch.undo()
        assert len(await host.store.page(KIND, "", 10)) == 1
        await crash(host)

    async def after(host):
        for _ in range(1000):
            if not await host.store.page(KIND, "", 10):
                break
            await asyncio.sleep(0.01)
        assert SECRET.encode() not in bytes_of(store_url)
        assert await host.export("a") == fold([event(i) for i in range(12) if i not in (2, 5)], 14)

    with_host(body)
    with_host(after)


def test_a_long_erasing_goes_on_when_the_call_is_answered(with_host, monkeypatch):
    monkeypatch.setattr("feedrank.service.runtime.rebuilding.LONG", 3)
    monkeypatch.setattr("feedrank.service.runtime.eraser.PATIENCE", 0.0)

    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", range(60), (2,))
        done = await host.erase("a", {"feedback_id": f"{SECRET}/2"})
        assert (done["erased"], done["state"]) == (1, "pending")
        for _ in range(1000):
            if not (await host.info("a"))["retracting"]:
                break
            await asyncio.sleep(0.01)
        assert await host.export("a") == fold([event(i) for i in range(60) if i != 2], 61)

    with_host(body)


def test_replicas_never_had_what_one_of_them_erases(replicas, shared_url):
    async def body(one, two):
        await one.create("a", SPEC)
        await teach(one, "a", range(20), (3, 4), subject=SECRET)
        await both_equal(one, two)
        calls = [(one, two)[i % 2].feedback("a", event(i, feedback_id=f"f{i}")) for i in range(20, 90)]
        calls.insert(30, two.erase("a", {"subject": SECRET}))
        await asyncio.gather(*calls)
        assert await both_equal(one, two) == 92
        exported.append(await one.export("a"))
        assert SECRET.encode() not in bytes_of(shared_url)

    async def again(one, two):
        assert [await two.export("a"), await one.export("a")] == exported * 2

    exported = []
    replicas(body, snapshot_every=16)
    replicas(again, snapshot_every=16)


def answers_of(info):
    return sum(arm["answered"] for arm in info["arms"].values())


def test_everywhere_in_learners_and_experiments(with_host, store_url):
    async def body(host):
        experiments = Experiments(host)
        for name in ("a", "b", "c"):
            await host.create(name, SPEC)
        await experiments.create("e", {"arms": ["a", "b"], "method": "split"})
        await teach(host, "c", range(6), (2, 3), subject=SECRET)
        asked = [
            await experiments.predict(
                "e",
                {"features": [f"{SECRET} {i}"], "unit": f"u{i}", **({"subject": SECRET} if i < 3 else {})},
            )
            for i in range(4)
        ]
        for answer in asked[:2]:
            await experiments.feedback("e", {"prediction_id": answer["prediction_id"], "label": "y"})
        again = {"features": [SECRET], "label": "x", "unit": "u9", "subject": SECRET, "feedback_id": SECRET}
        await experiments.feedback("e", again)
        await experiments.feedback("e", {"features": ["other"], "label": "x", "unit": "u8"})
        before = await experiments.info("e")
        hidden = await experiments.erase({"subject": SECRET}, lambda name: name == "c")
        assert (hidden["erased"], list(hidden["learners"]), hidden["experiments"]) == (2, ["c"], {})
        done = await experiments.erase({"subject": SECRET})
        # three events and an open prediction of the experiment; its arms had the same three, and have nothing any more
        assert (done["erased"], list(done["experiments"]), done["learners"]) == (4, ["e"], {})
        assert len(done["checksums"]) == 4
        for arm in ("a", "b"):
            learner = await host.info(arm)
            assert (learner["progress"]["rounds"], learner["labels"], learner["version"]) == (1, ["x"], 7)
        info = await experiments.info("e")
        assert answers_of(before) == 4
        assert answers_of(info) == 1
        with pytest.raises(errors.Gone):
            await experiments.feedback("e", {"prediction_id": asked[0]["prediction_id"], "label": "x"})
        with pytest.raises(errors.Gone):
            await experiments.feedback("e", again)
        await host.erase("a", {"subject": "nobody"})
        # The fourth prediction said no subject.
        await host.store.erase((await experiments._cache.take("e")).log, [], [asked[3]["prediction_id"]])
        assert SECRET.encode() not in bytes_of(store_url)
        for wrong in ({}, {"subject": None}, {"feedback_id": "x"}, {"subject": []}):
            with pytest.raises(errors.Unprocessable):
                await experiments.erase(wrong)
        await experiments.close()

    async def after(host):
        experiments = Experiments(host)
        assert answers_of(await experiments.info("e")) == 1
        assert (await experiments.values("e")) != []
        for report in await verify(host.store):
            assert report.problems == []
        await experiments.close()

    with_host(body)
    with_host(after)


def test_a_subject_is_kept_as_a_hash_and_says_the_same_on_every_replica(with_host, store_url):
    async def body(host):
        await host.create("a", SPEC)
        await host.predict("a", {"features": ["x"], "subject": SECRET, "prediction_id": "mine"})
        first = await host.predict("a", {"features": ["x"], "subject": SECRET, "prediction_id": "mine"})
        with pytest.raises(errors.Conflict):
            await host.predict("a", {"features": ["x"], "subject": "other", "prediction_id": "mine"})
        await host.predict("a", {"instances": [{"features": ["y"]}], "subject": SECRET, "remember": False})
        await host.feedback("a", {"prediction_id": first["prediction_id"], "label": "b", "subject": SECRET})
        shown = (await host.events("a"))["events"][0]
        assert len(shown["subject"]) == 32
        assert SECRET.encode() not in bytes_of(store_url)
        return shown["subject"]

    async def after(host):
        await host.feedback("a", {"features": ["x"], "label": "b", "subject": SECRET})
        assert (await host.events("a"))["events"][1]["subject"] == hashed
        assert (await host.erase("a", {"subject": SECRET}))["erased"] == 2

    hashed = with_host(body)
    with_host(after)
