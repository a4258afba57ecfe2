"""What both stores say of damage: one sentence for each thing that may have changed since it was written."""

from __future__ import annotations

from .shared import id_check
from .signals import Damaged


def part_missing(number: int, version: int) -> str:
    return f"part {number} of {snapshot(version)} is missing"


def chain_changed(version: int) -> str:
    return f"the chain at version {version} has changed since it was written"


def ends_early(after: int, version: int) -> str:
    return f"the log ends at version {after} and should at {version}"


def outcome(version: int | str) -> str:
    """An outcome, as `unseal` names what it opens."""
    return f"the outcome of entry {version}"


def snapshot(version: int) -> str:
    """A snapshot, likewise."""
    return f"the snapshot at version {version}"


def unfit_retraction(version: int, other: int) -> Damaged:
    return Damaged(version, f"the retraction at entry {version} does not fit entry {other}")


def checked_id(id: str, version: int | str, digest: str, guard: str) -> tuple[int, str]:
    """The version and the digest in the row of an id; Damaged if the row is not what was written."""
    if not str(version).isdecimal() or id_check(id, int(version), digest) != guard:
        raise Damaged(0, f"the row of the id {id!r} has changed since it was written")
    return int(version), digest
