"""Laws of what every learner refuses: wrong events, options that mean nothing, damaged snapshots."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from task_events import event, run, snapshot, stream
from test_laws import every_spec

from feedrank.learners import InputError, SnapshotError, build, dump, load


@every_spec
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(noise=st.binary(max_size=40), seed=st.integers(0, 5), place=st.floats(0, 1))
def test_damage_is_noticed(spec, noise, seed, place):
    data = snapshot(spec, seed, 5)
    at = int(place * (len(data) - 1))
    damaged = data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :]
    for wrong in (noise, data[:at], damaged, data + b"x"):
        with pytest.raises(SnapshotError):
            load(wrong)


@every_spec
def test_a_refused_event_leaves_no_trace(spec):
    learner = build(spec)
    run(learner, stream(spec, 11, 10))
    before = dump(learner)
    good, answer = event(spec, np.random.default_rng(0))
    bad = [
        ({"features": {"new": float("nan")}}, answer),
        ({"features": {"new": 10**400}}, answer),
        ({"features": {"new": "1"}}, answer),
        ({"features": {"": 1}}, answer),
        ({"features": ["new", 1]}, answer),
        ({"features": [1, True]}, answer),
        ({"items": []}, answer),
        ({"items": [{"id": "x", "features": []}, {"id": "x", "features": []}]}, answer),
        ({}, answer),
        (7, answer),
        (good | {"extra": 1}, answer),
        (good, {}),
        (good, {"label": "a", "labels": ["a"]}),
        (good, {"label": 3}),
        (good, {"relevance": {"d0": -1}}),
        (good, {"relevance": {"d0": float("inf")}}),
        (good, {"clicks": ["nowhere"]}),
        (good, {"truth": 1}),
    ]
    for instance, wrong in bad:
        with pytest.raises(InputError) as caught:
            learner.learn(instance, wrong)
        assert caught.value.detail
        with pytest.raises(InputError):
            learner.check(instance, wrong)
    assert dump(learner) == before


@every_spec
def test_options_that_mean_nothing_are_refused(spec):
    learner = build(spec)
    events = stream(spec, 12, 5)
    run(learner, events)
    instance = events[0][0]
    wrong = [
        {"top": 0},
        {"top": True},
        {"top": 1.5},
        {"min_margin": -1},
        {"min_margin": float("nan")},
        {"loss": "nonsense"},
    ]
    for options in wrong:
        with pytest.raises(InputError) as caught:
            learner.predict(instance, **options)
        assert caught.value.pointer == "/" + next(iter(options))
        with pytest.raises(InputError):
            build(spec).predict(instance, **options)
