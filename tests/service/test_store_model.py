"""Any sequence of operations gives what a plain Python model of a log gives, on both stores."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feedrank.service.store import Clash, Closed, Draft, Missing, Placed, Snapshot, Trimmed, open_store


@dataclass
class Model:
    """A log, said as simply as possible."""

    entries: list = field(default_factory=list)  # (body, taken, mark)
    ids: dict = field(default_factory=dict)
    records: dict = field(default_factory=dict)
    snapshots: dict = field(default_factory=dict)
    outcomes: dict = field(default_factory=dict)
    floor: int = 1
    marked: int = 0
    closed: bool = False

    def append(self, drafts):
        if self.closed:
            raise Closed
        entries, ids, records = list(self.entries), dict(self.ids), dict(self.records)
        placed, marks = [], []
        for index, draft in enumerate(drafts):
            known = {ids[id] for id in draft.ids if id in ids}
            if len(known) > 1 or any(digest != draft.digest for _, digest in known):
                raise Clash(index)
            if known:
                placed.append(Placed(known.pop()[0], False))
                continue
            # What another draft of the batch takes is still there for this one: all are checked before any is written.
            if draft.take is not None and draft.take not in self.records:
                raise Missing(index)
            if draft.marks and not (
                self.floor <= draft.base + 1 and (draft.base == 0 or draft.base in self.snapshots)
            ):
                raise Trimmed
            entries.append((draft.body, self.records[draft.take] if draft.take else None, 0))
            ids.update(dict.fromkeys(draft.ids, (len(entries), draft.digest)))
            records.pop(draft.take, None)
            placed.append(Placed(len(entries), True))
            if draft.marks:
                marks.append((draft.marks, len(entries)))
        self.entries, self.ids, self.records = entries, ids, records
        for marked, by in marks:
            body, taken, _ = self.entries[marked - 1]
            self.entries[marked - 1] = (body, taken, by)
            self.marked = by
            self.snapshots = {v: digest for v, digest in self.snapshots.items() if v < marked}
        return placed

    def read(self, after, limit):
        if self.closed:
            return []
        if after + 1 < self.floor:
            raise Trimmed
        return [(after + 1 + i, *entry) for i, entry in enumerate(self.entries[after : after + limit])]

    def save(self, version, digest, keep, floor):
        if self.closed:
            raise Closed
        if self.snapshots.get(version, digest) != digest:
            return self.snapshots[version]
        if version not in self.snapshots:
            self.outcomes.setdefault(version, digest.encode())
        if version >= self.marked:
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
        st.tuples(st.just("remember"), st.sampled_from(["r", "s"])),
        st.tuples(st.just("mark"), st.integers(0, 8), st.integers(0, 8)),
        st.tuples(
            st.just("save"),
            st.integers(1, 8),
            st.sampled_from(["d", "e"]),
            st.integers(1, 2),
            st.integers(1, 8),
        ),
        st.tuples(st.just("drop")),
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


async def play(store, log, steps):
    model = Model()
    for step, *arguments in steps:
        if step == "append":
            assert await outcome_of(store.append(log, arguments[0])) == expected_of(
                model.append, arguments[0]
            )
        elif step == "remember":
            if not model.closed:
                await store.remember(log, {arguments[0]: arguments[0].encode()}, 60)
                model.records[arguments[0]] = arguments[0].encode()
        elif step == "mark":
            marks, base = arguments
            if model.floor <= marks <= len(model.entries) and base < marks and not model.closed:
                draft = [Draft(b"m", marks=marks, base=base)]
                assert await outcome_of(store.append(log, draft)) == expected_of(model.append, draft)
        elif step == "save":
            version, digest, keep, floor = arguments
            if version <= len(model.entries) and version + 1 >= model.floor:
                call = store.save(
                    log,
                    Snapshot(version, digest, b"data"),
                    {version: digest.encode()},
                    keep=keep,
                    floor=floor,
                )
                assert await outcome_of(call) == expected_of(model.save, version, digest, keep, floor)
        else:
            await store.drop(log)
            model.drop()
        await compare(store, log, model)


async def compare(store, log, model):
    head = await store.head(log)
    assert (head.version, head.floor, head.closed) == (len(model.entries), model.floor, model.closed)
    assert head.snapshots == tuple(sorted(model.snapshots))
    for after in range(3):
        told = await outcome_of(store.read(log, after, 5))
        if isinstance(told, list):
            told = [(e.version, e.body, e.taken, e.mark) for e in told]
        assert told == expected_of(model.read, after, 5)
    for id in ("i", "j", "k"):
        assert await store.find(log, id) == model.ids.get(id)
    for key in ("r", "s"):
        assert await store.recall(log, key) == model.records.get(key)
    for version in range(1, 6):
        assert await store.outcome(log, version) == model.outcomes.get(version)
        held = await store.snapshot(log, version)
        assert (held.digest if held else None) == model.snapshots.get(version)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=operations)
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_store_is_its_model(kind, steps, tmp_path_factory, redis_server):
    if kind == "sqlite":
        url = f"sqlite:{tmp_path_factory.mktemp('model') / 'a.db'}"
    else:
        redis_server.ask(b"FLUSHALL")
        url = redis_server.url

    async def main():
        store = await open_store(url)
        try:
            await play(store, "log", steps)
        finally:
            await store.close()

    asyncio.run(main())
