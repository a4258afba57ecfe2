"""A learner as bytes: plain, versioned, checksummed.

    b"FEEDRANK" | format u32 | header length u64 | header, JSON | arrays, each from a multiple of 8 | sha256

The header tells the spec, names, counters, and of every array its name, type and shape. Little-endian throughout.
The digest is that of all before it. Equal learners give equal bytes, so it is also a fingerprint of the state.
"""

import hashlib
import json
import struct
from typing import Any

import numpy as np

from .errors import FeedrankError, SnapshotError
from .learner import Learner
from .names import Names
from .results import Progress

MAGIC = b"FEEDRANK"
FORMAT = 1
_START = struct.Struct("<8sIQ")
_DIGEST = 32


def dump(learner: Learner) -> bytes:
    """The whole learner."""
    arrays = {f"model/{name}": array for name, array in learner.model.arrays().items()}
    if learner.transform.idf:
        arrays["counts"] = learner.transform.counts[: len(learner.features)]
    arrays["recent"] = np.array(learner.progress.recent, dtype=np.float64)
    plain = {
        name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    progress = learner.progress
    header = {
        "spec": learner.spec,
        "version": learner.version,
        "labels": list(learner.labels),
        "features": list(learner.features),
        "events": learner.transform.events,
        "progress": [progress.rounds, progress.mistakes, progress.updates, progress.cumulative_loss],
        "counters": learner.model.counters(),
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()],
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=True).encode("ascii")
    text += b" " * (-(len(text) + _START.size) % 8)
    parts = [_START.pack(MAGIC, FORMAT, len(text)), text]
    for array in plain.values():
        parts += [array.tobytes(), bytes(-array.nbytes % 8)]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def fingerprint(learner: Learner) -> str:
    """A digest of the state: equal on all replicas that applied the same events."""
    return dump(learner)[-_DIGEST:].hex()


def load(data: bytes) -> Learner:
    """The learner that was dumped, to the last bit; SnapshotError with the reason if the bytes are not one."""
    header, arrays = _open(data)
    from . import build  # noqa: PLC0415  (build composes all algorithms; the codec knows none of them)

    try:
        learner = build(header["spec"])
        learner.version = header["version"]
        learner.labels = Names(header["labels"])
        learner.features = Names(header["features"])
        learner.transform.events = header["events"]
        learner.transform.counts = arrays.pop("counts", np.zeros(0))
        rounds, mistakes, updates, cumulative_loss = header["progress"]
        learner.progress = Progress(rounds, mistakes, updates, cumulative_loss, arrays.pop("recent").tolist())
        learner.grow()
        own = {name.removeprefix("model/"): array for name, array in arrays.items()}
        learner.model.restore(own, header["counters"])
    except (FeedrankError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise SnapshotError(
            f"the snapshot is sound but does not describe a learner of this version: {error}"
        ) from error
    return learner


def _open(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    if len(data) < _START.size + _DIGEST or data[:8] != MAGIC:
        raise SnapshotError("these bytes are not a feedrank snapshot")
    _, version, length = _START.unpack_from(data)
    if version > FORMAT:
        raise SnapshotError(
            f"the snapshot has format {version}, newer than this version of feedrank reads ({FORMAT})"
        )
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise SnapshotError("the snapshot is damaged: its checksum does not fit")
    try:
        header = json.loads(bytes(body[_START.size : _START.size + length]))
        arrays: dict[str, Any] = {}
        at = _START.size + length
        for name, kind, shape in header["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            dtype = np.dtype(kind)
            array = np.frombuffer(body, dtype, count, at).reshape(shape)
            arrays[name] = array.astype(dtype.newbyteorder("="))
            at += array.nbytes + -array.nbytes % 8
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"the snapshot's header cannot be read: {error}") from error
    return header, arrays
