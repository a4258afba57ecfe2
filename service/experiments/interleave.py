"""Team draft: one list from several rankings, each item credited to the arm that brought it.

Radlinski, Kurup and Joachims (2008) for two arms, Schuth et al. (2014) for more: in every round the arms pick once
each, in an order drawn anew, their best item that is not taken yet. By symmetry each arm is as likely as any other to
hold any place, so clicks that do not look at what is shown favour no arm.
"""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.service.experiments.assignment import words


def draft(
    rankings: Sequence[Sequence[str]], key: str, prediction: str, top: int | None = None
) -> tuple[list[str], list[int]]:
    """The drafted list and the arm of each place, the same for the same key and prediction id."""
    coins = words(key, "draft", prediction)
    arms = range(len(rankings))
    length = len(set().union(*rankings))
    if top is not None:
        length = min(length, top)
    drafted: list[str] = []
    teams: list[int] = []
    taken: set[str] = set()
    heads = [0] * len(rankings)
    while len(drafted) < length:
        # The coins of a round are drawn for every arm, used or not: the draw of one round never depends on another.
        for _, arm in sorted((next(coins), arm) for arm in arms):
            ranking = rankings[arm]
            while heads[arm] < len(ranking) and ranking[heads[arm]] in taken:
                heads[arm] += 1
            if heads[arm] == len(ranking) or len(drafted) == length:
                continue
            item = ranking[heads[arm]]
            taken.add(item)
            drafted.append(item)
            teams.append(arm)
    return drafted, teams
