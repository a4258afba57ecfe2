"""When to file: a promise on the share of filed mail that is right, kept on every sequence of messages.

Every prediction whose truth became known is a line of the record: its folder, its certainty, whether it was right.

    certainty   c = margin (h + 1/2) / (n + 2)      h of the sender's last n <= 10 messages went into that folder
    risk        g = (wrong + 1) / (60 + 2)          among the 60 lines nearest in certainty, of all folders
                e = (wrong + 20 g) / (20 + 20)      among the 20 nearest lines of that folder: the chance of a mistake
    credit      B = d N - mistakes + 3 max(0, 1 - d N / 20)      N messages filed and judged, d = 1 - precision
    rule        file if  B - R >= 1  and  e <= min(d / 2 (B - R), 0.3),  R the risks of filed mail not yet judged

A mistake takes 1 of the credit, and nothing is filed below 1. So, whatever mail comes, and but for messages that were filed
while others waited for their judgement,

    mistakes <= d N     at every moment from N = 20 / d on (400 messages for 0.95), and before that at most 3 more.

With a credit below 1 filing pauses. Then each prediction of risk at most d / 2 counts as if it had been filed, until B is 1
again, and the bound is one on these and the filed ones together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

__all__ = [
    "SENDER",
    "START",
    "WINDOW",
    "Credit",
    "Judgement",
    "certainty",
    "earned",
    "judged",
    "may_file",
    "risk",
]

WINDOW = 1000
"""Lines that count: what was right long ago says little."""
START = 3.0
_LOAN = 20.0
"""START is given back over the first 20 / d messages."""
SENDER = 10
_FEWEST = 20
_ALL, _OWN, _PRIOR = 60, 20, 20
_WORST = 0.3


@dataclass(frozen=True, slots=True)
class Judgement:
    """A prediction whose truth became known."""

    label: str
    certainty: float
    right: bool


def certainty(margin: float, label: str, recent: Sequence[str]) -> float:
    """c, from the margin of the prediction and the folders of the sender's latest messages."""
    return margin * (recent.count(label) + 0.5) / (len(recent) + 2)


def risk(rounds: Sequence[Judgement], label: str, sureness: float) -> float:
    """e, the estimated chance that a prediction of `label` with certainty `sureness` is wrong; 1 without a record."""
    if len(rounds) < _FEWEST:
        return 1.0

    def wrong(lines: Sequence[Judgement], most: int) -> tuple[int, int]:
        near = nsmallest(most, lines, key=lambda one: abs(one.certainty - sureness))
        return sum(not one.right for one in near), len(near)

    mistakes, lines = wrong(rounds, _ALL)
    usual = (mistakes + 1) / (lines + 2)
    mistakes, lines = wrong([one for one in rounds if one.label == label], _OWN)
    return (mistakes + _PRIOR * usual) / (lines + _PRIOR)


@dataclass(frozen=True, slots=True)
class Credit:
    """B, and N."""

    left: float = START
    filed: int = 0


def may_file(chance: float, credit: Credit, reserved: float, precision: float) -> bool:
    """The rule: `chance` is the risk e, `reserved` is R."""
    free = credit.left - reserved
    return free >= 1.0 and chance <= min(0.5 * (1.0 - precision) * free, _WORST)


def judged(credit: Credit, right: bool, precision: float) -> Credit:
    """The credit after a filed message turned out to be right or wrong."""
    d = 1.0 - precision
    gain = d - (START * d / _LOAN if d * credit.filed < _LOAN else 0.0)
    return Credit(credit.left + gain - (not right), credit.filed + 1)


def earned(credit: Credit, chance: float, right: bool, precision: float) -> Credit:
    """The credit after the truth about a message that was not filed became known."""
    d = 1.0 - precision
    if credit.left >= 1.0 or chance > 0.5 * d:
        return credit
    return Credit(max(0.0, credit.left + d - (not right)), credit.filed)
