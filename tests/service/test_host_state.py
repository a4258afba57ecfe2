"""A learner is a fold of its log: whatever is loaded, saved, retracted, trimmed or dropped, it is that fold to the bit."""

import asyncio
import errno
import time
from io import BytesIO
from itertools import pairwise

import pytest
from host_events import SPEC, event, folded, teach
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.contract.messages import Event
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host, checkpoints, folding
from feedrank.service.runtime.learner_state import MOST_POINTS, LearnerState, Series
from feedrank.service.store import Draft, Snapshot


async def settle(host):
    """Wait for snapshots that are on their way."""
    for loaded in list(host._memory._learners.values()):
        if loaded.saver._saving is not None:
            await loaded.saver.settle()


class Crash(Exception):
    """Leaves a Host without its goodbye."""


async def crash(host):
    """End as a kill does: nothing is saved that was not."""
    host._memory._learners.clear()


# Loading


@pytest.mark.parametrize("every", [1, 3, 1000])
@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_gives_the_same_bits_and_the_same_replies(with_host, every, clean):
    async def before(host):
        await host.create("a", SPEC)
        replies = await teach(host, "a", 10)
        if not clean:
            await settle(host)
            await crash(host)
        return replies

    async def after(host):
        assert await host.export("a") == folded(range(10), 10)
        assert await teach(host, "a", 10) == [{**reply, "duplicate": True} for reply in replies]
        assert (await host.history("a"))["points"][-1]["rounds"] == 10
        await teach(host, "a", 5, start=10)
        assert await host.export("a") == folded(range(15), 15)

    replies = with_host(before, snapshot_every=every)
    with_host(after, snapshot_every=every)


def test_a_damaged_snapshot_is_passed_over_while_the_log_reaches_back(with_host):
    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 10)
        log = (await host._catalogue.find("a")).log
        for version, data in ((8, b"not a snapshot"), (9, b"FEEDFOLD" + bytes(100))):
            await host.store.save(log, Snapshot(version, "digest", data), {}, keep=9, floor=1)
        await crash(host)

    async def after(host):
        assert await host.export("a") == folded(range(10), 10)

    with_host(before)
    with_host(after)


def test_a_learner_with_neither_snapshot_nor_log_says_so(with_host):
    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 10)
        log = (await host._catalogue.find("a")).log
        await host.store.save(log, Snapshot(9, "digest", b"damaged"), {}, keep=1, floor=9)
        await crash(host)

    async def after(host):
        with pytest.raises(errors.StoreUnavailable, match="no snapshot"):
            await host.info("a")

    with_host(before)
    with_host(after)


def test_an_event_that_cannot_be_applied_is_skipped_and_nothing_is_poisoned(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 3)
        log = (await host._catalogue.find("a")).log
        bad = Event({"label": 7}, {"features": ["x"]})  # as no version that checks would have written
        await host.store.append(log, [Draft(bad.body())])
        await teach(host, "a", 3, start=3)
        assert (await host.info("a"))["version"] == 7
        assert host.stats()["skipped_events"] == 1
        assert await host.export("a") == folded(range(6), 7)

    with_host(body)


def test_many_learners_share_a_small_memory(with_host):
    async def body(host):
        for i in range(30):
            await host.create(f"n{i}", SPEC)
        for round in range(3):
            for i in range(30):
                await host.feedback(f"n{i}", event(round + i))
        assert host.stats()["loaded_learners"] <= 6
        assert host.stats()["loaded_bytes"] <= 100_000
        for i in range(30):
            assert await host.export(f"n{i}") == folded([i, i + 1, i + 2], 3)

    with_host(body, memory=100_000)


def test_a_log_of_large_events_is_read_a_few_at_a_time(with_host, monkeypatch):
    monkeypatch.setattr(folding, "PAGE_BYTES", 3_000)
    read = []

    async def write(host):
        await host.create("a", SPEC)
        for i in range(120):
            many = {f"word-{i}-{j}": 1.0 for j in range(1 if i < 60 else 60)}  # some 50 bytes, then 1,000
            await host.feedback("a", {"features": many, "label": "ab"[i % 2]})
        await crash(host)

    async def look(host):
        own = host.store.read

        async def spy(*arguments):
            entries = await own(*arguments)
            read.append(sum(len(entry.body) for entry in entries))
            return entries

        monkeypatch.setattr(host.store, "read", spy)
        assert (await host.info("a"))["version"] == 120

    with_host(write, snapshot_every=10**6)
    with_host(look)
    assert (
        sum(size > 6_000 for size in read) <= 1
    )  # where the events grow, one page was chosen by the small ones
    assert len(read) < 60


def test_concurrent_first_uses_load_once(with_host):
    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 5)

    async def after(host):
        reply = await asyncio.gather(*(host.feedback("a", event(i)) for i in range(50)))
        assert sorted(r["version"] for r in reply) == list(range(6, 56))
        assert host.stats()["loaded_learners"] == 1
        entries = (await host.events("a", after=5))["events"]
        learner = learners.build(SPEC)
        for i in range(5):
            learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
        for entry in entries:
            learner.learn(entry["instance"], entry["truth"])
        assert await host.export("a") == learners.dump(learner)

    with_host(before)
    with_host(after)


def test_a_request_that_is_given_up_is_still_applied(with_host):
    async def body(host):
        await host.create("a", SPEC)
        (loaded,) = host._memory._learners.values()
        task = asyncio.create_task(host.feedback("a", event(0)))
        while not loaded.appending:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reply = await host.predict("a", {"features": ["x"], "min_version": 1})
        assert reply["version"] == 1
        assert await host.export("a") == folded([0], 1)

    with_host(body)


# Retracting


@pytest.mark.parametrize("every", [1, 4, 1000])
def test_a_retracted_event_never_happened(with_host, every):
    async def body(host):
        await host.create("a", SPEC)
        replies = await teach(host, "a", 10)
        answer = await host.predict("a", {"features": event(10)["features"]})
        await host.feedback("a", {"prediction_id": answer["prediction_id"], "label": event(10)["label"]})
        await settle(host)
        assert await host.retract("a", {"feedback_id": "f4"}) == {
            "version": 12,
            "retracted": 5,
            "duplicate": False,
            "state": "done",
        }
        assert await host.export("a") == folded([i for i in range(11) if i != 4], 12)
        assert await host.retract("a", {"feedback_id": "f4"}) == {
            "version": 12,
            "retracted": 5,
            "duplicate": True,
            "state": "done",
        }
        await host.retract("a", {"prediction_id": answer["prediction_id"]})
        await host.retract("a", {"feedback_id": "f0"})
        await teach(host, "a", 2, start=11)
        numbers = [i for i in range(13) if i not in (0, 4, 10)]
        assert await host.export("a") == folded(numbers, 16)
        assert (await host.info("a"))["progress"]["rounds"] == 10
        assert (await host.history("a"))["points"][-1]["rounds"] == 10
        # Its id stays known, and the reply is the first one.
        assert await host.feedback("a", event(4, feedback_id="f4")) == {**replies[4], "duplicate": True}
        with pytest.raises(errors.Conflict):
            await host.feedback("a", {**event(4), "feedback_id": "f4", "label": "other"})
        with pytest.raises(errors.NotFound):
            await host.retract("a", {"feedback_id": "unknown"})
        shown = (await host.events("a"))["events"]
        assert [e["version"] for e in shown if e.get("retracted")] == [1, 5, 11]
        assert [e["retracts"] for e in shown if e["kind"] == "retraction"] == [5, 11, 1]
        return numbers, replies

    async def after(host):
        assert await host.export("a") == folded(numbers, 16)
        assert await teach(host, "a", 10) == [{**reply, "duplicate": True} for reply in replies]

    numbers, replies = with_host(body, snapshot_every=every)
    with_host(after, snapshot_every=every)


def test_what_the_log_no_longer_holds_cannot_be_retracted(with_host):
    async def body(host):
        await host.create("a", SPEC)
        # Nothing is saved while a save is on its way: which versions are is known where each is waited for.
        for count in (5, 10, 15, 20):
            await teach(host, "a", count)
            await settle(host)
        head = await host.store.head((await host._catalogue.find("a")).log)
        assert head.snapshots == (15, 20)
        assert head.floor == 16
        for i in (0, 14):
            with pytest.raises(errors.Conflict):
                await host.retract("a", {"feedback_id": f"f{i}"})
        await host.retract("a", {"feedback_id": "f15"})
        assert await host.export("a") == folded([i for i in range(20) if i != 15], 21)
        assert (await host.feedback("a", event(0, feedback_id="f0")))["duplicate"]  # ids outlive the log
        page = await host.events("a")
        assert (page["floor"], page["events"][0]["version"]) == (16, 16)

    with_host(body, snapshot_every=5, log_retention=2)


def test_after_the_end_of_the_log_there_are_no_events_however_far(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 3)
        for after in (3, 4, 2**32, 2**63 - 1):
            assert await host.events("a", after=after) == {"events": [], "next": None, "floor": 1}

    with_host(body)


@pytest.mark.parametrize("passed", [True, False])
def test_retention_by_age_keeps_what_is_young_though_the_clock_is_set_ahead(with_host, monkeypatch, passed):
    wall, steady = [1_000_000.0], [0.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])
    monkeypatch.setattr(checkpoints, "CLOCK", checkpoints.Clock(lambda: wall[0], lambda: steady[0]))

    async def body(host):
        await host.create("a", SPEC)
        for start in (0, 4, 8, 12):
            if start == 8:
                wall[0] += 1000
                steady[0] += 1000 * passed
            await teach(host, "a", 4, start=start)
            await settle(host)
        assert (await host.events("a"))["floor"] == (9 if passed else 1)
        assert (await host.events("a"))["events"][0]["version"] == (9 if passed else 1)

    with_host(body, snapshot_every=4, snapshots_kept=2, log_retention_age=500.0)


def test_a_clock_that_is_set_back_makes_nothing_old():
    wall, steady = [500.0], [3.0]
    clock = checkpoints.Clock(lambda: wall[0], lambda: steady[0])
    wall[0], steady[0] = 100.0, 4.0
    assert clock.now() == 100.0
    wall[0], steady[0] = 900.0, 5.0
    assert clock.now() == 502.0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.integers(0, 30)),
        st.tuples(st.just("retract"), st.integers(0, 30)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps, every=st.sampled_from([1, 2, 5, 1000]))
def test_any_history_folds_to_the_events_that_stand(tmp_path_factory, steps, every):
    """Learn, withdraw, stop and crash in any order: the learner is the fold of what was not withdrawn."""
    url = f"sqlite:{tmp_path_factory.mktemp('any') / 'a.db'}"
    standing, withdrawn, version = [], set(), 0
    todo = [*steps, ("restart", False)]

    async def main():
        nonlocal version
        async with Host.open(url, Settings(snapshot_every=every)) as host:
            await host.create("a", SPEC)
            while todo:
                step, value = todo.pop(0)
                if step == "restart":
                    assert await host.export("a") == folded(standing, version)
                    if value:
                        await settle(host)
                        await crash(host)
                    return
                if step == "learn":
                    new = value not in standing and value not in withdrawn
                    reply = await host.feedback("a", event(value, feedback_id=f"f{value}"))
                    assert reply["duplicate"] is not new
                    standing.extend([value] * new)
                elif value in standing:
                    new = True
                    await host.retract("a", {"feedback_id": f"f{value}"})
                    standing.remove(value)
                    withdrawn.add(value)
                else:
                    continue
                version += new
                assert (await host.info("a"))["version"] == version

    while todo:
        asyncio.run(main())


# The curve


@given(st.lists(st.floats(0, 1, allow_nan=False), min_size=1, max_size=3000), st.integers(0, 3000))
def test_a_series_is_bounded_evenly_spaced_and_exact(losses, cut):
    series, total = Series(MOST_POINTS), 0.0
    totals = {}
    for rounds, loss in enumerate(losses, start=1):
        total += loss
        totals[rounds] = total
        series.add(rounds, total)
        if rounds == cut:
            series = Series(MOST_POINTS, series.stride, list(series.points))  # as if saved
    points = series.points
    assert len(points) <= MOST_POINTS
    assert len(points) >= min(len(losses), MOST_POINTS // 2 - 1)
    assert points == [(r, totals[r]) for r in range(series.stride, len(losses) + 1, series.stride)]
    now = (len(losses), total)
    assert series.until(*now) == [*points[:-1], now]
    few = series.until(*now, most=7)
    assert len(few) <= 7
    assert few[-1] == now
    assert set(few) <= {*points, now}


def test_times_and_experts_along_the_curve_are_part_of_the_fold_and_survive_a_snapshot():
    state = LearnerState(learners.build({"task": "multiclass"}))
    for i in range(1100):
        words = {"features": {f"w{i % 7}": 1.0}}
        state.apply(i + 1, Event({"label": f"l{i % 3}"}, words, at=1000.0 + i))
    points = state.history()
    assert [point["at"] for point in points] == [999.0 + point["rounds"] for point in points]
    assert len(state.experts()) == len(points[0]["experts"]) > 1
    assert [row["mean_loss"] for row in state.learner.model.expert_rows()] == list(points[-1]["experts"])
    data, out = BytesIO(), BytesIO()
    digest = state.dump(data)
    data.seek(0)
    again = LearnerState.load(data, digest)
    assert again.history() == points
    assert again.dump(out) == digest
    assert out.getvalue() == data.getvalue()


def test_the_windows_of_a_curve_add_up_to_its_loss():
    state = LearnerState(learners.build(SPEC))
    for i in range(1500):
        state.apply(i + 1, Event({"label": event(i)["label"]}, {"features": event(i)["features"]}))
    points = state.history()
    places = [0, *(point["rounds"] for point in points)]
    widths = [b - a for a, b in pairwise(places)]
    lost = sum(point["window_loss"] * width for point, width in zip(points, widths, strict=True))
    assert lost == pytest.approx(state.learner.progress.cumulative_loss, abs=1e-9)
    assert points[-1]["rounds"] == 1500


# Carrying


def test_a_name_that_is_taken_while_a_snapshot_is_restored_is_a_conflict(with_host, monkeypatch):
    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", event(0))
        data = await host.export("a")
        own = host.store.save

        async def save(*arguments, **options):
            await host.create("b", SPEC)  # whoever comes first clears what a crash may have left of the name
            return await own(*arguments, **options)

        monkeypatch.setattr(host.store, "save", save)
        with pytest.raises(errors.Conflict, match="another request"):
            await host.restore("b", data)
        monkeypatch.setattr(host.store, "save", own)
        assert (await host.info("b"))["version"] == 0
        await host.feedback("b", event(1))

    with_host(body)


def test_a_learner_travels_as_one_file(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 10)
        await host.retract("a", {"feedback_id": "f3"})
        data = await host.export("a")
        assert learners.load(data).version == 11
        info = await host.restore("b", data)
        assert (info["name"], info["version"]) == ("b", 11)
        assert await host.export("b") == data
        with pytest.raises(errors.Conflict):
            await host.restore("a", data)
        for damaged in (b"", data[:-1], data[:50] + b"\0" + data[51:], b"FEEDRANK" + bytes(100)):
            with pytest.raises(errors.Unprocessable):
                await host.restore("c", damaged)
        with pytest.raises(errors.NotFound):
            await host.info("c")
        for name in ("a", "b"):
            await teach(host, name, 5, start=10)
        assert await host.export("a") == await host.export("b")
        with pytest.raises(errors.NotFound):  # the log of b starts with b
            await host.retract("b", {"feedback_id": "f1"})
        await host.restore("empty", learners.dump(learners.build(SPEC)))
        assert (await host.info("empty"))["version"] == 0
        await crash(host)

    async def after(host):
        assert (await host.info("b"))["version"] == 16
        assert await host.export("a") == await host.export("b")

    with_host(body)
    with_host(after)


def test_snapshots_of_another_release_are_no_judges_of_the_state(with_host, monkeypatch):
    """They cannot be read and their digests differ: the log is folded anew once, not for ever."""

    def other(state, file):
        file.write(b"another format")
        return "other"

    async def before(host):
        await host.create("a", SPEC)
        await teach(host, "a", 12)

    with monkeypatch.context() as patched:
        patched.setattr(LearnerState, "dump", other)
        with_host(before, snapshot_every=12)

    async def after(host):
        assert (await host.info("a"))["version"] == 12
        await settle(host)
        assert host.stats()["divergences"] == 0
        await host.feedback("a", event(12))
        assert (await host.info("a"))["version"] == 13

    with_host(after, snapshot_every=12)


class UnreadableFile(BytesIO):
    def read(self, *_):
        raise OSError(errno.EIO, "Input/output error")


def test_a_temporary_file_that_cannot_be_read_costs_one_snapshot(with_host, monkeypatch, caplog):
    async def body(host):
        await host.create("a", SPEC)
        with monkeypatch.context() as broken:
            broken.setattr(checkpoints, "spool", UnreadableFile)
            await teach(host, "a", 10)
            async with host._memory.use("a") as learner:
                await learner.saver.settle()
            assert host.stats()["snapshots"] == 0
        await teach(host, "a", 10, 10)
        async with host._memory.use("a") as learner:
            await learner.saver.settle()
        assert host.stats()["snapshots"] == 1

    with_host(body, snapshot_every=10)
    assert "at 10 was not saved: [Errno 5] Input/output error" in caplog.text
