"""Rounds on both stores: replies are the core's, each event teaches once, and a batch is taken as a whole or not at all."""

import asyncio

import pytest
from host_events import LABELS, SPEC, event, folded, teach

from feedrank import learners
from feedrank.service.contract import faults as errors


def test_feedback_replies_as_the_core_does(with_host):
    async def body(host):
        await host.create("a", SPEC)
        learner = learners.build(SPEC)
        for i in range(20):
            instance = {"features": event(i)["features"]}
            expected = learner.learn(instance, {"label": event(i)["label"]})
            assert await host.feedback("a", event(i)) == {
                "version": i + 1,
                "loss": expected.loss,
                "mistake": expected.mistake,
                "updated": expected.updated,
                "served_loss": None,
                "duplicate": False,
            }
        assert await host.export("a") == learners.dump(learner)
        reply = await host.predict("a", {**instance, "remember": False, "explain": True, "top": 2})
        mine = learner.predict(instance, explain=True, top=2)
        assert reply == {"learner": "a", "version": 20, **mine.to_json()}

    with_host(body)


def test_the_same_id_teaches_once_and_replies_as_the_first_time(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 5)
        reply = await host.predict("a", {"features": {"x": 1.0}})
        first = await host.feedback(
            "a", {"prediction_id": reply["prediction_id"], "label": "b", "feedback_id": "both"}
        )
        assert first["duplicate"] is False
        assert first["served_loss"] == float(reply["label"] != "b")
        await teach(host, "a", 5, start=5)
        for again in (
            {"prediction_id": reply["prediction_id"], "label": "b"},
            {"feedback_id": "both", "features": ["x"], "label": "b"},
            {"prediction_id": reply["prediction_id"], "feedback_id": "both", "label": "b"},
        ):
            assert await host.feedback("a", again) == {**first, "duplicate": True}
            with pytest.raises(errors.Conflict):
                await host.feedback("a", {**again, "label": "c"})
        with pytest.raises(errors.Conflict):  # ids of two different events
            await host.feedback(
                "a", {"prediction_id": reply["prediction_id"], "feedback_id": "f1", "label": "b"}
            )
        assert (await host.info("a"))["version"] == 11
        assert host.stats()["duplicates"] == 3

    with_host(body)


def test_the_header_is_another_name_for_the_id(with_host):
    async def body(host):
        await host.create("a", SPEC)
        first = await host.feedback("a", event(1), key="k")
        assert await host.feedback("a", event(1, feedback_id="k")) == {**first, "duplicate": True}
        with pytest.raises(errors.Unprocessable):
            await host.feedback("a", event(1, feedback_id="other"), key="k")
        batch = {"events": [event(1), event(2), event(3, feedback_id="own")]}
        one = await host.feedback("a", batch, key="batch")
        two = await host.feedback("a", batch, key="batch")
        assert [r["duplicate"] for r in one["results"]] == [False] * 3
        assert [r["duplicate"] for r in two["results"]] == [True] * 3
        assert (await host.info("a"))["version"] == 4

    with_host(body)


def test_a_remembered_prediction_outlives_the_process_and_answers_late(with_host):
    async def ask(host):
        await host.create("a", SPEC)
        await teach(host, "a", 4)
        return await host.predict("a", {"features": {"w1": 1.0, "x": 1.0}})

    async def answer(host):
        wrong = next(label for label in LABELS if label != shown["label"])
        reply = await host.feedback("a", {"prediction_id": shown["prediction_id"], "label": wrong})
        assert (reply["version"], reply["served_loss"]) == (5, 1.0)
        (entry,) = (await host.events("a", after=4))["events"]
        assert entry["instance"] == {"features": {"w1": 1.0, "x": 1.0}}
        assert entry["served"] == {"label": shown["label"]}
        assert entry["prediction_id"] == shown["prediction_id"]

    shown = with_host(ask)
    with_host(answer)


def test_a_batch_is_applied_in_order_or_not_at_all(with_host):
    async def body(host):
        await host.create("a", SPEC)
        reply = await host.feedback("a", {"events": [event(i, feedback_id=f"f{i}") for i in range(5)]})
        assert [r["version"] for r in reply["results"]] == [1, 2, 3, 4, 5]
        bad = [
            ({"features": ["x"]}, errors.Unprocessable),
            ({"features": ["x"], "label": ""}, errors.Unprocessable),
            ({"features": {"x": "1"}, "label": "a"}, errors.Unprocessable),
            (event(1, feedback_id="f2"), errors.Conflict),
            ({"prediction_id": "none", "label": "a"}, errors.NotFound),
            ({**event(1), "strange": 1}, errors.Unprocessable),
        ]
        for one, kind in bad:
            with pytest.raises(kind) as caught:
                await host.feedback("a", {"events": [event(9), event(8, feedback_id="new"), one]})
            if kind is errors.Unprocessable:
                assert caught.value.errors[0]["pointer"].startswith("/events/2")
        assert await host.export("a") == folded(range(5), 5)
        again = await host.feedback("a", {"events": [event(2, feedback_id="f2"), event(5, feedback_id="f5")]})
        assert [(r["version"], r["duplicate"]) for r in again["results"]] == [(3, True), (6, False)]

    with_host(body)


def test_feedback_that_comes_together_shares_an_append_and_each_gets_its_own_reply(with_host, monkeypatch):
    async def body(host):
        await host.create("l", SPEC)
        await host.feedback("l", event(0, feedback_id="f0"))
        appends = []
        append = host.store.append

        async def counted(log, drafts, expected=None):
            appends.append(len(drafts))
            return await append(log, drafts, expected)

        monkeypatch.setattr(host.store, "append", counted)
        replies = await asyncio.gather(*(host.feedback("l", event(i)) for i in range(1, 33)))
        assert [reply["version"] for reply in replies] == list(range(2, 34))
        assert appends == [32]
        assert await host.export("l") == folded(range(33), 33)

        # One refusal costs the others nothing but their company.
        appends.clear()
        wrong = [
            event(1, feedback_id="f0"),  # another truth under a known id
            {"label": "a", "prediction_id": "0" * 40},  # nobody's
        ]
        right = [event(i) for i in range(33, 36)]
        answer = await asyncio.gather(
            host.feedback("l", right[0]),
            host.feedback("l", wrong[0]),
            host.feedback("l", {"events": right[1:]}),
            host.feedback("l", wrong[1]),
            host.feedback("l", event(0, feedback_id="f0")),
            return_exceptions=True,
        )
        assert answer[0]["version"] == 34
        assert isinstance(answer[1], errors.Conflict)
        assert [one["version"] for one in answer[2]["results"]] == [35, 36]
        assert isinstance(answer[3], errors.NotFound)
        assert (answer[4]["version"], answer[4]["duplicate"]) == (1, True)
        assert await host.export("l") == folded(range(36), 36)

    with_host(body)


def test_a_batch_of_predictions_is_remembered_as_a_whole(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 4)
        asked = [{"features": {"w1": float(i)}, "remember": i % 2 == 0} for i in range(6)]
        reply = (await host.predict("a", {"instances": asked}))["predictions"]
        assert ["prediction_id" in one for one in reply] == [True, False] * 3
        for one in reply[::2]:
            await host.feedback("a", {"prediction_id": one["prediction_id"], "label": "a"})
        with pytest.raises(errors.Unprocessable) as caught:
            await host.predict("a", {"instances": [asked[0], {"features": {"w": None}}]})
        assert caught.value.errors[0]["pointer"] == "/instances/1/features/w"

    with_host(body)


def test_min_version_waits_within_a_bound(with_host):
    async def body(host):
        await host.create("a", SPEC)
        waiting = asyncio.create_task(host.predict("a", {"features": ["x"], "min_version": 3}))
        await teach(host, "a", 3)
        assert (await waiting)["version"] == 3

    async def refused(host):
        with pytest.raises(errors.Conflict) as caught:
            await host.predict("a", {"features": ["x"], "min_version": 4})
        assert caught.value.headers["Retry-After"]

    with_host(body, version_wait=600.0)
    with_host(refused, version_wait=0.2)
