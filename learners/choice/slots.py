"""Slots: several places on one page, each filled by one item of the list, without replacement.

    slots   [{"id", "features"?, "exclude"?: [ids], "baseline"?: id}, ...], at most `MOST`, at most as many as items

Slot by slot, in their order, one item is drawn of those that are left, as a choice of its own: its context is that of the
list, the features of the slot as `slot NAME`, and `slot = ID`, so that a place has its own reward. An item that a later
slot could not do without is kept for it: a draw never leaves a slot empty that could be filled.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from ..errors import InstanceError, OptionError, pointer
from ..instances import FeatureVector, Floats, ItemList, read_features

FIELD = "slots"
MOST = 100
FIELDS = frozenset({"id", "features", "exclude", "baseline"})


@dataclass(frozen=True, slots=True)
class Slot:
    """One place. `baseline` is the item that the caller would show there."""

    id: str
    context: FeatureVector | None = None
    exclude: Sequence[str] = ()
    baseline: str | None = None


def read(slots: object, parsed: ItemList) -> tuple[Slot, ...]:
    """The slots of a list of items, each with the whole context of its draw."""
    if not isinstance(slots, list | tuple) or not slots:
        raise InstanceError("must be a list of at least one slot", pointer(FIELD))
    most = min(MOST, len(parsed.ids))
    if len(slots) > most:
        raise InstanceError(
            f"at most {most} slots: each gets an item of its own, and there are at most {MOST}",
            pointer(FIELD),
        )
    ids = frozenset(parsed.ids)
    read_slots = tuple(_slot(slot, i, ids, parsed.context) for i, slot in enumerate(slots))
    seen: set[str] = set()
    for i, slot in enumerate(read_slots):
        if slot.id in seen:
            raise InstanceError(f"the id {slot.id!r} is duplicated", pointer(FIELD, i, "id"))
        seen.add(slot.id)
    return read_slots


def _slot(slot: object, i: int, ids: frozenset[str], shared: FeatureVector | None) -> Slot:
    if not isinstance(slot, Mapping):
        raise InstanceError("a slot must be an object", pointer(FIELD, i))
    strange = next((name for name in slot if name not in FIELDS), None)
    if strange is not None:
        raise InstanceError("unknown field", pointer(FIELD, i, strange))
    id = slot.get("id")
    if not isinstance(id, str) or not id:
        raise InstanceError("a slot needs an id: text that is not empty", pointer(FIELD, i, "id"))
    exclude = slot.get("exclude", [])
    if not isinstance(exclude, list | tuple):
        raise InstanceError("must be a list of items' ids", pointer(FIELD, i, "exclude"))
    for j, name in enumerate(exclude):
        if not isinstance(name, str) or name not in ids:
            raise InstanceError(no_item(name), pointer(FIELD, i, "exclude", j))
    baseline = slot.get("baseline")
    if baseline is not None and (not isinstance(baseline, str) or baseline not in ids):
        raise InstanceError(no_item(baseline), pointer(FIELD, i, "baseline"))
    return Slot(id, _context(slot, i, id, shared), tuple(exclude), baseline)


def _context(slot: Mapping[str, Any], i: int, id: str, shared: FeatureVector | None) -> FeatureVector:
    """The features of the list, those of the slot, and which slot it is."""
    own = slot.get("features", ())
    if not isinstance(own, FeatureVector):  # which the kernel has read
        own = read_features(own, pointer(FIELD, i, "features"))
    values = {} if shared is None else by_name(shared)
    for name, value in by_name(own).items():
        values[f"slot {name}"] = values.get(f"slot {name}", 0.0) + value
    values[f"slot = {id}"] = 1.0
    return FeatureVector(list(values), np.fromiter(values.values(), np.float64, len(values)))


def no_item(name: object) -> str:
    """What is said of an id that no item has."""
    return f"{name!r} is not an item of the list"


def by_name(features: Any) -> dict[str, float]:
    """The values of a vector by name."""
    if features.values is None:
        return dict.fromkeys(features.names, 1.0)
    return dict(zip(features.names, features.values.tolist(), strict=True))


def chance_for(chance: float, i: int) -> float:
    """The number in [0, 1) that settles the draw of the i-th slot: that of the prediction for the first."""
    if not i:
        return chance
    digest = blake2b(struct.pack("<dI", chance, i), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2.0**48


def openings(allowed: Sequence[Floats], i: int, free: Floats) -> Floats:
    """Which of the `free` items slot i may get, 1 or 0, so that every slot behind it can still be filled.

    `allowed` says for each slot which items it may show. Of a matching of the slots behind with free items, an item that it
    does not use may go; one that it uses may go if its slot finds another (an augmenting path).
    """
    here = allowed[i] * free
    if i + 1 == len(allowed):
        return here
    later = [(row * free).astype(bool) for row in allowed[i + 1 :]]
    # A slot that may show more items than there are slots to come finds one whatever the others get.
    behind = [row for row in later if row.sum() <= len(later)]
    taken: dict[int, int] = {}
    for slot in range(len(behind)):
        if not _augment(behind, taken, slot, set()):
            return np.zeros(len(free))
    for item in np.flatnonzero(here).tolist():
        if item in taken and not _augment(behind, dict(taken), taken[item], {item}):
            here[item] = 0.0
    return here


def _augment(behind: Sequence[Any], taken: dict[int, int], slot: int, tried: set[int]) -> bool:
    """Give the slot an item, moving others where needed (Kuhn); `taken` says which slot has each item."""
    for item in np.flatnonzero(behind[slot]).tolist():
        if item in tried:
            continue
        tried.add(item)
        if item not in taken or _augment(behind, taken, taken[item], tried):
            taken[item] = slot
            return True
    return False


def check_openings(allowed: Floats, slot: Slot | None, i: int) -> None:
    """Refuse where nothing is left to draw."""
    if allowed.any():
        return
    if slot is None:
        raise OptionError("every item is excluded: nothing is left to choose", pointer("exclude"))
    raise InstanceError(
        "too much is excluded: no item is left for this slot, or for one behind it",
        pointer(FIELD, i, "exclude"),
    )
