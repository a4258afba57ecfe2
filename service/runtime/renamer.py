"""Labels get other names, by an entry of the log: the learner becomes what it would be had the old always been the new.

    {"rename": {old: new}}   `old` and `new` are merged where both are labels; all that names `old`, before the entry and
                             behind it, means `new`

A name that was given up never comes back, so a rename that is sent again is known by its old name: nothing happens twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from feedrank import learners
from feedrank.learners import renaming
from feedrank.learners.errors import InputError, pointer
from feedrank.learners.learner import Learner
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Conflict, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import RENAME, only, placed, request_digest
from feedrank.service.contract.name_lengths import LONGEST
from feedrank.service.store import Draft, Head, Placement, Store, Trimmed

from .amending import Amender, state_of
from .checkpoints import load_state
from .learner_state import LearnerState, LoadedLearner
from .memory import Memory
from .writer import Writer

MOST = 1_000  # labels of one entry
BEGINS = "r:"  # of the id by which the log knows a label that was renamed


class Renamer:
    """Called with a name and `{"rename": {old: new}}`."""

    def __init__(self, store: Store, memory: Memory, writer: Writer) -> None:
        self._store, self._memory, self._writer = store, memory, writer
        self._amend = Amender(store, memory)

    async def __call__(self, name: str, request: Body) -> JSON:
        """`{"version", "renames", "labels", "duplicate", "state"}`; `state` as of a retraction."""
        rename = renames_of(request)
        async with self._memory.use(name) as learner:
            if learner.state.learner.form.items:
                raise Unprocessable.at("/rename", f"{learner.title} ranks items: it has no labels")
            return await asyncio.shield(asyncio.create_task(self._rename(learner, rename)))

    async def _rename(self, learner: LoadedLearner, rename: dict[str, str]) -> JSON:
        (place,) = await self._amend(learner, lambda: self._append(learner, rename))
        core = learner.state.learner
        return {
            "version": place.version,
            "renames": {old: core.renames.get(old, new) for old, new in rename.items()},
            "labels": list(core.labels),
            "duplicate": not place.fresh,
            "state": state_of(learner, place),
        }

    async def _append(self, learner: LoadedLearner, rename: dict[str, str]) -> list[Placement]:
        ids, digest = tuple(BEGINS + old for old in rename), request_digest(rename)
        for old, id in zip(rename, ids, strict=True):
            if (known := await self._store.find(learner.log, id)) is None:
                continue
            if known[1] == digest:
                return [Placement(known[0], False)]
            raise Conflict(f"the label {old!r} was renamed before: rename what it is called now")
        self._check(learner.state.learner, rename)
        tried = -1
        while True:
            base = await self._base(learner, await self._store.head(learner.log), rename)
            draft = Draft(Event(rename=rename).body(), ids, digest, revises=True, base=base)
            try:
                return await self._writer.append(learner, [draft])
            except Trimmed:  # the snapshot was dropped meanwhile
                if base == tried:
                    raise out_of_reach(learner) from None
                tried = base

    def _check(self, core: Learner, rename: Mapping[str, str]) -> None:
        """Refuse what no learner of this spec could be."""
        for old in rename:
            if old not in core.labels:
                raise Unprocessable.at(f"/rename{pointer(old)}", f"there is no label {old!r}")
        try:
            renames = renaming.composed(core.renames, rename)
            learners.build(core.spec, renames)
        except InputError as error:
            raise Conflict(f"the labels cannot be renamed so: {error.detail}") from None

    async def _base(self, learner: LoadedLearner, head: Head, rename: Mapping[str, str]) -> int:
        """Where to fold from: the start, or where that was trimmed, the oldest snapshot, if it knows none of the labels."""
        if head.floor == 1:
            return 0
        oldest = min((at for at in head.snapshots if at + 1 >= head.floor), default=0)
        loaded = await load_state(self._store, learner.log, oldest, LearnerState.load) if oldest else None
        core = None if loaded is None else loaded[0].learner
        if (
            core is None
            or renaming.in_spec(core.spec, rename) != core.spec
            or any(old in core.labels for old in rename)
        ):
            raise out_of_reach(learner)
        return oldest


def out_of_reach(learner: LoadedLearner) -> Conflict:
    """The events that named a label are gone."""
    return Conflict(
        f"the log of {learner.title} no longer reaches back to before these labels: they cannot be renamed"
    )


def renames_of(request: Body) -> dict[str, str]:
    """What a request wants to be renamed, without circles."""
    only(request, RENAME)
    stated = request.get("rename")
    if not isinstance(stated, Mapping) or not stated:
        raise Unprocessable.at("/rename", "must be an object {old label: new label}")
    if len(stated) > MOST:
        raise Unprocessable.at("/rename", f"at most {MOST} labels at once")
    for old, new in stated.items():
        if not isinstance(new, str) or not old or not 0 < len(new) <= LONGEST:
            raise Unprocessable.at(
                f"/rename{pointer(old)}", f"must be the new label: text of 1 to {LONGEST} characters"
            )
    try:
        renaming.composed({}, stated)
    except InputError as error:
        raise placed(error, "/rename") from None
    return dict(stated)
