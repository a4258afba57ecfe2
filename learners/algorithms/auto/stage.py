"""What deciding came upon, for learning; and the same of the decision before labels joined with the event."""

from dataclasses import dataclass

from ...instances import Floats
from ...unknown_labels import Before
from .experts import Inputs


@dataclass(slots=True)
class Stage:
    """The inputs, Z of the experts, t, its link, p before and after calibration."""

    inputs: Inputs
    Z: Floats
    t: Floats
    linked: Floats
    p: Floats
    shown: Floats


def stage_of(before: Before) -> Stage | None:
    return None if before.decision is None else before.decision.judged


def known_columns(before: Before) -> int:
    """How many columns there were before the event."""
    return 0 if before.decision is None else len(before.decision.scores)
