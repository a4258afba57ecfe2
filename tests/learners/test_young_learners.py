"""Least squares has room for some names at once: no bit depends on it, and new names need no round by pieces."""

import numpy as np
import pytest

from feedrank.learners import build, dump, kernel, load
from feedrank.learners.algorithms.auto.least_squares import BLOCK, HATS, MOST, WAVES, places_of, room_for


def events(count=160):
    rng = np.random.default_rng(2)
    for at in range(count):
        joining = {f"x{2 * at}": 1.0 - at % 3, f"x{2 * at + 1}": 0.5}
        old = {
            f"x{int(j)}": float(v)
            for j, v in zip(rng.integers(0, 2 * at + 1, 4), rng.normal(size=4), strict=True)
        }
        yield {"features": old | joining}, {"label": "abc"[int(rng.integers(3))]}


@pytest.mark.skipif(kernel.NAME != "native", reason="NumPy does all rounds by their pieces")
@pytest.mark.parametrize("algorithm", ["auto", "least-squares"])
def test_rounds_whose_names_join_are_whole_and_have_the_bits_of_the_pieces(algorithm):
    spec = {"task": "multiclass", "algorithm": algorithm, "labels": ["a", "b", "c"]}
    whole, pieces = build(spec), build(spec)
    pieces._fused = None
    by_pieces = 0
    for at, (instance, truth) in enumerate(events()):
        assert whole.predict(instance) == pieces.predict(instance)
        assert whole.learn(instance, truth) == pieces.learn(instance, truth)
        by_pieces += not whole._fused._bound  # a piece has cleared it
        if at % 25 == 7:
            assert dump(whole) == dump(pieces)
            whole = load(dump(whole))
    assert dump(whole) == dump(pieces)
    assert by_pieces < 30


def test_a_snapshot_goes_on_exactly_whatever_room_there_was():
    one = build({"task": "multiclass", "labels": ["a", "b", "c"]})
    other = load(dump(one))
    for at, (instance, truth) in enumerate(events(40)):
        other = load(dump(other)) if at % 3 else other
        one.learn(instance, truth)
        other.learn(instance, truth)
    assert dump(one) == dump(other)


def test_a_snapshot_has_nothing_of_what_there_is_only_room_for():
    learner = build({"task": "binary", "labels": ["a", "b"], "algorithm": "least-squares", "bias": False})
    learner.learn({"features": {"x": 1.0, "y": 2.0, "z": -1.0}}, {"label": "b"})
    expert = learner.model.experts[0]
    assert expert.arrays()["P"].shape == (1 + WAVES + 3 * (1 + len(HATS)),) * 2
    assert len(expert.P) > expert.width
    room = slice(expert.width, None)
    assert np.array_equal(expert.P[room], np.eye(len(expert.P))[room])
    assert not expert.R[room].any()


@pytest.mark.parametrize("features", [0, 1, 8, 9, 17, 18, 64, 65, 256, 257, 299, 300])
def test_room_is_made_in_few_blocks_and_never_beyond_the_most(features):
    room = room_for(features)
    assert features <= room <= MOST
    assert room <= max(8, 2 * features, features + BLOCK)
    places, curved, width = places_of(room)
    for fewer in range(room):
        own, hats, _ = places_of(fewer)
        assert own.tolist() == places[:fewer].tolist()
        assert hats == min(fewer, curved)
    assert width == 1 + WAVES + room + curved * len(HATS)
