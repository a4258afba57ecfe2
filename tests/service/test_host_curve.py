"""The learning curve is a part of the fold: bounded, exact, and kept by a snapshot."""

from io import BytesIO
from itertools import pairwise

import pytest
from host_events import SPEC, event
from hypothesis import given
from hypothesis import strategies as st

from feedrank import learners
from feedrank.service.contract.events import Event
from feedrank.service.runtime.learner_state import MOST_POINTS, LearnerState
from feedrank.service.runtime.series import Series


@given(st.lists(st.floats(0, 1, allow_nan=False), min_size=1, max_size=3000), st.integers(0, 3000))
def test_a_series_is_bounded_evenly_spaced_and_exact(losses, cut):
    series, total = Series(MOST_POINTS), 0.0
    totals = {}
    for rounds, loss in enumerate(losses, start=1):
        total += loss
        totals[rounds] = total
        series.add(rounds, total)
        if rounds == cut:
            series = Series(MOST_POINTS, series.stride, list(series.points))  # as if saved
    points = series.points
    assert len(points) <= MOST_POINTS
    assert len(points) >= min(len(losses), MOST_POINTS // 2 - 1)
    assert points == [(r, totals[r]) for r in range(series.stride, len(losses) + 1, series.stride)]
    now = (len(losses), total)
    assert series.until(*now) == [*points[:-1], now]
    few = series.until(*now, most=7)
    assert len(few) <= 7
    assert few[-1] == now
    assert set(few) <= {*points, now}


def test_times_and_experts_along_the_curve_are_part_of_the_fold_and_survive_a_snapshot():
    state = LearnerState(learners.build({"task": "multiclass"}))
    for i in range(1100):
        words = {"features": {f"w{i % 7}": 1.0}}
        state.apply(i + 1, Event({"label": f"l{i % 3}"}, words, at=1000.0 + i))
    points = state.history()
    assert [point["at"] for point in points] == [999.0 + point["rounds"] for point in points]
    assert len(state.experts()) == len(points[0]["experts"]) > 1
    assert [row["mean_loss"] for row in state.learner.model.expert_rows()] == list(points[-1]["experts"])
    data, out = BytesIO(), BytesIO()
    digest = state.dump(data)
    data.seek(0)
    again = LearnerState.load(data, digest)
    assert again.history() == points
    assert again.dump(out) == digest
    assert out.getvalue() == data.getvalue()


def test_the_windows_of_a_curve_add_up_to_its_loss():
    state = LearnerState(learners.build(SPEC))
    for i in range(1500):
        state.apply(i + 1, Event({"label": event(i)["label"]}, {"features": event(i)["features"]}))
    points = state.history()
    places = [0, *(point["rounds"] for point in points)]
    widths = [b - a for a, b in pairwise(places)]
    lost = sum(point["window_loss"] * width for point, width in zip(points, widths, strict=True))
    assert lost == pytest.approx(state.learner.progress.cumulative_loss, abs=1e-9)
    assert points[-1]["rounds"] == 1500
