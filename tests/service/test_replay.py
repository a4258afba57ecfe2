"""Replaying and verifying logs."""

import io

import pytest
from typer.testing import CliRunner

from feedrank import learners
from feedrank.learners import codec
from feedrank.service.commands import rebuild as replay_commands
from feedrank.service.contract import faults as errors
from feedrank.service.runtime.replay import replay, verify
from feedrank.service.store import Draft, Snapshot
from feedrank.service.store.shared import spool

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def event(i):
    return {"features": {f"w{i % 7}": 1.0, "x": 2.0}, "label": "abc"[i % 3], "feedback_id": f"f{i}"}


async def history(host, spec=SPEC):
    await host.create("a", spec)
    for i in range(30):
        await host.feedback("a", event(i))
    await host.retract("a", {"feedback_id": "f26"})
    for i in range(30, 40):
        await host.feedback("a", event(i))
    for loaded in host._memory._learners.values():
        await loaded.saver.settle()


def test_a_replay_gives_the_learner_and_what_another_would_have_been(with_host):
    async def body(host):
        await history(host)
        seen = []
        reply = await replay(
            host.store,
            "a",
            spec={"task": "multiclass"},
            progress=lambda done, total: seen.append((done, total)),
        )
        assert (reply.first, reply.last, reply.refused) == (1, 41, 0)
        assert learners.dump(reply.own.learner) == await host.export("a")
        assert reply.own.history() == (await host.history("a"))["points"]
        assert reply.other.learner.progress.rounds == 39
        assert reply.other.learner.spec["algorithm"] != "predtron"
        assert seen[-1] == (41, 41)
        until = await replay(host.store, "a", until=30)
        assert until.own.learner.progress.rounds == 30
        foreign = await replay(host.store, "a", spec={"task": "multilabel"})
        assert foreign.refused == 39
        with pytest.raises(errors.Unprocessable):
            await replay(host.store, "a", spec={"task": "none"})
        with pytest.raises(errors.NotFound):
            await replay(host.store, "b")

    with_host(body, snapshot_every=7)


@pytest.mark.parametrize("retention", [0, 5])
def test_a_sound_store_verifies(with_host, retention):
    async def body(host):
        await history(host)
        await host.create("empty", SPEC)
        await host.restore("copy", await host.export("a"))
        reports = {report.name: report for report in await verify(host.store)}
        assert {name: report.problems for name, report in reports.items()} == {
            "a": [],
            "copy": [],
            "empty": [],
        }
        assert reports["a"].snapshots == 2
        assert reports["a"].version == 41

    with_host(body, snapshot_every=4, log_retention=retention)


def test_what_is_wrong_is_found(with_host):
    async def body(host):
        await history(host, SPEC | {"tokenizer": "words-1"})
        log = (await host._catalogue.find("a")).log
        await host.create("b", SPEC)
        await host.feedback("b", event(1))
        # Which versions were saved depends on how busy the saver was.
        saved = [await host.store.snapshot(log, version) for version in range(1, 42)]
        data = next(snapshot.data for snapshot in saved if snapshot is not None)
        other = (await host._catalogue.find("b")).log
        await host.store.append(other, [Draft(b'{"truth": {"label": 7}, "instance": {"features": ["x"]}}')])
        await host.store.save(other, Snapshot(2, "wrong", data), {}, keep=2, floor=1)
        (report,) = await verify(host.store, ["b"])
        assert ["checksum" in problem for problem in report.problems] == [True, False]
        assert "event 2 cannot be applied" in report.problems[1]
        (report,) = await verify(host.store, ["a"])
        assert report.problems == []

    with_host(body, snapshot_every=4)


def command(app, *arguments):
    return CliRunner().invoke(app, arguments)


def test_the_commands_print_curves_and_verdicts(with_host, store_url, tmp_path):
    with_host(history, snapshot_every=7)
    other = tmp_path / "other.json"
    other.write_text('{"task": "multiclass"}')
    reply = command(replay_commands.replay, "a", "--spec", str(other), "--store", store_url)
    assert reply.exit_code == 0, reply.stderr
    assert "its own (predtron): 39 rounds" in reply.stdout
    assert "the other (auto): 39 rounds" in reply.stdout
    assert command(replay_commands.verify, "--store", store_url).stdout == "1 learners, 41 events: sound\n"

    async def spoil(host):
        log = (await host._catalogue.find("a")).log
        await host.store.save(log, Snapshot(40, "wrong", b"data"), {}, keep=9, floor=1)

    with_host(spoil, snapshot_every=10**6)
    reply = command(replay_commands.verify, "a", "--store", store_url)
    assert reply.exit_code == 1
    assert "a: snapshot at version 40: these bytes are not a snapshot" in reply.stdout
    for wrong in (("none",), ("a", "--spec", str(tmp_path / "none.json"))):
        reply = command(replay_commands.replay, *wrong, "--store", store_url)
        assert reply.exit_code == 1
        assert reply.stderr.count("\n") == 1
        assert reply.stderr.startswith("feedrank: ")


async def two(host):
    await history(host)
    await host.create("b", {**SPEC, "bias": True})
    for i in range(20):
        await host.feedback("b", event(i))


def test_several_learners_are_replayed_by_other_processes_to_the_same_bits(with_host, store_url, tmp_path):
    with_host(two, snapshot_every=7)
    alone = [command(replay_commands.replay, name, "--store", store_url).stdout.splitlines() for name in "ab"]
    state = tmp_path / "state.jsonl"
    arguments = ("a", "b", "--store", store_url, "--workers", "2", "--state", str(state))
    reply = command(replay_commands.replay, *arguments)
    assert reply.exit_code == 0, reply.stderr
    assert reply.stdout.splitlines() == [line for shown in alone for line in (shown[0], shown[-1])]
    assert reply.stdout.count("fingerprint") == 2
    rows = state.read_bytes()
    assert command(replay_commands.replay, *arguments).stdout == reply.stdout
    assert state.read_bytes() == rows  # nothing was run again

    async def more(host):
        await host.feedback("b", event(20))

    with_host(more, snapshot_every=7)
    assert "b: versions 1 to 21" in command(replay_commands.replay, *arguments).stdout
    assert state.read_bytes().count(b"\n") == 3
    spec = tmp_path / "other.json"
    spec.write_text('{"task": "none"}')
    for wrong in (("a", "none"), ("a", "b", "--spec", str(spec))):
        reply = command(replay_commands.replay, *wrong, "--store", store_url, "--workers", "1")
        assert reply.exit_code == 1
        assert reply.stderr.count("\n") == 1


def test_a_dask_cluster_replays_to_the_same_bits(with_host, store_url):
    distributed = pytest.importorskip("distributed")
    with_host(two, snapshot_every=7)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        reply = command(replay_commands.replay, "a", "b", "--store", store_url, "--dask", address)
    assert reply.exit_code == 0, reply.stderr

    async def here(host):
        for name in "ab":
            own = (await replay(host.store, name)).own
            assert f" {learners.fingerprint(own.learner)}\n" in reply.stdout

    with_host(here, snapshot_every=7)


def test_snapshots_of_older_releases_are_no_fault_of_the_store(with_host):
    async def body(host):
        await history(host, SPEC | {"tokenizer": "words-1"})
        log = (await host._catalogue.resolve("a")).log
        until = await replay(host.store, "a", until=41)
        del until.own.learner.spec["tokenizer"]  # as a release wrote it that did not know this parameter
        with spool() as out:
            digest = until.own.dump(out)
            await host.store.save(log, Snapshot(41, digest, out), {}, keep=9, floor=1)
        (report,) = await verify(host.store)
        assert (report.problems, report.notes) == ([], [])
        older = io.BytesIO()
        digest = until.own.dump(older)
        data = bytearray(older.getvalue())
        data[data.index(codec.MAGIC) + 8] = codec.FORMAT - 1
        await host.store.save(log, Snapshot(40, digest, bytes(data)), {}, keep=9, floor=1)
        (report,) = await verify(host.store)
        assert report.problems == []
        assert report.notes == ["snapshot at version 40 is of an older release and is not used"]

    with_host(body, snapshot_every=100)
