"""Drafts are fair: every arm picks its best, random clicks favour nobody, and good clicks favour the better arm."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.service.experiments.interleave import Drafted, credit, draft

RANKINGS = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.permutations([f"d{i}" for i in range(n)]), min_size=2, max_size=4)
)


@given(RANKINGS, st.text(max_size=8), st.none() | st.integers(1, 10))
def test_a_draft_is_a_list_of_best_picks(rankings: list[list[str]], prediction: str, top: int | None) -> None:
    drafted = draft(rankings, "key", prediction, top)
    assert drafted == draft(rankings, "key", prediction, top)
    assert len(drafted.names) == len(set(drafted.names)) == min(len(rankings[0]), top or 99)
    arms = len(rankings)
    for place, (name, team) in enumerate(zip(drafted.names, drafted.teams, strict=True)):
        left = [other for other in rankings[team] if other not in drafted.names[:place]]
        assert name == left[0]
    for start in range(0, len(drafted.teams), arms):
        picked = drafted.teams[start : start + arms]
        assert len(set(picked)) == len(picked)  # one pick each a round


@given(RANKINGS, st.data())
def test_wins_are_bounded_and_equal_arms_never_win(rankings: list[list[str]], data: st.DataObject) -> None:
    arms = len(rankings)
    drafted = draft(rankings, "key", "p")
    clicked = data.draw(st.lists(st.sampled_from(range(len(drafted.names))), unique=True))
    shares, wins = credit(drafted, arms, clicked)
    assert sum(shares) == pytest.approx(1.0 if clicked else 0.0)
    assert all(abs(win) <= 1 + 1e-12 for win in wins)
    equal = draft([rankings[0]] * 2, "key", "p")
    assert credit(equal, 2, clicked)[1] == [0.0]


def _many(rankings: list[list[str]], clicks: object, n: int = 6000, top: int | None = None) -> np.ndarray:
    """Wins of n impressions; `clicks` gives the clicked places of a list."""
    wins = []
    for p in range(n):
        drafted = draft(rankings, "key", str(p), top)
        wins.append(credit(drafted, len(rankings), clicks(drafted, p))[1])  # type: ignore[operator]
    return np.array(wins)


@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize("arms", [2, 3])
def test_clicks_that_see_only_the_place_favour_nobody(arms: int, top: int | None) -> None:
    rankings = [list("abcde"), list("bcdae"), list("eabcd")][:arms]
    for clicks in (lambda drafted, p: [0], lambda drafted, p: [0, 2], lambda drafted, p: [1]):
        wins = _many(rankings, clicks, top=top)
        deviation = wins.std(axis=0) / np.sqrt(len(wins))
        assert (np.abs(wins.mean(axis=0)) <= 4 * deviation + 1e-12).all()
        assert deviation.all()


def test_every_arm_stands_first_as_often() -> None:
    rankings = [list("abc"), list("bca"), list("cab")]
    first = np.bincount([draft(rankings, "key", str(p)).teams[0] for p in range(6000)])
    assert ((first - 2000) ** 2 / 2000).sum() < 20


def test_the_better_arm_wins_and_what_is_even_is_only_noise() -> None:
    rankings = [["x", "y", "good", "b", "c"], ["x", "y", "b", "c", "good"]]

    raw = []
    for p in range(4000):
        drafted = draft(rankings, "key", str(p), 4)
        places = [place for place, name in enumerate(drafted.names) if name in ("x", "good")]
        shares, wins = credit(drafted, 2, places)
        raw.append((shares[0] - shares[1], wins[0]))
    plain, cleared = np.array(raw).T
    assert cleared.mean() > 0.1
    assert cleared.var() < plain.var()
    assert abs(cleared.mean() - plain.mean()) < 4 * plain.std() / np.sqrt(len(plain))


def test_three_arms_credit_each_pair_apart() -> None:
    drafted = Drafted(["a", "b", "c"], [0, 1, 2], [[], [2], [1]])
    shares, wins = credit(drafted, 3, [0, 1])
    pairs = dict(zip(combinations(range(3), 2), wins, strict=True))
    assert shares == [0.5, 0.5, 0.0]
    assert pairs == {(0, 1): 0.0, (0, 2): 0.5, (1, 2): 0.0}
