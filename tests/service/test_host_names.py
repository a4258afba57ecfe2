"""Names of learners on both stores: made once, listed, switched by aliases, freed when a learner is deleted."""

import asyncio

import pytest
from host_events import SPEC, crash, event, teach

from feedrank.service.contract import faults as errors
from feedrank.service.contract import name_lengths
from feedrank.service.store import Closed


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


def test_an_empty_store_lists_nothing(with_host):
    async def body(host):
        async with asyncio.timeout(60):
            assert await host.list() == {"learners": [], "next": None}

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


def test_a_log_with_longer_names_than_may_be_sent_is_applied(with_host, monkeypatch):
    long = "x" * 5000

    async def before(host):
        await host.create("a", SPEC)
        await host.feedback("a", {"features": [long], "label": long})
        await crash(host)

    async def after(host):
        assert (await host.info("a"))["labels"] == [long]
        with pytest.raises(errors.Unprocessable):
            await host.feedback("a", {"features": ["x"], "label": long})

    with monkeypatch.context() as patch:
        patch.setattr(name_lengths, "LONGEST", 10_000)
        with_host(before)
    with_host(after)
