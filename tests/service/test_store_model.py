"""Any sequence of operations gives what a plain Python model of a log gives, on both stores."""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_logs import emptied, run

from feedrank.service.store import (
    Clash,
    Closed,
    Diverged,
    Draft,
    Missing,
    Position,
    Record,
    Snapshot,
    Trimmed,
)


@dataclass
class Model:
    """A log, said as simply as possible."""

    entries: list = field(default_factory=list)  # (body, taken, retracted)
    ids: dict = field(default_factory=dict)
    records: dict = field(default_factory=dict)  # key -> [value, digest, taken at]
    snapshots: dict = field(default_factory=dict)
    outcomes: dict = field(default_factory=dict)
    floor: int = 1
    retracted: int = 0
    forgotten: int = 0
    closed: bool = False

    def append(self, drafts):
        if self.closed:
            raise Closed
        entries, ids = list(self.entries), dict(self.ids)
        records = {key: list(record) for key, record in self.records.items()}
        placements, retractions = [], []
        for index, draft in enumerate(drafts):
            there = {ids[id] for id in draft.ids if id in ids}
            if len(there) > 1 or any(digest != draft.digest for _, digest in there):
                raise Clash(index)
            if there:
                placements.append((there.pop()[0], False))
                continue
            # What another draft of the batch takes is still there for this one: all are checked before any is written.
            record = self.records.get(draft.take)
            if draft.take is not None and (record is None or record[2]):
                raise Missing(index)
            if draft.retracts and not (
                self.floor <= draft.base + 1 and (draft.base == 0 or draft.base in self.snapshots)
            ):
                raise Trimmed
            entries.append((draft.body, record[0] if record else None, 0))
            ids.update(dict.fromkeys(draft.ids, (len(entries), draft.digest)))
            if record and record[1]:
                records[draft.take][2] = len(entries)
            elif record:
                records.pop(draft.take, None)
            placements.append((len(entries), True))
            if draft.retracts:
                retractions.append((draft.retracts, len(entries)))
        self.entries, self.ids, self.records = entries, ids, records
        for retracted, by in retractions:
            body, taken, _ = self.entries[retracted - 1]
            self.entries[retracted - 1] = (body, taken, by)
            self.retracted = by
            self.snapshots = {v: digest for v, digest in self.snapshots.items() if v < retracted}
        return placements

    def remember(self, key, value, digest):
        if key not in self.records:
            self.records[key] = [value, digest, 0]
            return {}
        record = self.records[key]
        if record[1] != digest:
            raise Clash(0)
        return {key: b"" if 0 < record[2] < self.floor else record[0]}

    def read(self, after, limit):
        if self.closed:
            return []
        if after + 1 < self.floor:
            raise Trimmed
        return [(after + 1 + i, *entry) for i, entry in enumerate(self.entries[after : after + limit])]

    def save(self, version, digest, keep, floor, forget):
        if self.closed:
            raise Closed
        if version >= self.retracted and self.snapshots.get(version, digest) != digest:
            return self.snapshots[version]
        if version > self.forgotten:
            self.outcomes.setdefault(version, digest.encode())
        self.forgotten = max(self.forgotten, min(forget, len(self.entries)))
        self.ids = {id: row for id, row in self.ids.items() if row[0] > self.forgotten}
        self.outcomes = {v: outcome for v, outcome in self.outcomes.items() if v > self.forgotten}
        if version >= self.retracted:
            self.snapshots[version] = digest
            kept = sorted(self.snapshots)[-keep:]
            self.snapshots = {v: self.snapshots[v] for v in kept}
            self.floor = max(self.floor, min(floor, kept[0] + 1))
        return digest

    def drop(self):
        self.__init__(closed=True)


names = st.sampled_from(["i", "j", "k"])
drafts = st.builds(
    Draft,
    body=st.sampled_from([b"x", b"y"]),
    ids=st.lists(names, max_size=2, unique=True).map(tuple),
    digest=st.sampled_from(["d", "e"]),
    take=st.none() | st.sampled_from(["r", "s"]),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(drafts, min_size=1, max_size=3)),
        st.tuples(st.just("append"), st.lists(drafts, min_size=1, max_size=3)),
        st.tuples(st.just("remember"), st.sampled_from(["r", "s"]), st.sampled_from(["", "d", "e"])),
        st.tuples(st.just("retract"), st.integers(0, 8), st.integers(0, 8)),
        st.tuples(
            st.just("save"),
            st.integers(1, 8),
            st.sampled_from(["d", "e"]),
            st.integers(1, 2),
            st.integers(1, 8),
            st.integers(0, 4),
        ),
        st.tuples(st.just("drop")),
        st.tuples(st.just("diverge")),
    ),
    max_size=25,
)


async def outcome_of(call):
    """The result, or the kind of refusal and its index."""
    try:
        return await call
    except (Clash, Missing) as signal:
        return type(signal), signal.index
    except (Trimmed, Closed) as signal:
        return type(signal)


def expected_of(call, *arguments):
    try:
        return call(*arguments)
    except (Clash, Missing) as signal:
        return type(signal), signal.index
    except (Trimmed, Closed) as signal:
        return type(signal)


class Play:
    """One sequence of operations on both; `position` is where a writer was some steps ago, on the same history."""

    def __init__(self, store, log):
        self.store, self.log, self.model = store, log, Model()
        self.position = None

    async def append(self, drafts):
        placements = await outcome_of(self.store.append(self.log, drafts, self.position))
        if isinstance(placements, list):
            placements = [(one.version, one.fresh) for one in placements]
        assert placements == expected_of(self.model.append, drafts)

    async def remember(self, key, digest):
        if not self.model.closed:
            value = f"{key}{digest}".encode()
            call = self.store.remember(self.log, {key: Record(value, digest)}, 60)
            assert await outcome_of(call) == expected_of(self.model.remember, key, value, digest)

    async def retract(self, version, base):
        model = self.model
        if model.floor <= version <= len(model.entries) and base < version and not model.closed:
            await self.append([Draft(b"m", retracts=version, base=base)])

    async def save(self, version, digest, keep, floor, forget):
        if version <= len(self.model.entries) and version + 1 >= self.model.floor:
            snapshot = Snapshot(version, digest, b"data", await self.chain(version))
            call = self.store.save(
                self.log, snapshot, {version: digest.encode()}, keep=keep, floor=floor, forget=forget
            )
            expected = expected_of(self.model.save, version, digest, keep, floor, forget)
            assert await outcome_of(call) == expected

    async def chain(self, version):
        if version < self.model.floor:
            return ""
        return (await self.store.read(self.log, version - 1, 1))[0].chain

    async def drop(self):
        await self.store.drop(self.log)
        self.model.drop()

    async def diverge(self):
        """Nothing is appended for a writer that has seen something else."""
        if not self.model.closed:
            for version in (len(self.model.entries), len(self.model.entries) + 1):
                with pytest.raises(Diverged):
                    await self.store.append(self.log, [Draft(b"no")], Position(version, "f" * 40))

    async def compare(self):
        store, log, model = self.store, self.log, self.model
        head = await store.head(log)
        assert (head.version, head.floor, head.closed) == (len(model.entries), model.floor, model.closed)
        assert head.snapshots == tuple(sorted(model.snapshots))
        for after in range(3):
            entries = await outcome_of(store.read(log, after, 5))
            if isinstance(entries, list):
                entries = [(e.version, e.body, e.taken, e.retracted) for e in entries]
            assert entries == expected_of(model.read, after, 5)
        for id in ("i", "j", "k"):
            assert await store.find(log, id) == model.ids.get(id)
        for key in ("r", "s"):
            value, _, taken = model.records.get(key, [None, "", 0])
            assert await store.recall(log, key) == (None if taken else value)
        for version in range(1, 6):
            assert await store.outcome(log, version) == model.outcomes.get(version)
            snapshot = await store.snapshot(log, version)
            assert (snapshot.digest if snapshot else None) == model.snapshots.get(version)
        assert await store.examine(log) == []
        if head.version:
            self.position = head.position


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=operations)
@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_a_store_is_its_model(kind, steps, tmp_path_factory, request):
    if kind == "sqlite":
        url = f"sqlite:{tmp_path_factory.mktemp('model') / 'a.db'}"
    else:
        url = emptied(kind, request)

    async def body(store):
        play = Play(store, "log")
        for step, *arguments in steps:
            await getattr(play, step)(*arguments)
            await play.compare()

    run(url, body)
