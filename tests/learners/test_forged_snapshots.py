"""A snapshot with a right checksum may still be forged: it is refused with the reason, or it is a learner that works."""

import hashlib
import json

import numpy as np
import pytest
from test_laws import every_spec, run, stream

from feedrank.learners import SnapshotError, build, codec, dump, load

FORGERIES = 40
NUMBERS = [-1, 0, 1, 7, 2**31, 2**62, 10**40, 0.5, -0.5, 1e300, -1e300, float("nan"), float("inf")]
VALUES = [*NUMBERS, None, True, "x", [], {}, [1], {"x": 1}]


def parts(data):
    """Header, and the bytes of every array."""
    _, _, length = codec._START.unpack_from(data)
    start = codec._START.size
    header, at, arrays = json.loads(data[start : start + length]), start + length, []
    for _, kind, shape in header["arrays"]:
        array = np.frombuffer(data, kind, int(np.prod(shape)), at).reshape(shape).copy()
        arrays.append(array)
        at += array.nbytes + -array.nbytes % 8
    return header, arrays


def signed(header, arrays):
    """The snapshot of these parts, with its checksum."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + codec._START.size) % 8)
    data = codec._START.pack(codec.MAGIC, codec.FORMAT, len(text)) + text
    for array in arrays:
        data += array.tobytes() + bytes(-array.nbytes % 8)
    return data + hashlib.sha256(data).digest()


def places(value, path=()):
    """Every place of some JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))


def change_header(header, rng):
    every = [path for path in places(header) if path]
    *way, last = every[rng.integers(len(every))]
    inside = header
    for key in way:
        inside = inside[key]
    if rng.integers(5) == 0 and isinstance(inside, dict):
        del inside[last]
    else:
        inside[last] = VALUES[rng.integers(len(VALUES))]


def change_array(header, arrays, rng):
    which = int(rng.integers(len(arrays)))
    array, kind = arrays[which], rng.integers(4)
    if kind == 0 and array.size:
        flat = array.reshape(-1)
        with np.errstate(all="ignore"):
            flat[rng.integers(array.size)] = np.array(
                NUMBERS[rng.integers(len(NUMBERS))], dtype=np.float64
            ).astype(array.dtype)
    elif kind == 1:
        arrays[which] = array.reshape(-1)[: array.size // 2].copy()
        header["arrays"][which][2] = [array.size // 2]
    elif kind == 2:
        arrays[which] = array.astype(np.float32 if array.dtype == np.float64 else np.float64)
        header["arrays"][which][1] = arrays[which].dtype.str
    else:
        arrays[which] = np.zeros((*array.shape, 2), dtype=array.dtype)
        header["arrays"][which][2] = list(arrays[which].shape)


def assert_works(learner, spec):
    """Predictions are finite, before and behind some events, and it can be saved."""
    for instance, _ in stream(spec, 5, 4):
        json.dumps(learner.predict(instance).to_json(), allow_nan=False)
    run(learner, stream(spec, 6, 4))
    json.dumps(learner.describe(), allow_nan=False)
    assert dump(load(dump(learner))) == dump(learner)


@every_spec
def test_a_forged_snapshot_is_refused_or_works(spec):
    learner = build(spec)
    run(learner, stream(spec, 1, 9))
    data = dump(learner)
    header, arrays = parts(data)
    assert dump(load(signed(header, arrays))) == data
    refused = 0
    for seed in range(FORGERIES):
        rng = np.random.default_rng(seed)
        header, arrays = parts(data)
        (change_header(header, rng) if rng.integers(2) else change_array(header, arrays, rng))
        try:
            forged = load(signed(header, arrays))
        except SnapshotError:
            refused += 1
        else:
            assert_works(forged, spec)
    assert refused >= FORGERIES // 4


def test_deep_headers_and_wrong_lengths_are_refused():
    data = dump(build({"task": "multiclass"}))
    start = codec._START.size
    for text, length in ((b"[" * 100_000, 100_000), (data[start:-32], 2**63)):
        body = codec._START.pack(codec.MAGIC, codec.FORMAT, length) + text
        with pytest.raises(SnapshotError):
            load(body + hashlib.sha256(body).digest())
