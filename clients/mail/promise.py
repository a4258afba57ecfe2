"""When to file: a promise on the share of filed mail that is right, kept on every sequence of messages.

Every prediction whose truth became known is a line of the record: its folder, its certainty, whether it was right.

    certainty   c = margin (h + 1) / (n + 2)        h of the n lines of that folder were right
    risk        g = (wrong + 1) / (60 + 2)          among the 60 lines next below in certainty, of all folders
                e = (wrong + 20 g) / (20 + 20)      among the 20 next below of that folder: the chance of a mistake
    rule        file if  B - R >= 1,  e <= b min(d, 1/20) (B - R)  and  e < 1/2;    d = 1 - precision,
                R the risks of filed mail that is not judged yet

B is a credit, D a debt, both 3 at the start. A message that was filed and is now judged takes 1 of the credit if it was
wrong, and adds d; as long as there is a debt, 0.15 d of that goes to pay it back:

    B <- B + d - r - [wrong],    D <- D - r,    r = min(D, 0.15 d)

So B = d N - M + D with N messages filed and judged, M of them wrong. Nothing is filed below B = 1 and a mistake takes 1:
B >= 0 and, whatever mail comes, but for messages that were filed while others waited for their judgement,

    M <= d N + D,    at every moment;  M <= d N as soon as the debt is paid (from 400 messages on for 0.95, without loans).

With a credit below 1 filing pauses. Then the predictions that would be filed with a credit of B + 1 are only watched: each
adds d to a proof, a wrong one takes 1. When the proof reaches 2^k, k loans so far, B and D grow by 1 and filing goes on. So
after S messages watched there were at most log2(1 + d S) loans: D <= 3 + log2(1 + d S), each paid back like the first 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

__all__ = [
    "BOLDNESS",
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
BOLDNESS = 0.7
"""b: how much of the credit one message may be expected to cost. The promise holds for any b."""
_LARGEST = 0.05
_REPAID = 0.15
_FEWEST = 20
_ALL, _OWN, _PRIOR = 60, 20, 20
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Judgement:
    """A prediction whose truth became known."""

    label: str
    certainty: float
    right: bool


def certainty(rounds: Sequence[Judgement], label: str, margin: float) -> float:
    """c, from the margin of a prediction of `label` and how often such predictions were right."""
    own = [one.right for one in rounds if one.label == label]
    return margin * (sum(own) + 1) / (len(own) + 2)


def risk(rounds: Sequence[Judgement], label: str, sureness: float) -> float:
    """e, the estimated chance that a prediction of `label` with certainty `sureness` is wrong; 1 without a record."""
    if len(rounds) < _FEWEST:
        return 1.0

    # Nothing is learned about a message from more certain ones: one that is less certain than all before is a guess.
    below = [one for one in rounds if one.certainty <= sureness]

    def wrong(lines: Sequence[Judgement], most: int) -> tuple[int, int]:
        near = nlargest(most, lines, key=lambda one: one.certainty)
        return sum(not one.right for one in near), len(near)

    mistakes, lines = wrong(below, _ALL)
    usual = (mistakes + 1) / (lines + 2)
    mistakes, lines = wrong([one for one in below if one.label == label], _OWN)
    return (mistakes + _PRIOR * usual) / (lines + _PRIOR)


@dataclass(frozen=True, slots=True)
class Credit:
    """B and D; the loans so far, and the proof for the next one."""

    left: float = START
    debt: float = START
    loans: int = 0
    proof: float = 0.0


def may_file(
    chance: float, credit: Credit, reserved: float, precision: float, boldness: float = BOLDNESS
) -> bool:
    """The rule: `chance` is the risk e, `reserved` is R."""
    free = credit.left - reserved
    return free >= 1.0 and _bears(free, chance, precision, boldness)


def _bears(free: float, chance: float, precision: float, boldness: float) -> bool:
    return chance < 0.5 and chance <= boldness * min(1.0 - precision, _LARGEST) * free


def judged(credit: Credit, right: bool, precision: float) -> Credit:
    """The credit after a filed message turned out to be right or wrong."""
    d = 1.0 - precision
    repaid = min(credit.debt, _REPAID * d)
    return replace(credit, left=credit.left + d - repaid - (not right), debt=credit.debt - repaid)


def earned(
    credit: Credit, chance: float, right: bool, precision: float, boldness: float = BOLDNESS
) -> Credit:
    """The credit after the truth about a message that was not filed became known."""
    # What the loan would be spent on is what has to prove itself.
    if credit.left >= 1.0 or not _bears(max(credit.left, 0.0) + 1.0, chance, precision, boldness):
        return credit
    d = 1.0 - precision
    proof = max(0.0, credit.proof + d - (not right))
    if proof < 2.0**credit.loans - _ROUNDING:
        return replace(credit, proof=proof)
    return Credit(credit.left + 1.0, credit.debt + 1.0, credit.loans + 1)
