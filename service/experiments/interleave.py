"""Team draft: one list from several rankings, each item credited to the arm that brought it.

Radlinski, Kurup and Joachims (2008) for two arms, Schuth et al. (2014) for more: in every round the arms pick once
each, in an order drawn anew, their best item that is not taken yet. By symmetry each arm is as likely as any other to
hold any place, so clicks that do not look at what is shown favour no arm.

Where two arms could have changed places in a round and the list would be the same, their coin says nothing: given the list,
each is as likely as the other to have brought the item. Such items count for neither against the other. That is the
expectation of the credit given what was shown (Rao and Blackwell): the same mean with less noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from feedrank.service.experiments.assignment import words


@dataclass(frozen=True, slots=True)
class Drafted:
    """A list, the arm (`teams`) of each place, and the arms (`even`) that as likely brought it."""

    names: list[str]
    teams: list[int]
    even: list[list[int]]


def draft(rankings: Sequence[Sequence[str]], key: str, prediction: str, top: int | None = None) -> Drafted:
    """The drafted list, the same for the same key and prediction id."""
    coins = words(key, "draft", prediction)
    length = len(set().union(*rankings))
    if top is not None:
        length = min(length, top)
    drafted = Drafted([], [], [])
    heads = [0] * len(rankings)
    taken: set[str] = set()
    while len(drafted.names) < length:
        order = [arm for _, arm in sorted((next(coins), arm) for arm in range(len(rankings)))]
        for arm, ranking in enumerate(rankings):
            while heads[arm] < len(ranking) and ranking[heads[arm]] in taken:
                heads[arm] += 1
        left = length - len(drafted.names)
        picks = _round(rankings, heads, taken, order, left)
        even = _even(rankings, heads, taken, order, left, picks)
        for arm, name in picks:
            drafted.names.append(name)
            drafted.teams.append(arm)
            drafted.even.append(even[arm])
            taken.add(name)
    return drafted


Picks = list[tuple[int, str]]


def _round(
    rankings: Sequence[Sequence[str]], heads: Sequence[int], taken: set[str], order: Sequence[int], left: int
) -> Picks:
    """(arm, item) as picked in one round, as far as the list has room."""
    picks: Picks = []
    now: set[str] = set()
    for arm in order[:left] if left < len(order) else order:
        ranking = rankings[arm]
        for place in range(heads[arm], len(ranking)):
            name = ranking[place]
            if name not in taken and name not in now:
                now.add(name)
                picks.append((arm, name))
                break
    return picks


def _even(
    rankings: Sequence[Sequence[str]],
    heads: Sequence[int],
    taken: set[str],
    order: list[int],
    left: int,
    picks: Picks,
) -> dict[int, list[int]]:
    """For each arm, those with which it could have changed places without a trace."""
    even: dict[int, list[int]] = {arm: [] for arm in order}
    shown = [name for _, name in picks]
    for i, j in combinations(order, 2):
        swapped = [j if arm == i else i if arm == j else arm for arm in order]
        if [name for _, name in _round(rankings, heads, taken, swapped, left)] == shown:
            even[i].append(j)
            even[j].append(i)
    return even


def credit(drafted: Drafted, arms: int, clicked: Sequence[int]) -> tuple[list[float], list[float]]:
    """(each arm's share of the clicked places, X of each pair i < j: i's share less j's where the two are not even)."""
    shares = [0.0] * arms
    wins = dict.fromkeys(combinations(range(arms), 2), 0.0)
    for place in clicked:
        team, part = drafted.teams[place], 1 / len(clicked)
        shares[team] += part
        for rival in range(arms):
            if rival != team and rival not in drafted.even[place]:
                wins[min(team, rival), max(team, rival)] += part if team < rival else -part
    return shares, list(wins.values())
