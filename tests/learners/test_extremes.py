"""Numbers at the ends of what is accepted never raise, and never give a NaN or an infinity."""

import json

import numpy as np
import pytest
from task_events import event
from test_laws import SPECS

from feedrank.learners import InputError, build, dump, load, registry, spec

SIZES = (0.0, 1e-300, 1e-150, 1e-8, 0.5, 1.0, 3.0, 1e8, 1e50, 1e77, 1e100)


def extreme(value, rng, signed):
    """The same JSON with other numbers."""
    if isinstance(value, dict):
        return {key: extreme(part, rng, signed) for key, part in value.items()}
    if isinstance(value, list):
        return [extreme(part, rng, signed) for part in value]
    if isinstance(value, int | float):
        return float(rng.choice(SIZES)) * (float(rng.choice((-1, 1))) if signed else 1.0)
    return value


def at_an_end(asked, rng):
    """The spec with its numbers at an end of their range."""
    full = build(asked).spec
    ends = {}
    for name, parameter in spec.parameters(registry.algorithm(full["algorithm"])).items():
        if name in full and isinstance(full[name], float):
            for value in rng.permutation([1e-15, 1e-3, 1e3, 1e15]).tolist():
                try:
                    build(full | {name: value})
                except InputError:
                    continue
                ends[name] = value
                break
        elif name in ("degree",) and name in full:
            ends[name] = int(rng.choice([1, 2**53]))
        elif parameter.check is registry.algorithm("predtron").parameters["weights"].check and full.get(name):
            ends[name] = {label: float(rng.choice([1e-15, 1e15])) for label in full[name]}
    return full | ends


def assert_finite(learner):
    for array in learner.model.arrays().values():
        assert np.isfinite(array).all()
    json.dumps(learner.describe(), allow_nan=False)


def play(learner, asked, rng, count):
    signed = learner.spec.get("complexity") != "entropy"
    for _ in range(count):
        instance, truth = event(asked, rng)
        instance = extreme(instance, rng, signed)
        if "relevance" in truth:
            truth = {"relevance": extreme(truth["relevance"], rng, False)}
        prediction = learner.predict(instance)
        json.dumps(prediction.to_json(), allow_nan=False)
        outcome = learner.learn(
            instance, truth, served=prediction.served(), weight=float(rng.choice([1e-9, 1, 1000]))
        )
        assert np.isfinite(outcome.loss)
        assert outcome.served_loss is None or np.isfinite(outcome.served_loss)
        json.dumps(learner.predict(instance).to_json(), allow_nan=False)
        assert_finite(learner)
    assert dump(load(dump(learner))) == dump(learner)


@pytest.mark.parametrize("asked", SPECS, ids=lambda s: "-".join(str(v) for v in s.values())[:60])
def test_extreme_numbers_stay_finite(asked):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        play(build(asked), asked, rng, 8)


@pytest.mark.parametrize("asked", SPECS, ids=lambda s: "-".join(str(v) for v in s.values())[:60])
def test_settings_at_their_ends_stay_finite(asked):
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        play(build(at_an_end(asked, rng)), asked, rng, 8)
