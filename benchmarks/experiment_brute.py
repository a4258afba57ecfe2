"""What an experiment must show, worked out anew by brute force from what was sent and served.

Nothing of the service is used: values, credits, means, intervals and verdicts come from docs/experiments.md alone, each
by the plainest way there is. Orders of a draft are all tried, sums start from the first round at every look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from math import exp, inf, log, log1p, log2
from typing import Any

BETS = [0.001 * (0.97 / 0.001) ** (k / 23) for k in range(24)]
WEIGHTS = [bet / (1 + (bet / 0.3) ** 2) for bet in BETS]


def ndcg_loss(grades: Sequence[float]) -> float:
    """1 - NDCG of grades in the order in which they stand."""

    def dcg(own: Sequence[float]) -> float:
        return sum((2**grade - 1) / log2(place + 2) for place, grade in enumerate(own))

    best = dcg(sorted(grades, reverse=True))
    return 1 - dcg(grades) / best if best else 0.0


def reciprocal_rank(shown: Sequence[str], clicks: Sequence[str]) -> float:
    """1 / place of the first click, 0 without one."""
    return max((1 / place for place, name in enumerate(shown, 1) if name in clicks), default=0.0)


def credits(rankings: Sequence[Sequence[str]], shown: Sequence[str]) -> list[list[float]]:
    """Of each place, each arm's chance to have brought it, over all orders of its round that give the list down to it.

    From the first round in which an arm may have nothing left to pick, nobody is credited.
    """
    arms, chances = len(rankings), list[list[float]]()
    while len(chances) < len(shown):
        taken, rest = set(shown[: len(chances)]), shown[len(chances) : len(chances) + arms]
        left = [[name for name in ranking if name not in taken] for ranking in rankings]
        need = min(arms, len(shown) - len(chances))
        if min(map(len, left)) < need and any(set(own) != set(left[0]) for own in left):
            break
        counts = [[0] * arms for _ in rest]
        for order in permutations(range(arms)):
            picked: list[str] = []
            for place, arm in enumerate(order[: len(rest)]):
                name = next(name for name in left[arm] if name not in picked)
                if name != rest[place]:
                    break
                picked.append(name)
                counts[place][arm] += 1
        chances += [[count / sum(own) for count in own] for own in counts]
    return chances + [[0.0] * arms] * (len(shown) - len(chances))


def credited(rankings: Sequence[Sequence[str]], shown: Sequence[str], clicked: Sequence[str]) -> list[float]:
    """Each arm's share of the clicked places."""
    places = [place for place, name in enumerate(shown) if name in clicked]
    chances = credits(rankings, shown)
    return [
        sum(chances[place][arm] for place in places) / max(1, len(places)) for arm in range(len(rankings))
    ]


@dataclass(frozen=True)
class Round:
    """One that counts: whose it was, the arm that served (None: all of them), the arms' values, what was known before."""

    unit: str
    arm: int | None
    values: Sequence[float]
    before: float | None = None


@dataclass
class Entry:
    """A unit at a level: the mean of each value over its first rounds, and what was known before its first."""

    arm: int | None
    values: list[float]
    before: float | None


@dataclass
class Book:
    """The rounds that count, in their order."""

    arms: int
    lower_is_better: bool
    confidence: float = 0.95
    rounds: list[Round] = field(default_factory=list)
    answers: list[int] | None = (
        None  # rounds of each arm, where a unit counts by more than one; below 0: unknown
    )
    scale: float = 1.0  # the largest value, of which rounds have shares

    @property
    def split(self) -> bool:
        """Whether a unit sees one arm: then its first outcome alone decides."""
        return self.rounds[0].arm is not None

    def entries(self, level: int) -> list[Entry]:
        """Every unit that has had 2^level rounds, in the order in which it got there."""
        own: dict[str, list[Round]] = {}
        entries = []
        for one in self.rounds:
            rounds = own.setdefault(one.unit, [])
            rounds.append(one)
            if len(rounds) == 2**level:
                values = [
                    sum(column) / len(rounds)
                    for column in zip(*(each.values for each in rounds), strict=True)
                ]
                entries.append(Entry(one.arm, values, rounds[0].before))
        return entries

    def values(self, level: int, arm: int) -> list[tuple[float, float | None]]:
        """(value, before) of the units of an arm."""
        return [
            (each.values[0 if each.arm is not None else arm], each.before)
            for each in self.entries(level)
            if each.arm in (None, arm)
        ]

    def figures(self, rounds_per_unit: int) -> list[tuple[int, int, float | None]]:
        """(units, rounds, mean) of every arm."""
        level = rounds_per_unit.bit_length() - 1
        means = adjusted([self.values(level, arm) for arm in range(self.arms)])
        return [
            (len(self.values(0, arm)), sum(one.arm in (None, arm) for one in self.rounds), means[arm])
            for arm in range(self.arms)
        ]

    def returned(self, number: int) -> list[tuple[int, float | None]]:
        """(units, mean) of every arm in the units' `number`-th round."""
        seen: dict[str, int] = {}
        values: list[list[float]] = [[] for _ in range(self.arms)]
        for one in self.rounds:
            seen[one.unit] = seen.get(one.unit, 0) + 1
            if seen[one.unit] == number and one.arm is not None:
                values[one.arm].append(one.values[0])
        return [(len(own), sum(own) / len(own) if own else None) for own in values]

    def interval(self, i: int, j: int, level: int) -> tuple[float, float]:
        """Of the difference of two arms at a level, that level's part of the error being its own."""
        pairs = self.arms * (self.arms - 1) / 2
        share = 1.0 if self.split else 2 / 3 if level == 0 else 1 / (3 * level * (level + 1))
        alpha = (1 - self.confidence) / pairs * share / 2
        n, terms = 0, list[tuple[float, float]]()
        for deviation, guess in self._terms(i, j, level):
            n += 1
            terms.append((deviation, guess))
        c = 1.0 if self.rounds[0].arm is None else float(self.arms)
        low = lower_bound(terms, n, c, alpha)
        high = -lower_bound([(-deviation, -guess) for deviation, guess in terms], n, c, alpha)
        return max(-1.0, low), min(1.0, high)

    def _terms(self, i: int, j: int, level: int) -> Iterator[tuple[float, float]]:
        """(X - guess, guess) of every unit."""
        seen: list[list[tuple[float, float | None]]] = [[] for _ in range(self.arms)]
        for each in self.entries(level):
            if each.arm is None:
                yield each.values[i] - each.values[j], 0.0
                continue
            guesses = [guess(seen, arm, each.before) for arm in range(self.arms)]
            off = (each.values[0] - guesses[each.arm]) * self.arms
            yield off if each.arm == i else -off if each.arm == j else 0.0, guesses[i] - guesses[j]
            seen[each.arm].append((each.values[0], each.before))

    def winner(self) -> int | None:
        """The arm that is better than every other one at some level, no level saying the contrary; a split has one."""
        better = dict.fromkeys(permutations(range(self.arms), 2), False)
        most = max(sum(one.unit == unit for one in self.rounds) for unit in {one.unit for one in self.rounds})
        for i, j in combinations(range(self.arms), 2):
            ends = [self.interval(i, j, level) for level in range(1 if self.split else most.bit_length())]
            above, below = any(low > 0 for low, _ in ends), any(high < 0 for _, high in ends)
            if above != below:
                better[(i, j) if above != self.lower_is_better else (j, i)] = True
        arms = range(self.arms)
        return next((i for i in arms if all(better[i, j] for j in arms if j != i)), None)


def slope(groups: Sequence[Sequence[tuple[float, float | None]]]) -> float:
    """Of the value on what was known before, within the arms, drawn to 0."""
    xx = xy = 0.0
    for group in groups:
        own = [(x, y) for y, x in group if x is not None]
        if own:
            centre, mean = sum(x for x, _ in own) / len(own), sum(y for _, y in own) / len(own)
            xx += sum((x - centre) ** 2 for x, _ in own)
            xy += sum((x - centre) * (y - mean) for x, y in own)
    return xy / (xx + 0.25)


def adjusted(groups: Sequence[Sequence[tuple[float, float | None]]]) -> list[float | None]:
    """The mean of every arm, less what is explained by what was known before."""
    theta = slope(groups)
    every = [x for group in groups for _, x in group if x is not None]
    means: list[float | None] = []
    for group in groups:
        own = [x for _, x in group if x is not None]
        mean = sum(y for y, _ in group) / len(group) if group else None
        if mean is not None and own:
            mean -= theta * (sum(own) / len(own) - sum(every) / len(every))
        means.append(mean)
    return means


def guess(groups: Sequence[Sequence[tuple[float, float | None]]], arm: int, x: float | None) -> float:
    """Of the next unit's value under an arm, by the units before it alone."""
    group = groups[arm]
    mean = (sum(y for y, _ in group) + 0.5) / (len(group) + 1)
    own = [other for _, other in group if other is not None]
    if x is None or not own:
        return mean
    return min(1.0, max(0.0, mean + slope(groups) * (x - sum(own) / len(own))))


def lower_bound(terms: Sequence[tuple[float, float]], n: int, c: float, alpha: float) -> float:
    """The running mean at which the mixture of all bets is worth 1 / alpha, by halving."""
    logs = [sum(log1p(bet * deviation / c) for deviation, _ in terms) for bet in BETS]
    total = sum(WEIGHTS)

    def capital(u: float) -> float:
        each = [log(w / total) + own - bet * u for w, own, bet in zip(WEIGHTS, logs, BETS, strict=True)]
        top = max(each)
        return top + log(sum(exp(one - top) for one in each))

    low, high = -1e7, 1e7
    while high - low > 1e-9 * max(1.0, abs(low)):
        middle = (low + high) / 2
        low, high = (middle, high) if capital(middle) > log(1 / alpha) else (low, middle)
    return (sum(own for _, own in terms) + c * low) / n if n else -inf


def differing(book: Book, names: list[str], shown: dict[str, Any], deep: bool) -> list[str]:
    """What GET shows otherwise than it must be."""
    wrong = []

    def same(what: str, got: float | None, wanted: float | None) -> None:
        if (got is None) != (wanted is None) or (got is not None and abs(got - (wanted or 0.0)) > 1e-7):
            wrong.append(f"{what}: {got}, must be {wanted}")

    for name, figures in zip(names, book.figures(shown["rounds_per_unit"]), strict=True):
        units, rounds, mean = figures
        if book.answers is not None:
            answered = book.answers[names.index(name)]
            rounds = shown["arms"][name]["rounds"] if answered < 0 else answered
        same(f"units of {name}", shown["arms"][name]["units"], units)
        same(f"rounds of {name}", shown["arms"][name]["rounds"], rounds)
        same(f"mean of {name}", shown["arms"][name]["mean"], None if mean is None else mean * book.scale)
    for one in shown.get("returns", ()):
        for name, (units, mean) in zip(names, book.returned(one["round"]), strict=True):
            same(f"units of {name} in round {one['round']}", one["units"][name], units)
            same(f"mean of {name} in round {one['round']}", one["means"][name], mean)
    for pair in shown["differences"]:
        i, j = (names.index(name) for name in pair["arms"])
        means = [book.figures(pair["rounds_per_unit"])[arm][2] for arm in (i, j)]
        gap = None if None in means else (means[0] - means[1]) * book.scale
        same(f"difference {i} {j}", pair["difference"], gap)
        if deep and pair["units"]:
            ends = book.interval(i, j, pair["rounds_per_unit"].bit_length() - 1)
            low, high = (end * book.scale for end in ends)
            same(f"lower {i} {j}", pair["lower"], low if gap is None else min(low, gap))
            same(f"upper {i} {j}", pair["upper"], high if gap is None else max(high, gap))
    if (
        deep
        and (shown["sample_ratio"] is None or not shown["sample_ratio"]["mismatch"])
        and "alike" not in shown["reason"]
    ):
        winner = book.winner()
        if shown["verdict"] != ("undecided" if winner is None else names[winner]):
            wrong.append(f"verdict {shown['verdict']}, must be {winner}")
    return wrong
