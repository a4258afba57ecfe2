"""The steps of a chunk are done together, each as if it were alone; the kernel writes rankings as orjson does."""

import asyncio
import json
import math
import struct

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from waiting import eventually

from feedrank import learners
from feedrank.learners import kernel
from feedrank.service.contract import faults
from feedrank.service.contract.messages import loads
from feedrank.service.contract.settings import Settings
from feedrank.service.http.stream import as_line
from feedrank.service.runtime import Host
from feedrank.service.runtime.learner_state import LearnerState
from feedrank.service.store import open_store

NATIVE = pytest.mark.skipif(kernel.ranking_json is None, reason="the NumPy kernel leaves it to orjson")
BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
NUMBERS = st.one_of(
    st.floats(),
    BITS,
    st.integers(-(10**17), 10**17).map(float),
    st.builds(lambda digits, power: float(f"{digits}e{power}"), st.integers(-999, 999), st.integers(-30, 30)),
)
PAIRS = st.lists(st.tuples(st.text(max_size=4), NUMBERS), max_size=4)


@NATIVE
@settings(max_examples=2_000)
@given(PAIRS, st.booleans())
@example([("a", -0.0), ("b", 5e-324), ("c", 1.7976931348623157e308), ("d", 9007199254740993.0)], False)
@example([("a", 1e15), ("b", 1e16), ("c", 1e17), ("d", 1e-5), ("e", 1e-6), ("f", 1e22), ("g", 1e23)], True)
def test_a_ranking_is_written_as_orjson_writes_it(ranking, likely):
    probabilities = [score / 3 for _, score in ranking] if likely else []
    written = kernel.ranking_json("label", ranking, probabilities)
    entries = [{"label": name, "score": score} for name, score in ranking]
    for entry, probability in zip(entries, probabilities, strict=False):
        entry["probability"] = probability
    unusual = any(set(name) & {'"', "\\"} or min(name, default=" ") < " " for name, _ in ranking)
    if unusual or not all(map(math.isfinite, [score for _, score in ranking])):
        assert written is None
    else:
        assert written == orjson.dumps(entries)


@NATIVE
@pytest.mark.parametrize("ranking", [[("a", 1)], [["a", 1.0]], [("a",)], [(1, 1.0)], [("a", None)], [None]])
def test_what_is_no_ranking_is_left_to_others(ranking):
    assert kernel.ranking_json("label", ranking, []) is None


def line(kind, body):
    return kind, loads(json.dumps(body).encode())


def rounds(count):
    for i in range(count):
        words = {f"w{(i * j) % 17}": 1.0 + j / 7 for j in range(1, 6)}
        yield line("predict", {"features": words, "top": 2, "remember": False})
        yield line("feedback", {"features": words, "label": f"l{i % 3}"})


@pytest.mark.parametrize(
    "spec",
    [
        {"task": "multiclass"},
        {"task": "multiclass", "algorithm": "predtron"},
        {"task": "label-ranking", "algorithm": "dual-ascent"},
    ],
)
def test_a_chunk_gives_the_replies_of_single_calls(with_host, spec):
    async def body(host):
        for name in ("one", "many"):
            await host.create(name, spec)
        alone = [
            await (host.predict if kind == "predict" else host.feedback)("one", request)
            for kind, request in rounds(60)
        ]
        stream = await host.stream("many")
        await stream.put(list(rounds(60)))
        together = await stream.get()
        for one, other in zip(alone, together, strict=True):
            if "learner" in one:
                one["learner"] = "many"
            assert as_line(other) == orjson.dumps(one) + b"\n"

    with_host(body)


def test_an_accident_in_a_chunk_loses_no_event(with_host, monkeypatch):
    apply = LearnerState.apply

    def broken(state, version, event):
        if version == 5 and not failed:
            failed.append(version)
            raise MemoryError
        return apply(state, version, event)

    failed = []

    async def body(host):
        failed.clear()
        await host.create("a", {"task": "multiclass", "algorithm": "predtron"})
        stream = await host.stream("a")
        with monkeypatch.context() as patched:
            patched.setattr(LearnerState, "apply", broken)
            await stream.put(list(rounds(10)))
            replies = await stream.get()
        assert failed == [5]
        refused = [at for at, reply in enumerate(replies) if isinstance(reply, faults.ServiceError)]
        assert refused == [
            9,
            10,
        ]  # the prediction behind it has no state to ask; the next event brings it back
        assert all(isinstance(replies[at], faults.StateDropped) for at in refused)
        assert [reply["version"] for reply in replies if "duplicate" in as_json(reply)] == [
            1,
            2,
            3,
            4,
            6,
            7,
            8,
            9,
            10,
        ]
        assert (await host.info("a"))["version"] == 10

    with_host(body)


def as_json(reply):
    return orjson.loads(as_line(reply))


def taught(count, without=0):
    """The loss of each event of `lesson`, by version."""
    learner, losses = learners.build(LESSONS), {}
    for i in range(count):
        if i + 1 != without:
            one = lesson(i)
            losses[i + 1] = learner.learn({"features": one["features"]}, {"label": one["label"]}).loss
    return losses


LESSONS = {"task": "multiclass", "algorithm": "predtron"}


def lesson(i):
    return {"features": {"x": 1.0, f"v{i % 2}": 0.5}, "label": "ba"[i % 3 == 0], "feedback_id": f"f{i}"}


def test_a_first_reply_knows_of_no_retraction_that_came_after_its_event(store_url):
    """Appended, then something before them retracted, then applied: the replies are those of the log's order."""
    losses, others = taught(8), taught(8, without=4)
    assert [at for at in others if others[at] != losses[at]] == [5, 8]

    async def main():
        store = await open_store(store_url)
        one, two = hosts = [Host(store, Settings()) for _ in range(2)]
        try:
            await one.create("a", LESSONS)
            async with two._memory.use("a") as learner, learner.order:  # it stays at version 0
                for i in range(4):
                    await one.feedback("a", lesson(i))
                replies = asyncio.gather(*(two.feedback("a", lesson(i)) for i in range(4, 8)))

                async def appended():
                    return (await store.head(learner.log)).version == 8

                await eventually(appended)
                assert (await one.retract("a", {"feedback_id": "f3"}))["version"] == 9
            first = await replies
            assert {reply["version"]: reply["loss"] for reply in first} == {
                at: losses[at] for at in range(5, 9)
            }
            for host in hosts:
                again = [await host.feedback("a", lesson(i)) for i in range(4, 8)]
                assert again == [{**reply, "duplicate": True} for reply in first]
        finally:
            for host in hosts:
                await host.close()
            await store.close()

    asyncio.run(main())
