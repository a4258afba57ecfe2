"""Names of one label: what its arms have renamed, an experiment judges as one, under the name that its definition has.

One arm may have renamed a label and another not, or the other way round: names that any of them has made one are one. Each
round is judged once, and what it was worth is in the log, so that a rename later changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from feedrank.learners import forms, renaming
from feedrank.service.contract.faults import NotFound
from feedrank.service.contract.json_types import JSON
from feedrank.service.runtime import Host

from .loaded import LoadedExperiment

DECISIONS = ("served", "arms", "shadow")  # fields of a record that hold one, or several


async def renames_of(host: Host, live: LoadedExperiment) -> list[Mapping[str, str]]:
    """What its arms have renamed."""
    if forms.of(live.specs[0]["task"]).items:
        return []
    every: list[Mapping[str, str]] = []
    for arm in (*live.plan.arms, *live.plan.shadow):
        try:
            if renames := await host.renames(arm):
                every.append(renames)
        except NotFound:
            continue
    return every


def names_of(
    live: LoadedExperiment, renames: Sequence[Mapping[str, str]], record: JSON | None = None
) -> dict[str, str]:
    """{name: the one of its names that counts}: that of the list where one was drafted, or else of the definition."""
    if not renames:
        return {}
    if record is not None and "drafted" in record:
        return synonyms(renames, record["served"]["ranking"])
    return synonyms(renames, [name for spec in live.specs for name in renaming.named_in(dict(spec))])


def synonyms(renames: Iterable[Mapping[str, str]], stated: Collection[str]) -> dict[str, str]:
    """{name: the first of its names that is stated, else the first of all}, of names that have another one."""
    groups: dict[str, set[str]] = {}
    for pairs in renames:
        for old, new in pairs.items():
            joined = groups.get(old, {old}) | groups.get(new, {new})
            groups |= dict.fromkeys(joined, joined)
    chosen = {}
    for name, group in groups.items():
        first = next((one for one in stated if one in group), min(group))
        if first != name:
            chosen[name] = first
    return chosen


def meant(answer: JSON, names: Mapping[str, str]) -> JSON:
    """A truth by the names that count."""
    return dict(renaming.in_answer(answer, names)) if names else answer


def judged_by(record: JSON, names: Mapping[str, str]) -> JSON:
    """A record with the names that count in its decisions."""
    if not names:
        return record
    changed = dict(record)
    for field in DECISIONS:
        value = record.get(field)
        if isinstance(value, list):
            changed[field] = [renaming.in_answer(one, names) for one in value]
        elif field in record:
            changed[field] = renaming.in_answer(value, names)
    return changed
