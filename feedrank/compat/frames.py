"""Learn from a pandas DataFrame, an Arrow Table or RecordBatch, row by row.

learn_frame(learner, frame, truth="folder", text=["subject", "body"])

A column of lists or arrays of numbers, such as embeddings, is the `vector` of each row.
"""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from feedrank.learners import Learner, Outcome

from .portable import features_of


def rows_of(frame: Any) -> Iterator[dict[str, object]]:
    """The rows of a DataFrame, a Table or a RecordBatch as dicts by column."""
    if hasattr(frame, "to_batches"):  # an Arrow table: one batch in memory as Python values at a time
        for batch in frame.to_batches(max_chunksize=1024):
            yield from batch.to_pylist()
    elif hasattr(frame, "to_pylist"):
        yield from frame.to_pylist()
    else:
        columns = [str(name) for name in frame.columns]
        for values in frame.itertuples(index=False, name=None):
            yield dict(zip(columns, values, strict=True))


def instance_of(row: Mapping[str, object], text: Sequence[str] = ()) -> dict[str, object]:
    """The contract's instance of a row: its vector, and its `text` columns as raw text, or else all others as features."""
    vectors = [name for name, value in row.items() if _is_vector(value)]
    if len(vectors) > 1:
        raise ValueError(f"{vectors[0]!r} and {vectors[1]!r} are both vectors: keep one of these columns")
    vector = {"vector": row[vectors[0]]} if vectors else {}
    if text:
        return {"text": {name: str(row[name]) for name in text if row.get(name) is not None}, **vector}
    rest = {name: value for name, value in row.items() if name not in vectors}
    return {"features": features_of(rest), **vector} if rest or not vector else vector


def _is_vector(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "fiu"
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(x, Real) for x in value)


def learn_frame(learner: Learner, frame: Any, truth: str, text: Sequence[str] = ()) -> list[Outcome]:
    """One round a row. The column `truth` is a label; a list there is a set of labels."""
    outcomes = []
    for row in rows_of(frame):
        value = row.pop(truth)
        if isinstance(value, list | tuple | set):
            wanted: dict[str, object] = {"labels": [str(label) for label in value]}
        else:
            wanted = {"label": str(value)}
        outcomes.append(learner.learn(instance_of(row, text), wanted))
    return outcomes
