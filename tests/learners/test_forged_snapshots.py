"""A snapshot with a right checksum may still be forged: it is refused with the reason, or it is a learner that works."""

import hashlib
import json
from io import BytesIO

import numpy as np
import pytest
from task_events import run, snapshot, stream
from test_laws import every_spec

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
    data = snapshot(spec, 1, 9)
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


@every_spec
def test_arrays_of_another_length_are_refused_or_work(spec):
    """Whatever goes on memory that the kernel reads by number fits its names and labels."""
    data = snapshot(spec, 1, 9)
    lengths = [shape for _, _, shape in parts(data)[0]["arrays"]]
    for which, axis, more in [
        (i, k, d) for i, n in enumerate(lengths) for k in range(len(n)) for d in (-1, 1)
    ]:
        header, arrays = parts(data)
        shape = header["arrays"][which][2]
        shape[axis] = max(shape[axis] + more, 0)
        array = np.zeros(shape, arrays[which].dtype)
        both = tuple(map(slice, np.minimum(shape, arrays[which].shape)))
        array[both] = arrays[which][both]
        arrays[which] = array
        try:
            forged = load(signed(header, arrays))
        except SnapshotError:
            continue
        assert_works(forged, spec)


WIDE = [
    {"task": "multiclass"},
    {"task": "multilabel", "algorithm": "least-squares"},
    {"task": "ordinal", "labels": ["1", "2"], "algorithm": "trees"},
    {"task": "label-ranking", "algorithm": "dual-ascent", "complexity": "entropy"},
    {"task": "subset-ranking"},
    {"task": "subset-ranking", "preset": "subset-ranking-1"},
    {"task": "choice"},
    {"task": "multiclass", "algorithm": "predtron", "norm": "l1", "normalize": "auto"},
    {"task": "multiclass", "algorithm": "quadratic-surrogate"},
]


@pytest.mark.parametrize("spec", WIDE, ids=json.dumps)
@pytest.mark.parametrize("extreme", [1e300, -1e300, 1e-300])
def test_a_number_that_no_round_can_go_on_with_is_refused(spec, extreme):
    """It is finite where it stands; what is made of it must be, too: scores, and the state behind an event."""
    data = snapshot(spec, 1, 9)
    refused = 0
    for which, array in enumerate(parts(data)[1]):
        if array.dtype != np.float64 or not array.size:
            continue
        for at in {0, array.size // 2, array.size - 1}:
            header, arrays = parts(data)
            arrays[which].reshape(-1)[at] = extreme
            try:
                forged = load(signed(header, arrays))
            except SnapshotError:
                refused += 1
            else:
                assert_works(forged, spec)
    assert refused or extreme == 1e-300


def test_a_choice_has_no_names_without_a_mark():
    """They were counted as items, so that the weights had columns of none."""
    header, arrays = parts(snapshot({"task": "choice"}, 1, 9))
    names = [name for name, _, _ in header["arrays"]]
    text = arrays[names.index("names")]
    text[text == ord("c")] = 0
    with pytest.raises(SnapshotError):
        load(signed(header, arrays))


def test_the_trial_leaves_no_trace():
    for spec in WIDE:
        data = snapshot(spec, 1, 9)
        assert dump(load(data)) == dump(load(data, trial=False)) == data


@pytest.mark.parametrize(
    ("bias", "text", "ends"), [(True, b"wuv", [1, 2, 3]), (True, b"uv", [1, 1, 2]), (False, b"v", [0, 1])]
)
def test_the_bias_and_nothing_else_has_no_name(bias, text, ends):
    """The constant is row 0: another feature there would be read as the row before the first."""
    learner = build({"task": "multiclass", "labels": ["a", "b"], "bias": bias})
    learner.learn({"features": ["u", "v"]}, {"label": "a"})
    header, arrays = parts(dump(learner))
    names = [name for name, _, _ in header["arrays"]]
    for name, array in (("names", np.frombuffer(text, np.uint8)), ("ends", np.array(ends, np.int64))):
        arrays[names.index(name)] = array
        header["arrays"][names.index(name)][2] = [len(array)]
    with pytest.raises(SnapshotError, match="names"):
        load(signed(header, arrays))


class FewReads(BytesIO):
    """A file that is read a few hundred times at most."""

    reads = 0

    def read(self, size=-1):
        self.reads += 1
        if self.reads > 300:
            pytest.fail("read for ever")
        return super().read(size)


@pytest.mark.parametrize("name", ["x", "model/x", "model/losses"])
@pytest.mark.parametrize("shape", [[2**52, 0], [0, 2**52], [], [0] * 70])
def test_arrays_of_odd_shapes_are_refused_at_once(name, shape):
    header, arrays = parts(dump(build({"task": "multiclass", "labels": ["a", "b"]})))
    names = [entry[0] for entry in header["arrays"]]
    array = np.zeros(int(np.prod(shape)))
    if name in names:
        header["arrays"][names.index(name)][2], arrays[names.index(name)] = shape, array
    else:
        header["arrays"].append([name, "<f8", shape])
        arrays.append(array)
    with pytest.raises(SnapshotError):
        load(FewReads(signed(header, arrays)))


def test_deep_headers_and_wrong_lengths_are_refused():
    data = dump(build({"task": "multiclass"}))
    start = codec._START.size
    for text, length in ((b"[" * 100_000, 100_000), (data[start:-32], 2**63)):
        body = codec._START.pack(codec.MAGIC, codec.FORMAT, length) + text
        with pytest.raises(SnapshotError):
            load(body + hashlib.sha256(body).digest())
