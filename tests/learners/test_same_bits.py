"""A recorded stream for every spec leaves the same bits in every learner, on every kernel, whatever the CPU can do.

Each environment is a process of its own: BLAS and NumPy choose their code by the CPU when they are loaded.
"""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numpy._core import _multiarray_umath as cpu
from task_events import event, stream
from test_laws import SPECS

from feedrank.learners import forms, kernel

REPLAY = """
import json, sys
from feedrank.learners import build, fingerprint
for spec, events in json.load(sys.stdin):
    learner = build(spec)
    for instance, truth in events:
        served = learner.predict(instance).served() if learner.form.chooses else None
        learner.learn(instance, truth, served=served)
    print(fingerprint(learner))
"""


def with_vector(instance, rng):
    """The same, now and then, with a vector beside the features of the instance or of its items."""
    if "items" not in instance:
        return {**instance, "vector": rng.uniform(0, 1, 40).tolist()} if rng.integers(3) else instance
    ids, names, rows = instance["items"].values()
    items = [
        {"id": id, "features": dict(zip(names, row, strict=True)), "vector": rng.normal(size=9).tolist()}
        for id, row in zip(ids, rows, strict=True)
    ]
    return {**instance, "items": items} if rng.integers(2) else instance


def wide(spec, rng):
    """An event with many real numbers: long sums, whose last bits depend on their order."""
    instance, truth = event(spec, rng)
    names = [f"w{i}" for i in rng.permutation(60)[: rng.integers(20, 60)]]
    form = forms.of(spec["task"])
    if not form.items:
        return {"features": dict(zip(names, rng.uniform(0, 2, len(names)).tolist(), strict=True))}, truth
    ids = [f"d{i}" for i in range(12)]
    rows = rng.uniform(0, 1, (len(ids), len(names))).tolist()
    grades = {name: int(grade) for name, grade in zip(ids, rng.integers(0, 4, len(ids)), strict=True)}
    slots = {name: instance[name] for name in ("slots",) if name in instance}
    truth = truth if form.chooses else {"relevance": grades}
    return {"items": {"ids": ids, "columns": names, "rows": rows}, **slots}, truth


@pytest.fixture(scope="module")
def recorded():
    rng = np.random.default_rng(7)
    every = []
    for spec in SPECS:
        events = [wide(spec, rng) for _ in range(14)]
        late = [(with_vector(instance, rng), truth) for instance, truth in events[7:]]
        every.append((spec, stream(spec, 5, 10) + events[:7] + late))
    return every


def fingerprints(recorded, **environ):
    done = subprocess.run(
        [sys.executable, "-c", REPLAY],
        input=json.dumps(recorded),
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def usual(recorded):
    prints = fingerprints(recorded)
    assert len(set(prints)) == len(prints) == len(SPECS)
    return prints


def differing(usual, prints):
    """The specs of other bits: take exp, log and products of what weights depend on from the kernel, not from NumPy."""
    return [spec for spec, one, other in zip(SPECS, usual, prints, strict=True) if one != other]


def environments():
    if platform.machine() not in ("x86_64", "AMD64"):
        return []
    has = cpu.__cpu_features__
    cores = ["Prescott"]
    cores += ["Haswell"] * bool(has.get("AVX2")) + ["SkylakeX"] * bool(
        has.get("AVX512F") and has.get("AVX512BW")
    )
    present = [name for name in cpu.__cpu_dispatch__ if has.get(name)]
    without_512 = [name for name in present if "AVX512" in name or name == "X86_V4"]
    cases = [{"OPENBLAS_CORETYPE": core} for core in cores]
    cases += [{"NPY_DISABLE_CPU_FEATURES": " ".join(names)} for names in (without_512, present) if names]
    return cases


@pytest.mark.parametrize(
    "environ", environments(), ids=lambda case: "-".join(case.values()).replace(" ", "-")
)
def test_what_the_cpu_can_do_changes_no_bit(recorded, usual, environ):
    assert differing(usual, fingerprints(recorded, **environ)) == []


@pytest.mark.skipif(kernel.NAME != "native", reason="the native kernel is not built")
def test_both_kernels_leave_the_same_bits(recorded, usual):
    assert differing(usual, fingerprints(recorded, FEEDRANK_KERNEL="numpy")) == []
