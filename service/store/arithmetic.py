"""Which way of making states of its logs a store has been used with, so that two ways never serve one log side by side.

Equal logs give equal weights within one arithmetic (`learners.codec.ARITHMETIC`), and a release may have another than the
one before. A store keeps the latest that it was opened with, as a part of what every write compares: an earlier release
that still has it open can write no more, and does not open it again.
"""

from __future__ import annotations

from feedrank.service.contract.faults import StoreRefused

FIRST = 1  # of releases that wrote none into the store


def notices(name: str, before: int, arithmetic: int) -> tuple[str, ...]:
    """What to say of a store that was used by `before`; StoreRefused if that was a later one. 0 is nobody who learns."""
    if not arithmetic or before in {0, arithmetic}:
        return ()
    if before > arithmetic:
        raise StoreRefused(
            f"{name} was used by a newer feedrank, which learns other weights from the same events (arithmetic {before}, "
            f"this one has {arithmetic}): start that release, or restore a backup that was made with this one"
        )
    return (
        f"this release learns other weights from the same events than the one that used {name} before: each learner is "
        "folded anew from its log when it is first used; one without its whole log keeps its weights and goes on",
    )
