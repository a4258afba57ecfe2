"""The orderings of the papers' figures, on small versions of the benchmarks that draw them."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).resolve().parent.parent / "benchmarks")


@pytest.fixture(scope="module")
def figure():
    sys.path.insert(0, BENCHMARKS)
    try:
        import predtron
    finally:
        sys.path.remove(BENCHMARKS)
    return predtron


def test_position_functions_that_fall_faster_down_the_list_learn_faster(figure):
    """Predtron, Figure 1 (a): -i^1.1 and -i^2 are more accurate than 1/i, and all improve with n."""
    lines = figure.over_rounds([10, 60], seeds=4)
    slow = lines.pop("f(i) = 1/i")
    for line in lines.values():
        assert line[0] < slow[0]
        assert line[1] < slow[1]
        assert line[1] < line[0] / 3


def test_they_do_so_at_every_length(figure):
    """Figure 1 (b), the order of the curves."""
    lines = figure.over_length([10, 40], seeds=4)
    slow = lines.pop("f(i) = 1/i")
    for line in lines.values():
        assert all(fast < other for fast, other in zip(line, slow, strict=True))


def test_l1_margins_hardly_feel_features_that_do_not_matter(figure):
    """Figure 1 (c): l2 suffers from p_0, l1 does not."""
    lines = figure.over_features([20, 400], seeds=3)
    assert lines["l2"][1] > 10 * lines["l2"][0]
    assert lines["l1"][1] < 0.1 * lines["l2"][1]
