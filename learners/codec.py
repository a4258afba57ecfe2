"""A learner as bytes: plain, versioned, checksummed.

    b"FEEDRANK" | format u32 | header length u64 | header, JSON | arrays, each from a multiple of 8 | sha256

The header tells the spec, names, counters, and of every array its name, type and shape. Little-endian throughout.
The digest is that of all before it. Equal learners give equal bytes, so it is also a fingerprint of the state.
"""

import copy
import hashlib
import json
import math
import struct
from collections import deque
from collections.abc import Iterator
from io import SEEK_END, BytesIO
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import OutdatedSnapshotError, SnapshotError, damaged_snapshot
from .learner import Learner, build
from .names import Names
from .results import Progress
from .soundness import (
    check_arrays,
    check_counters,
    check_header,
    check_kinds,
    check_labels,
    check_magnitudes,
    check_renames,
    check_same,
    dtype_of,
    probe,
    size_of,
)
from .spec import completed
from .trial import try_out
from .weights.base import Arrays

MAGIC = b"FEEDRANK"
FORMAT = 2
# Counts the releases in which equal logs came to give other weights; release 0.2 was 1. What was saved under another number
# is folded anew from its log (service/runtime/checkpoints.py).
ARITHMETIC = 2
_START = struct.Struct("<8sIQ")
_DIGEST = 32
_PIECE = 2**22  # bytes that are read or written at a time


def pieces(learner: Learner) -> Iterator[bytes | memoryview]:
    """The whole learner, piece by piece, the digest last: one of a gigabyte is never copied as a whole."""
    arrays, progress = arrays_of(learner), learner.progress
    header = {
        "spec": learner.spec,
        "version": learner.version,
        "labels": list(learner.labels),
        "events": learner.features.events,
        "progress": [progress.rounds, progress.mistakes, progress.updates, progress.cumulative_loss],
        **({"vector": list(learner.features.vector)} if learner.features.vector[1] else {}),
        "counters": learner.model.counters(),
        "arrays": [
            [name, array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in arrays.items()
        ],
    }
    if learner.renames:
        header["renames"] = learner.renames
    text = json.dumps(header, separators=(",", ":"), allow_nan=True).encode("ascii")
    text += b" " * (-(len(text) + _START.size) % 8)
    digest = hashlib.sha256()
    for piece in _contents(_START.pack(MAGIC, FORMAT, len(text)) + text, arrays):
        digest.update(piece)
        yield piece
    yield digest.digest()


def arrays_of(learner: Learner) -> Arrays:
    """All arrays of a snapshot, by name."""
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
    return arrays


def _contents(head: bytes, arrays: Arrays) -> Iterator[bytes | memoryview]:
    yield head
    for array in arrays.values():
        rows = _rows(array)
        for first in range(0, len(array), rows):
            yield np.ascontiguousarray(array[first : first + rows], array.dtype.newbyteorder("<")).data
        yield bytes(-array.nbytes % 8)


def _rows(array: npt.NDArray[Any]) -> int:
    """Rows of an array that make a piece."""
    return int(max(1, _PIECE // max(1, array[:1].nbytes)))


def dump(learner: Learner) -> bytes:
    """The whole learner."""
    out = BytesIO()
    for piece in pieces(learner):
        out.write(piece)
    return out.getvalue()


def fingerprint(learner: Learner) -> str:
    """A digest of the state: equal on all replicas that applied the same events."""
    return bytes(deque(pieces(learner), 1)[0]).hex()


def load(data: bytes | BinaryIO, *, trial: bool = True) -> Learner:
    """The learner that was dumped, to the last bit; SnapshotError with the reason if the bytes are not one.

    Of a file, what follows its position is read, in pieces: it takes the memory of the learner and little more. It is read
    twice: the first reading is for a trial (trial.py), which is left out where the bytes are known to be one's own.
    """
    file = BytesIO(data) if isinstance(data, bytes) else data
    header, places = _open(file)
    try:
        if trial:
            tried = _restored(copy.deepcopy(header), places, file)
            check_magnitudes(arrays_of(tried))
            try_out(tried)
            check_magnitudes(arrays_of(tried))
            del tried
        learner = _restored(header, places, file)
        if not trial:
            probe(learner)
    except MemoryError:
        raise
    except Exception as error:  # whatever a forged part makes a model raise, the snapshot is refused
        raise SnapshotError(
            f"the snapshot is undamaged but does not describe a learner of this version: {error}"
        ) from error
    return learner


class Place(NamedTuple):
    """Where an array lies in a snapshot, and what it is."""

    at: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def _fits(self, array: npt.NDArray[Any]) -> bool:
        return array.flags.writeable and array.shape == self.shape and array.dtype == self.dtype

    def read(self, file: BinaryIO, name: str, into: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """The array, in the memory of `into` if that fits."""
        array = np.empty(self.shape, self.dtype) if into is None or not self._fits(into) else into
        rows = _rows(array)
        file.seek(self.at)
        for first in range(0, len(array) if array.size else 0, rows):  # 2^52 rows of nothing take no time
            shape = (min(rows, len(array) - first), *self.shape[1:])
            data = file.read(self.dtype.itemsize * math.prod(shape))
            piece = np.frombuffer(data, self.dtype.newbyteorder("<"))
            if not np.isfinite(piece).all():
                raise ValueError(f"{name} contains a number that is not finite")
            array[first : first + rows] = piece.reshape(shape)
        return array


def _restored(header: dict[str, Any], places: dict[str, Place], file: BinaryIO) -> Learner:
    check_header(header)
    model = {name: place for name, place in places.items() if name.startswith("model/")}
    arrays = {name: place.read(file, name) for name, place in places.items() if name not in model}
    check_arrays(arrays)
    header["spec"] = completed(header["spec"])
    learner = build(header["spec"])
    learner.renames = header.get("renames", {})
    check_renames(learner.renames, header["labels"])
    header["counters"], added = learner.model.upgraded(header["counters"])
    check_counters(header["counters"], learner.model.counters())
    check_labels(learner, header["spec"], header["labels"])
    learner.version = header["version"]
    learner.labels = Names(header["labels"])
    names, ends = arrays.pop("names"), arrays.pop("ends")
    counts = arrays.pop("counts", np.zeros(len(ends), dtype=np.int64))
    first, width = header.get("vector", (0, 0))
    learner.features.restore(names, ends, counts, header["events"], (first, width))
    del names, ends
    if learner.transform.scaling is not None:
        statistics = {name: arrays.pop(f"scaling/{name}") for name in ("counts", "means", "deviations")}
        learner.transform.scaling.restore(statistics, len(learner.features))
    if learner.transform.blocks is not None:
        blocks = learner.transform.blocks
        blocks.restore(learner.features, {name: arrays.pop(f"blocks/{name}") for name in blocks.arrays()})
    rounds, mistakes, updates, cumulative_loss = header["progress"]
    learner.progress = Progress(rounds, mistakes, updates, cumulative_loss, arrays.pop("recent").tolist())
    if arrays:
        raise ValueError(f"{next(iter(arrays))} is not an array of this learner")
    learner.grow()
    fresh = learner.model.arrays()
    check_kinds(model, fresh)
    # Read into the model's own memory, which a learner that has just grown shows as its arrays: restoring copies nothing.
    own = {
        name.removeprefix("model/"): place.read(file, name, fresh.get(name.removeprefix("model/")))
        for name, place in model.items()
    }
    own = learner.model.modern(own | added)
    learner.model.restore(dict(own), header["counters"])
    check_same(learner, own, header["counters"])
    return learner


def _open(file: BinaryIO) -> tuple[dict[str, Any], dict[str, Place]]:
    """The header, and where the arrays are, which together fill the file to its digest."""
    start = file.tell()
    end = file.seek(0, SEEK_END) - _DIGEST
    file.seek(start)
    first = file.read(_START.size)
    if end < start + _START.size or first[:8] != MAGIC:
        raise SnapshotError("these bytes are not a feedrank snapshot")
    _, version, length = _START.unpack(first)
    if version > FORMAT:
        raise SnapshotError(
            f"the snapshot has format {version}, newer than this version of feedrank reads ({FORMAT})"
        )
    if version < FORMAT:
        raise OutdatedSnapshotError(
            f"the snapshot has format {version}, of a version whose sums ran in another order: "
            "rebuild the learner from its log (`feedrank replay`)"
        )
    digest, left = hashlib.sha256(first), end - start - _START.size
    while left > 0 and (piece := file.read(min(_PIECE, left))):
        digest.update(piece)
        left -= len(piece)
    if digest.digest() != file.read(_DIGEST):
        raise damaged_snapshot()
    at = start + _START.size
    file.seek(at)
    places: dict[str, Place] = {}
    try:
        if length > end - at:
            raise ValueError("it is longer than the snapshot")
        header = json.loads(file.read(length))
        at += length
        for name, kind, shape in header["arrays"]:
            count, dtype = size_of(shape), dtype_of(kind)
            if name in places:
                raise ValueError(f"{name} is duplicated")
            places[name] = Place(at, dtype.newbyteorder("="), tuple(shape))
            at += count * dtype.itemsize + -count * dtype.itemsize % 8
        if at != end:
            raise ValueError("the arrays do not fill the snapshot")
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise SnapshotError(f"the snapshot's header cannot be read: {error}") from error
    return header, places
