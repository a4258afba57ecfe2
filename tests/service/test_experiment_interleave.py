"""Drafts are fair: every arm picks its best, random clicks favour nobody, and good clicks favour the better arm."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.service.experiments.interleave import Drafted, credit, draft, restored

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
        assert sum(drafted.credits[place]) == pytest.approx(1)
        assert drafted.credits[place][team] > 0
    for start in range(0, len(drafted.teams), arms):
        picked = drafted.teams[start : start + arms]
        assert len(set(picked)) == len(picked)  # one pick each a round


@given(RANKINGS, st.none() | st.integers(1, 4))
def test_credit_is_the_chance_over_all_orders_that_give_the_list_down_to_the_place(
    rankings: list[list[str]], top: int | None
) -> None:
    drafted = draft(rankings, "key", "p", top)
    arms = len(rankings)
    for start in range(0, len(drafted.names), arms):
        shown = drafted.names[start : start + arms]
        before = set(drafted.names[:start])
        drafts = []
        for order in permutations(range(arms)):
            picks: list[str] = []
            for arm in order[: len(shown)]:
                picks.append(next(n for n in rankings[arm] if n not in before and n not in picks))
            drafts.append((order, picks))
        for place in range(len(shown)):
            ways = [order for order, picks in drafts if picks[: place + 1] == shown[: place + 1]]
            chances = [sum(order[place] == arm for order in ways) / len(ways) for arm in range(arms)]
            assert drafted.credits[start + place] == pytest.approx(chances)


@given(RANKINGS, st.data())
def test_shares_add_up_and_equal_arms_have_equal_shares(
    rankings: list[list[str]], data: st.DataObject
) -> None:
    drafted = draft(rankings, "key", "p")
    clicked = data.draw(st.lists(st.sampled_from(range(len(drafted.names))), unique=True))
    shares = credit(drafted, len(rankings), clicked)
    assert sum(shares) == pytest.approx(1.0 if clicked else 0.0)
    equal = credit(draft([rankings[0]] * 3, "key", "p"), 3, clicked)
    assert equal[0] == equal[1] == equal[2]


def _differences(
    rankings: list[list[str]], clicks: Callable[[Drafted, int], list[int]], top: int | None = None
) -> np.ndarray:
    """Every other arm's share minus the first's, in many impressions."""
    shares = []
    for p in range(6000):
        drafted = draft(rankings, "key", str(p), top)
        shares.append(credit(drafted, len(rankings), clicks(drafted, p)))
    credits = np.array(shares)
    return credits[:, 1:] - credits[:, :1]


@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize("arms", [2, 3])
def test_clicks_that_see_only_the_place_favour_nobody(arms: int, top: int | None) -> None:
    rankings = [list("abcde"), list("bcdae"), list("eabcd")][:arms]
    for clicks in (lambda drafted, p: [0], lambda drafted, p: [0, 2], lambda drafted, p: [1]):
        wins = _differences(rankings, clicks, top)
        deviation = wins.std(axis=0) / np.sqrt(len(wins))
        assert (np.abs(wins.mean(axis=0)) <= 4 * deviation + 1e-12).all()
        assert deviation.all()


@pytest.mark.parametrize(
    "rankings", [["abc", "hgfedcba"], ["ab", "bcdefg", "gfedcb"], ["a", "ab"], ["abc", "cdef"]]
)
def test_an_arm_that_knows_more_labels_gains_nothing_by_that(rankings: list[str]) -> None:
    own = [list(names) for names in rankings]
    places = len(set("".join(rankings)))
    wins = _differences(own, lambda drafted, p: [p % places])
    deviation = wins.std(axis=0) / np.sqrt(len(wins))
    assert (np.abs(wins.mean(axis=0)) <= 4 * deviation + 1e-12).all()
    assert len(draft(own, "key", "p").names) == places  # all are shown nevertheless


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
        shares = credit(drafted, 2, places)
        teams = [drafted.teams[place] for place in places]
        raw.append(((teams.count(0) - teams.count(1)) / len(teams), shares[0] - shares[1]))
    plain, cleared = np.array(raw).T
    assert cleared.mean() > 0.1
    assert cleared.var() < plain.var()
    assert abs(cleared.mean() - plain.mean()) < 4 * plain.std() / np.sqrt(len(plain))


def test_sixteen_arms_alike_are_drafted_at_once() -> None:
    names = [f"d{i}" for i in range(40)]
    drafted = draft([names] * 16, "key", "p", 20)
    assert drafted.names == names[:20]
    assert all(credits == pytest.approx([1 / 16] * 16) for credits in drafted.credits)


def test_a_draft_of_the_first_release_credits_who_brought_the_place() -> None:
    old = restored({"names": ["a", "b"], "teams": [1, 0], "even": [[], []]})
    assert credit(old, 2, [0]) == [0.0, 1.0]
    assert credit(old, 2, [0, 1]) == [0.5, 0.5]
