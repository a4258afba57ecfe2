"""Chunks of a stream: several on their way, every line as if it had come alone."""

import pytest

from feedrank.service.contract import faults

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def learn(i):
    return "feedback", {"features": {f"w{i}": 1.0}, "label": "ab"[i % 2]}


ASK = "predict", {"features": {"w0": 1.0}, "remember": False}


def test_a_line_sees_what_stands_before_it_in_chunks_that_are_on_their_way(with_host):
    async def body(host):
        await host.create("a", SPEC)
        stream = await host.stream("a")
        await stream.put([learn(0), ASK, learn(1)])
        await stream.put([ASK, learn(2)])
        chosen = "predict", {"features": {"w0": 1.0}, "prediction_id": "mine"}
        taught = "feedback", {"prediction_id": "mine", "label": "b"}
        await stream.put([learn(3), chosen, taught, ASK])
        assert len(stream) == 3
        replies = [await stream.get() for _ in range(3)]
        assert [[reply["version"] for reply in chunk] for chunk in replies] == [
            [1, 1, 2],
            [2, 3],
            [4, 4, 5, 5],
        ]
        assert replies[2][2]["served_loss"] == 1.0

    with_host(body)


def test_a_refused_line_costs_one_line_of_its_chunk(with_host):
    async def body(host):
        await host.create("a", SPEC)
        stream = await host.stream("a")
        for _ in range(2):
            await stream.put([learn(0), ("feedback", {"features": {"w": 1.0}}), ("predict", {}), learn(1)])
        for first in (1, 3):
            one, two, three, four = await stream.get()
            assert (one["version"], four["version"]) == (first, first + 1)
            assert isinstance(two, faults.Unprocessable)
            assert isinstance(three, faults.Unprocessable)

    with_host(body)


def test_what_was_handed_over_is_written_though_nobody_waits(with_host):
    async def body(host):
        await host.create("a", SPEC)
        stream = await host.stream("a")
        await stream.put([learn(0)])
        await stream.put([learn(1)])
        stream.close()
        assert (await host.predict("a", {**ASK[1], "min_version": 2}))["version"] == 2

    with_host(body)


def test_a_learner_that_is_deleted_meanwhile_refuses_each_line(with_host):
    async def body(host):
        with pytest.raises(faults.NotFound):
            await host.stream("a")
        await host.create("a", SPEC)
        stream = await host.stream("a")
        await stream.put([learn(0)])
        await stream.get()
        await host.delete("a")
        await stream.put([learn(1), ASK])
        assert [type(reply) for reply in await stream.get()] == [faults.NotFound] * 2

    with_host(body)


def test_a_chunk_that_fails_does_not_shift_the_replies_of_the_next(with_host, monkeypatch):
    async def body(host):
        await host.create("a", SPEC)
        stream = await host.stream("a")
        await stream.put([learn(0)])
        with monkeypatch.context() as broken:
            broken.setattr(host._writer, "read", None)
            with pytest.raises(TypeError):
                await stream.put([learn(1)])
        await stream.put([learn(2), ASK])
        assert [reply["version"] for reply in await stream.get()] == [1]
        assert [reply["version"] for reply in await stream.get()] == [2, 2]

    with_host(body)


def test_a_failing_chunk_behind_one_without_calls_takes_no_other_away(with_host, monkeypatch):
    async def body(host):
        await host.create("a", SPEC)
        stream = await host.stream("a")
        await stream.put([])  # all lines of it were refused before
        await stream.put([learn(0)])
        with monkeypatch.context() as broken:
            broken.setattr(host._writer, "read", None)
            with pytest.raises(TypeError):
                await stream.put([learn(1)])
        assert await stream.get() == []
        assert [reply["version"] for reply in await stream.get()] == [1]

    with_host(body)


def test_only_outcomes_that_can_be_asked_for_again_are_saved(with_host):
    async def teach(host):
        await host.create("a", SPEC)
        stream = await host.stream("a")
        named = "feedback", {**learn(1)[1], "feedback_id": "one"}
        await stream.put([learn(0), named, learn(2)])
        await stream.get()

    async def saved(host):
        async with host._memory.use("a") as learner:
            return [await host.store.outcome(learner.log, version) is not None for version in (1, 2, 3)]

    with_host(teach)
    assert with_host(saved) == [False, True, False]
