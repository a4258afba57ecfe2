"""The Host keeps the contract's promises on learners, on both stores."""

import asyncio

import pytest
from host_events import LABELS, SPEC, event, folded, teach

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.store import Closed

# Names


def test_a_spec_makes_one_learner_and_never_changes(with_host):
    async def body(host):
        info, created = await host.create("a.B-c_1", SPEC)
        assert created
        assert info["version"] == 0
        assert info["spec"]["learning_rate"] == 1.0  # shown in full
        again, created = await host.create("a.B-c_1", {**SPEC, "learning_rate": 1.0})
        assert (again, created) == (info, False)
        with pytest.raises(errors.Conflict):
            await host.create("a.B-c_1", {**SPEC, "learning_rate": 2.0})
        with pytest.raises(errors.Unprocessable) as caught:
            await host.create("b", {**SPEC, "strange": 1})
        assert caught.value.errors[0]["pointer"] == "/strange"

    with_host(body)


@pytest.mark.parametrize("name", ["", "-a", ".a", "a/b", "a b", "ü", "a" * 129, "a\n"])
def test_names_that_are_none_are_refused(with_host, name):
    async def body(host):
        with pytest.raises(errors.Unprocessable):
            await host.create(name, SPEC)
        with pytest.raises(errors.NotFound):
            await host.info(name)
        with pytest.raises(errors.NotFound):
            await host.delete(name)

    with_host(body)


def test_an_unknown_learner_is_not_found_anywhere(with_host):
    async def body(host):
        calls = [
            host.info("no"),
            host.predict("no", {"features": ["x"]}),
            host.feedback("no", event(1)),
            host.retract("no", {"feedback_id": "f"}),
            host.events("no"),
            host.history("no"),
            host.export("no"),
            host.delete("no"),
            host.alias("other", "no"),
        ]
        for call in calls:
            with pytest.raises(errors.NotFound):
                await call

    with_host(body)


def test_learners_are_listed_in_pages_without_aliases(with_host):
    async def body(host):
        names = [f"n{i:02d}" for i in range(12)]
        for name in names:
            await host.create(name, SPEC)
        for i in range(0, 12, 2):
            await host.alias(f"n{i:02d}-alias", "n00")
        await teach(host, "n03", 2)
        met, cursor = [], None
        while True:
            page = await host.list(5, cursor)
            met += page["learners"]
            cursor = page["next"]
            if cursor is None:
                break
        assert [entry["name"] for entry in met] == names
        assert met[3] == {"name": "n03", "task": "multiclass", "algorithm": "predtron", "version": 2}
        for limit, bad in ((0, None), (1001, None), (5, "!"), (5, "AAAA")):
            with pytest.raises(errors.Unprocessable):
                await host.list(limit, bad)

    with_host(body)


def test_an_alias_can_be_switched_and_is_no_learner(with_host):
    async def body(host):
        await host.create("one", SPEC)
        await host.create("two", SPEC)
        assert await host.alias("live", "one") == {"name": "live", "learner": "one"}
        await host.feedback("live", event(1))
        await host.alias("live", "two")
        assert (await host.predict("live", {"features": ["x"]}))["learner"] == "two"
        assert [(await host.info(name))["version"] for name in ("one", "two")] == [1, 0]
        assert (await host.info("live"))["name"] == "two"
        with pytest.raises(errors.Conflict):
            await host.alias("one", "two")
        with pytest.raises(errors.Conflict):
            await host.create("live", SPEC)
        with pytest.raises(errors.NotFound):
            await host.alias("other", "live")  # an alias of an alias
        await host.delete("two")
        with pytest.raises(errors.NotFound):
            await host.info("live")
        await host.delete("live")
        assert (await host.create("live", SPEC))[1]

    with_host(body)


def test_a_deleted_learner_leaves_nothing_to_its_successor(with_host):
    async def body(host):
        await host.create("a", SPEC)
        given = (await host.predict("a", {"features": ["x"]}))["prediction_id"]
        await teach(host, "a", 3)
        await host.delete("a")
        with pytest.raises(errors.NotFound):
            await host.info("a")
        assert (await host.create("a", SPEC))[1]
        assert (await host.info("a"))["version"] == 0
        assert (await host.feedback("a", event(0, feedback_id="f0")))["duplicate"] is False
        with pytest.raises(errors.NotFound):
            await host.feedback("a", {"prediction_id": given, "label": "a"})

    with_host(body)


def test_what_a_crash_left_of_a_name_is_finished_by_the_next(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 3)
        listed = await host._catalogue.find("a")
        # A deletion that died after its first write: the document says that the name is passing.
        document = await host.store.get("name", "a")
        await host.store.put("name", "a", document.value.replace(b'"live"', b'"passing"'), document.revision)
        host._catalogue.forget("a")
        with pytest.raises(errors.NotFound):
            await host.info("a")
        assert (await host.list())["learners"] == []
        assert (await host.create("a", SPEC))[1]
        assert (await host.info("a"))["version"] == 0
        with pytest.raises(Closed):
            await host.store.append(listed.log, [])

    with_host(body)


# Rounds


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


def test_unknown_expired_and_forged_predictions_are_told_apart(with_host, later):
    async def body(host):
        await host.create("a", SPEC)
        await host.create("b", SPEC)
        reply = (await host.predict("a", {"features": ["x"]}))["prediction_id"]
        forged = reply[:-1] + ("0" if reply[-1] != "0" else "1")
        for name, id in (("a", forged), ("a", "x"), ("a", "ü" * 32), ("b", reply)):
            with pytest.raises(errors.NotFound):
                await host.feedback(name, {"prediction_id": id, "label": "a"})
        later(101.0)
        with pytest.raises(errors.Gone):
            await host.feedback("a", {"prediction_id": reply, "label": "a"})
        assert (await host.info("a"))["version"] == 0

    with_host(body, prediction_ttl=100.0)


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


@pytest.mark.parametrize(
    ("call", "request_", "pointer"),
    [
        ("predict", {"features": ["x"], "strange": 1}, "/strange"),
        ("predict", {"features": ["x"], "remember": 1}, "/remember"),
        ("predict", {"features": ["x"], "top": 0}, "/top"),
        ("predict", {"features": ["x"], "min_version": -1}, "/min_version"),
        ("predict", {"items": []}, "/items"),
        ("predict", {"instances": []}, "/instances"),
        ("predict", {"instances": [{"features": []}], "unit": 1}, "/unit"),
        ("predict", {"instances": [{"features": []}], "top": 0}, "/instances/0/top"),
        ("predict", {"features": {"x": float("nan")}}, "/features/x"),
        ("predict", [1], ""),
        ("feedback", {"features": ["x"], "label": 1}, "/label"),
        ("feedback", {"label": "a"}, "/features"),
        ("feedback", {"prediction_id": "p", "features": ["x"], "label": "a"}, "/features"),
        ("feedback", {"features": ["x"], "label": "a", "feedback_id": ""}, "/feedback_id"),
        ("feedback", {"features": ["x"], "label": "a", "feedback_id": 7}, "/feedback_id"),
        ("feedback", {"events": {}}, "/events"),
        ("retract", {"feedback_id": "a", "prediction_id": "b"}, ""),
        ("retract", {}, ""),
    ],
)
def test_wrong_requests_are_refused_with_the_place(with_host, call, request_, pointer):
    async def body(host):
        await host.create("a", SPEC)
        with pytest.raises(errors.Unprocessable) as caught:
            await getattr(host, call)("a", request_)
        assert caught.value.errors[0]["pointer"] == pointer
        assert (await host.info("a"))["version"] == 0

    with_host(body)


def test_limits_are_refusals(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await host.create("list", {"task": "subset-ranking"})
        item = {"id": "i", "features": [1.0]}
        refused = [
            ("a", {"features": ["a", "b", "c", "d"]}),
            ("list", {"items": [{**item, "id": str(i)} for i in range(4)]}),
            ("list", {"items": [{"id": "i", "features": [1.0] * 4}]}),
            ("a", {"instances": [{"features": ["a"]}] * 4}),
        ]
        for name, request in refused:
            with pytest.raises(errors.Unprocessable):
                await host.predict(name, request)
        for label in "abc":
            await host.feedback("a", {"features": ["x"], "label": label})
        with pytest.raises(errors.Unprocessable):
            await host.feedback("a", {"features": ["x"], "label": "d"})
        await host.feedback("a", {"features": ["x"], "label": "b"})
        with pytest.raises(errors.StorageFull):
            await host.create("c", SPEC)

    with_host(body, max_features=3, max_items=3, max_batch=3, max_labels=3, max_learners=2)


def test_a_learner_that_is_full_takes_no_more(with_host):
    async def body(host):
        await host.create("a", SPEC)

        async def fill():
            for i in range(200):
                await host.feedback("a", {"features": [f"word{i}"], "label": f"label{i}"})

        with pytest.raises(errors.StorageFull):
            await fill()
        assert 0 < (await host.info("a"))["version"] < 200
        await host.predict("a", {"features": ["word1"]})

    with_host(body, max_learner_bytes=10_000)


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


def test_an_empty_store_lists_nothing(with_host):
    async def body(host):
        async with asyncio.timeout(60):
            assert await host.list() == {"learners": [], "next": None}

    with_host(body)
