"""Team draft: one list from several rankings; the credit of a position is divided among the arms that may have picked it.

Radlinski, Kurup and Joachims (2008) for two arms, Schuth et al. (2014) for more: in every round the arms pick once
each, in an order drawn anew, their best item that is not taken yet. By symmetry each arm is as likely as any other to
hold any place, so clicks that do not look at what is shown favour no arm.

A place is credited by P(arm brought it | the list down to it), over all orders of its round that begin so: the
expectation of team draft's credit given what stands there (Rao and Blackwell), with the same mean and less noise. Arms
that rank alike get equal credit, whatever the coins said; so do arms whose first picks are the same, for that place.

The symmetry needs every arm to have something left to pick. Label rankings may know different numbers of labels: from
the first round in which an arm could go short, the list is filled up as before, and nobody is credited for it.

Credit counts a click on what an arm has moved up by one place as much as on what it has moved to the top. For two orders
of the same items, with Q_j(i) the chance that the draft puts i at place j and d the discounts of DCG at PLACES,

    s(i) = d(place of i in the second) - d(place in the first),     X = mean over clicks (i at j) of (s(i) - sum Q_j s) / m

is the `gain` of a page, m being WIDE, or the most that any click on this page could have said if that is more: X is in
[-1, 1], and WIDE X is DCG a click but for pages that could say more. Whoever clicks by place alone has mean 0 at every
place, whatever the bias; else the mean is the covariance of s with being clicked, place by place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from feedrank.learners.kernel import elementary
from feedrank.service.contract.json_types import View

from .assignment import words

PLACES, WIDE = 10, 0.4
_LOGS: list[float] = elementary.log(np.arange(2.0, PLACES + 2)).tolist()
DISCOUNTS = [_LOGS[0] / log for log in _LOGS]
Chances = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Drafted:
    """A list, the arm (`teams`) that brought each place, and each place's `credits` by arm: 0 where it counts for none."""

    names: list[str]
    teams: list[int]
    credits: list[list[float]]


def draft(rankings: Sequence[Sequence[str]], key: str, prediction: str, top: int | None = None) -> Drafted:
    """The drafted list, the same for the same key and prediction id."""
    coins = words(key, "draft", prediction)
    known = set(rankings[0])
    every = known.union(*rankings)
    length = len(every) if top is None else min(len(every), top)
    drafted = Drafted([], [], [])
    if len(rankings) == 2 and len(known) == len(rankings[1]) == len(every):
        _draft_two(rankings, coins, length, drafted)
        return drafted
    taken: set[str] = set()
    fair = True
    at = [0] * len(rankings)
    while len(drafted.names) < length:
        order = [arm for _, arm in sorted((next(coins), arm) for arm in range(len(rankings)))]
        rest = [_left(ranking, arm, at, taken) for arm, ranking in enumerate(rankings)]
        left = length - len(drafted.names)
        fair = fair and _symmetric(rest, left)
        picks: list[tuple[int, str]] = []
        shown: list[str] = []
        for arm in order:
            if len(picks) == left:
                break
            name = next((name for name in rest[arm] if name not in shown), None)
            if name is not None:
                picks.append((arm, name))
                shown.append(name)
        chances = _chances(rest, shown) if fair else [[0.0] * len(rankings)] * len(shown)
        for (arm, name), credits in zip(picks, chances, strict=True):
            drafted.names.append(name)
            drafted.teams.append(arm)
            drafted.credits.append(credits)
        taken.update(shown)
    return drafted


def _left(ranking: Sequence[str], arm: int, at: list[int], taken: set[str]) -> list[str]:
    """The best items of an arm that are left, one for each arm: a round looks no further. `at` is where they begin."""
    while at[arm] < len(ranking) and ranking[at[arm]] in taken:
        at[arm] += 1
    coming = (ranking[place] for place in range(at[arm], len(ranking)))
    return list(islice((name for name in coming if name not in taken), len(at)))


def _draft_two(
    rankings: Sequence[Sequence[str]], coins: Iterator[int], length: int, drafted: Drafted
) -> None:
    """The same draft of two orders of the same items, which is nearly all there are: each is gone through once."""
    taken: set[str] = set()
    at = [0, 0]

    def best(arm: int) -> str:
        ranking, place = rankings[arm], at[arm]
        while ranking[place] in taken:
            place += 1
        at[arm] = place
        return ranking[place]

    def put(name: str, arm: int, both: bool) -> None:
        drafted.names.append(name)
        drafted.teams.append(arm)
        drafted.credits.append([0.5, 0.5] if both else [1.0 - arm, float(arm)])
        taken.add(name)

    while len(drafted.names) < length:
        first = int(next(coins) > next(coins))
        name, rival = best(first), best(1 - first)
        put(name, first, both=name == rival)
        if len(drafted.names) < length:
            # With the same first pick, each might have picked second: then it is both's where they would pick alike.
            other = best(1 - first)
            put(other, 1 - first, both=name == rival and best(first) == other)


def _symmetric(rest: Sequence[Sequence[str]], left: int) -> bool:
    """Whether every arm picks in this round, whatever the order; or all choose from the same items."""
    need = min(left, len(rest))
    if all(len(names) >= need for names in rest):
        return True
    first = set(rest[0])
    return all(set(names) == first for names in rest)


def _chances(rest: Sequence[Sequence[str]], shown: Sequence[str]) -> list[list[float]]:
    """P(arm brought place t | shown[: t + 1]) for each place of a round and each arm.

    All orders are as likely, and arm a can have brought place t only if its best item that is not in shown[:t] is
    shown[t]. So the orders that give the list down to t are the ways to give each of its places an arm of its own among
    those: a permanent.
    """
    able = []
    for names in rest:
        own = 0
        for place, name in enumerate(shown):
            before = shown[:place]
            if next((each for each in names if each not in before), None) == name:
                own |= 1 << place
        able.append(own)
    chances = []
    for place in range(len(shown)):
        above = [mask & ((2 << place) - 1) for mask in able]
        # Arms that could have brought the same places are alike: counting them by kind keeps the permanent small.
        kinds = Counter(above)
        masks, counts = tuple(kinds), tuple(kinds.values())
        whole = _ways(masks, counts, 0, place + 1)
        share = {
            mask: _ways_with(masks, counts, place + 1, place, index) / whole / kinds[mask]
            for index, mask in enumerate(masks)
        }
        chances.append([share[mask] for mask in above])
    return chances


@lru_cache(maxsize=65_536)
def _ways(masks: tuple[int, ...], counts: tuple[int, ...], place: int, places: int) -> int:
    """In how many ways the places from `place` on can be given to different arms, of which there are `counts` of a kind."""
    if place == places:
        return 1
    total = 0
    for kind, (mask, count) in enumerate(zip(masks, counts, strict=True)):
        if count and mask >> place & 1:
            fewer = (*counts[:kind], count - 1, *counts[kind + 1 :])
            total += count * _ways(masks, fewer, place + 1, places)
    return total


def _ways_with(masks: tuple[int, ...], counts: tuple[int, ...], places: int, place: int, kind: int) -> int:
    """The ways in which `place` goes to an arm of that kind: the place may be taken out, and one arm with it."""
    if not masks[kind] >> place & 1:
        return 0
    fewer = (*counts[:kind], counts[kind] - 1, *counts[kind + 1 :])
    low = (1 << place) - 1
    without = tuple((mask & low) | (mask >> 1 & ~low) for mask in masks)
    return counts[kind] * _ways(without, fewer, 0, places - 1)


def restored(data: View) -> Drafted:
    """A draft out of its record; one of release 0.1 credits each place to the arm that brought it."""
    if "credits" in data:
        return Drafted(**data)
    arms = 1 + max([1, *data["teams"], *(arm for even in data["even"] for arm in even)])
    credits = [[float(team == arm) for arm in range(arms)] for team in data["teams"]]
    return Drafted(data["names"], data["teams"], credits)


def credit(drafted: Drafted, arms: int, clicked: Sequence[int]) -> list[float]:
    """Each arm's share of the clicked places; X of a pair is the difference of their shares, from -1 to 1."""
    shares = [0.0] * arms
    for place in clicked:
        for arm, part in enumerate(drafted.credits[place]):
            shares[arm] += part / len(clicked)
    return shares


def chances(orders: Sequence[Sequence[str]], places: int = PLACES) -> Chances:
    """Q: for each item that a draft of two orders of the same items may show, its chance of each of the first places.

    What is left to choose from depends on what was taken alone, so courses of the draft that took the same are one.
    """
    one, other = orders
    places = min(places, PLACES, len(one))
    Q: Chances = {}
    states: dict[frozenset[str], float] = {frozenset(): 1.0}

    def put(name: str, place: int, chance: float) -> None:
        Q.setdefault(name, [0.0] * places)[place] += chance

    for place in range(0, places, 2):
        after: dict[frozenset[str], float] = {}
        last = place + 1 == places
        for taken, chance in states.items():
            x, y = _first(one, taken), _first(other, taken)
            if x != y:
                pairs = [(x, y), (y, x)]
            elif last:
                pairs = [(x, x)]
            else:
                pairs = [(x, _first(order, taken | {x})) for order in (one, other)]
            for first, second in pairs:
                put(first, place, chance / len(pairs))
                if not last:
                    put(second, place + 1, chance / len(pairs))
                    union = taken | {first, second}
                    after[union] = after.get(union, 0.0) + chance / len(pairs)
        states = after
    return Q


def gain(
    orders: Sequence[Sequence[str]], Q: Chances, shown: Sequence[str], clicked: Collection[str]
) -> float:
    """X of a drafted page, Q being its `chances`: whether what the second order moves up is clicked more, or less."""
    first, second = (dict(zip(order, DISCOUNTS, strict=False)) for order in orders)
    s = {name: second.get(name, 0.0) - first.get(name, 0.0) for name in Q}
    places = len(next(iter(Q.values()), ()))
    means = [sum(own[j] * s[name] for name, own in Q.items()) for j in range(places)]
    said = (abs(s[name] - means[j]) for name, own in Q.items() for j in range(places) if own[j])
    most = max(WIDE, max(said, default=0.0))
    if not clicked:
        return 0.0
    wanted = set(clicked)
    won = sum(s[name] - mean for name, mean in zip(shown, means, strict=False) if name in wanted)
    return max(-1.0, min(1.0, won / most / len(wanted)))


def _first(order: Sequence[str], taken: frozenset[str]) -> str:
    return next(name for name in order if name not in taken)
