"""A learner as bytes: plain, versioned, checksummed.

    b"FEEDRANK" | format u32 | header length u64 | header, JSON | arrays, each from a multiple of 8 | sha256

The header tells the spec, names, counters, and of every array its name, type and shape. Little-endian throughout.
The digest is that of all before it. Equal learners give equal bytes, so it is also a fingerprint of the state.
"""

import hashlib
import json
import struct
from io import BytesIO
from typing import Any

import numpy as np

from .errors import SnapshotError
from .learner import Learner, build
from .names import Names
from .results import Progress
from .soundness import (
    check_arrays,
    check_counters,
    check_header,
    check_kinds,
    check_labels,
    check_same,
    dtype_of,
    probe,
    size_of,
)

MAGIC = b"FEEDRANK"
FORMAT = 2
_START = struct.Struct("<8sIQ")
_DIGEST = 32
_PIECE = 2**22  # bytes of an array that are written at a time


def dump(learner: Learner) -> bytes:
    """The whole learner."""
    arrays = {f"model/{name}": array for name, array in learner.model.arrays().items()}
    names, ends = learner.features.text()
    arrays["names"] = np.frombuffer(names, np.uint8)
    arrays["ends"] = np.frombuffer(ends, np.int64)
    if learner.transform.idf:
        arrays["counts"] = learner.features.counts
    if learner.transform.scaling is not None:
        statistics = learner.transform.scaling.arrays(len(learner.features))
        arrays |= {f"scaling/{name}": array for name, array in statistics.items()}
    if learner.transform.blocks is not None:
        arrays |= {f"blocks/{name}": array for name, array in learner.transform.blocks.arrays().items()}
    arrays["recent"] = np.array(learner.progress.recent, dtype=np.float64)
    progress = learner.progress
    header = {
        "spec": learner.spec,
        "version": learner.version,
        "labels": list(learner.labels),
        "events": learner.features.events,
        "progress": [progress.rounds, progress.mistakes, progress.updates, progress.cumulative_loss],
        "counters": learner.model.counters(),
        "arrays": [
            [name, array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in arrays.items()
        ],
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=True).encode("ascii")
    text += b" " * (-(len(text) + _START.size) % 8)
    # One buffer that is handed out as it is, filled piece by piece: a learner of a gigabyte is not copied as a whole.
    out, digest = BytesIO(), hashlib.sha256()

    def write(piece: Any) -> None:
        out.write(piece)
        digest.update(piece)

    write(_START.pack(MAGIC, FORMAT, len(text)) + text)
    for array in arrays.values():
        rows = max(1, _PIECE // max(1, array[:1].nbytes))
        for first in range(0, len(array), rows):
            write(np.ascontiguousarray(array[first : first + rows], array.dtype.newbyteorder("<")).data)
        write(bytes(-array.nbytes % 8))
    out.write(digest.digest())
    return out.getvalue()


def fingerprint(learner: Learner) -> str:
    """A digest of the state: equal on all replicas that applied the same events."""
    return dump(learner)[-_DIGEST:].hex()


def load(data: bytes) -> Learner:
    """The learner that was dumped, to the last bit; SnapshotError with the reason if the bytes are not one."""
    header, arrays = _open(data)
    try:
        learner = _restored(header, arrays)
        probe(learner)
    except MemoryError:
        raise
    except Exception as error:  # whatever a forged part makes a model raise, the snapshot is refused
        raise SnapshotError(
            f"the snapshot is sound but does not describe a learner of this version: {error}"
        ) from error
    return learner


def _restored(header: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    check_header(header)
    check_arrays(arrays)
    stored = {name: array for name, array in arrays.items() if name.startswith("model/")}
    learner = build(header["spec"])
    check_counters(header["counters"], learner.model.counters())
    check_labels(learner, header["spec"], header["labels"])
    learner.version = header["version"]
    learner.labels = Names(header["labels"])
    names, ends = arrays.pop("names"), arrays.pop("ends")
    counts = arrays.pop("counts", np.zeros(len(ends), dtype=np.int64))
    learner.features.restore(names.tobytes(), ends.tobytes(), counts, header["events"])
    if learner.transform.scaling is not None:
        statistics = {name: arrays.pop(f"scaling/{name}") for name in ("counts", "means", "deviations")}
        learner.transform.scaling.restore(statistics, len(learner.features))
    if learner.transform.blocks is not None:
        right, wrong = arrays.pop("blocks/right"), arrays.pop("blocks/wrong")
        learner.transform.blocks.restore(learner.features, right, wrong)
    rounds, mistakes, updates, cumulative_loss = header["progress"]
    learner.progress = Progress(rounds, mistakes, updates, cumulative_loss, arrays.pop("recent").tolist())
    learner.grow()
    own = {name.removeprefix("model/"): array for name, array in arrays.items()}
    check_kinds(stored, learner.model.arrays())
    learner.model.restore(own, header["counters"])
    check_same(learner, stored, header["counters"])
    return learner


def _open(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    if len(data) < _START.size + _DIGEST or data[:8] != MAGIC:
        raise SnapshotError("these bytes are not a feedrank snapshot")
    _, version, length = _START.unpack_from(data)
    if version > FORMAT:
        raise SnapshotError(
            f"the snapshot has format {version}, newer than this version of feedrank reads ({FORMAT})"
        )
    if version < FORMAT:
        raise SnapshotError(
            f"the snapshot has format {version}, of a version whose sums ran in another order: "
            "rebuild the learner from its log (`feedrank replay`)"
        )
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise SnapshotError("the snapshot is damaged: its checksum does not fit")
    try:
        if length > len(body) - _START.size:
            raise ValueError("it is longer than the snapshot")
        header = json.loads(bytes(body[_START.size : _START.size + length]))
        arrays: dict[str, Any] = {}
        at = _START.size + length
        for name, kind, shape in header["arrays"]:
            count, dtype = size_of(shape), dtype_of(kind)
            if name in arrays:
                raise ValueError(f"{name} is duplicated")
            array = np.frombuffer(body, dtype, count, at).reshape(shape)
            # Weights copy what they restore; all else may keep its array, and must be able to write to it.
            arrays[name] = array.astype(dtype.newbyteorder("="), copy=name != "model/theta")
            at += array.nbytes + -array.nbytes % 8
        if at != len(body):
            raise ValueError("the arrays do not fill the snapshot")
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise SnapshotError(f"the snapshot's header cannot be read: {error}") from error
    return header, arrays
