"""Learning is all or nothing: whatever fails inside `learn`, wherever, the learner is as it was before the event."""

import sys

import numpy as np
import pytest
from task_events import event, run, stream
from test_laws import every_spec

from feedrank.learners import build, dump

# Places at which each event is made to fail; where there are more calls, they are spread over them.
PLACES = 24


class Accident(MemoryError):
    """What a lack of memory raises, from no matter which call."""


def importing(frame):
    """Whether a module is being imported: an accident there would leave its lock to this thread for ever."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def failing(at):
    """A profiler that lets the `at`-th call of Python or C fail, or the next outside of an import, and counts the calls."""
    count, waiting = 0, at > 0

    def profile(frame, kind, argument):
        nonlocal count, waiting
        if kind in ("call", "c_call") and argument is not sys.setprofile:
            count += 1
            if waiting and count >= at and not importing(frame):
                waiting = False
                raise Accident
        return count

    return profile, lambda: count


def attempt(learner, instance, truth, at, **options):
    """Learn with an accident at the `at`-th call; how many calls there were."""
    profile, calls = failing(at)
    sys.setprofile(profile)
    try:
        learner.learn(instance, truth, **options)
    finally:
        sys.setprofile(None)
    return calls()


def fresh_event(spec, rng):
    """An event with names that the learner has not seen, where the task lets names join."""
    instance, truth = event(spec, rng)
    if "features" in instance and "items" not in instance:
        instance = {"features": {"new1": 0.5, "w1": 1.0, "new2": 0.25}, "vector": [0.5, 0.0, 2.0]}
    elif isinstance(instance.get("items"), list):
        instance["items"] = [{**item, "vector": [0.5, 0.25]} for item in instance["items"]]
    if "label" in truth and "labels" not in spec:
        truth = {"label": "newcomer"}
    elif "labels" in truth:
        truth = {"labels": ["newcomer", "a"]}
    return instance, truth


# A generator that is closed by an accident may meet another one.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@every_spec
def test_an_accident_at_any_call_leaves_no_trace(spec):
    rng = np.random.default_rng(1)
    learner, other = build(spec), build(spec)
    for history in (stream(spec, 3, 7), stream(spec, 4, 9)):
        run(learner, history)
        run(other, history)
        for instance, truth in (fresh_event(spec, rng), event(spec, rng)):
            # A reward is of what was served.
            served = learner.predict(instance).served() if learner.form.chooses else None
            before, seen = dump(learner), learner.describe()
            calls = attempt(build(spec), instance, truth, 0, served=served)
            failed = 0
            for at in sorted({*range(1, 4), *np.linspace(1, 2 * calls, PLACES).astype(int).tolist()}):
                try:
                    attempt(learner, instance, truth, at, served=served)
                except (Accident, TypeError):  # numpy turns what fails inside a comparison into a TypeError
                    failed += 1
                    assert dump(learner) == before, at
                    assert learner.describe() == seen, at
                else:
                    break  # fewer calls than that: it has learned
            else:
                learner.learn(instance, truth, served=served)
            assert failed >= 3
            other.learn(instance, truth, served=served)
            # What went wrong has no part in what comes later.
            assert dump(learner) == dump(other)
