"""Data frames in, data frames out: learn from a table of pandas, Arrow or Polars, and predict its rows.

    learn_frame(learner, frame, truth="folder", text=["subject", "body"])
    predict_frame(learner, frame, text=["subject", "body"])

`feedrank.compat.pandas`, `.arrow` and `.polars` have the two as `learn` and `predict`. The learner is one of
`feedrank.learners`, or `Remote(client, name)`: one of a service. One with an `input` reads the rows by it. Else a column of
lists or arrays of numbers, such as embeddings, is the `vector` of each row, and the other columns are its features.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from feedrank.learners import Learner, Outcome

from .portable import features_of

if TYPE_CHECKING:
    from feedrank.clients.client import Client

COLUMNS = ("prediction", "probability", "margin", "known", "unknown", "abstained")
CHUNK = 256  # rows of one request


@dataclass(frozen=True, slots=True)
class Remote:
    """A learner of a service."""

    client: "Client"
    name: str

    @property
    def spec(self) -> Mapping[str, object]:
        return self.client.learner(self.name).spec

    def replies(self, call: str, bodies: Iterator[dict[str, object]]) -> Iterator[Any]:
        """The reply to each body, in order; what is refused ends it."""
        from feedrank.clients.exceptions import Refused  # noqa: PLC0415  (without a client there is nothing to refuse)

        while batch := [{call: body} for body in islice(bodies, CHUNK)]:
            for reply in self.client.stream(self.name, batch):
                if isinstance(reply, Refused):
                    raise reply
                yield reply


Target = Learner | Remote


def rows_of(frame: Any) -> Iterator[dict[str, object]]:
    """The rows of a DataFrame, a Table or a RecordBatch as dicts by column."""
    if hasattr(frame, "to_batches"):  # an Arrow table: one batch in memory as Python values at a time
        for batch in frame.to_batches(max_chunksize=1024):
            yield from batch.to_pylist()
    elif hasattr(frame, "to_pylist"):
        yield from frame.to_pylist()
    elif hasattr(frame, "iter_rows"):  # Polars
        yield from frame.iter_rows(named=True)
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


def _cell(value: Any) -> object:
    """A cell as JSON has it; what is missing (NaN, NaT, NA) is None."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, str | int | list | tuple):
        return value
    said = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return None if said in ("NaT", "<NA>") else said


class _Reader:
    """Makes instances of rows, by the learner's `input` if it has one."""

    def __init__(self, target: Target, text: Sequence[str], unused: str | None) -> None:
        self._roles = target.spec.get("input")
        self._text, self._unused = text, unused
        if self._roles and text:
            raise ValueError("the learner reads records by its own input: leave `text` out")

    def __call__(self, row: Mapping[str, object]) -> dict[str, object]:
        rest = {name: value for name, value in row.items() if name != self._unused}
        if self._roles:
            return {"row": {name: _cell(value) for name, value in rest.items()}}
        return instance_of(rest, self._text)


def learn_frame(target: Target, frame: Any, truth: str, text: Sequence[str] = ()) -> list[Outcome]:
    """One round a row. The column `truth` is a label; a list there is a set of labels; rows without one are passed over."""
    read = _Reader(target, text, truth)
    rows = ((read(row), wanted) for row in rows_of(frame) if (wanted := _truth(row[truth])) is not None)
    if isinstance(target, Remote):
        return [
            Outcome(one.loss, one.mistake, one.updated)
            for one in target.replies("feedback", ({**instance, **wanted} for instance, wanted in rows))
        ]
    return [target.learn(instance, wanted) for instance, wanted in rows]


def _truth(value: Any) -> dict[str, object] | None:
    if isinstance(value, list | tuple | set | np.ndarray):
        return {"labels": [str(label) for label in value]}
    cell = _cell(value)
    return None if cell is None or (isinstance(cell, str) and not cell.strip()) else {"label": str(cell)}


def columns_of(
    target: Target, frame: Any, text: Sequence[str] = (), truth: str | None = None, each: bool = False
) -> dict[str, list[Any]]:
    """The columns of the predictions. `truth` is not looked at; with `each`, each label has a column of its probability."""
    read = _Reader(target, text, truth)
    instances = map(read, rows_of(frame))
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    shares: list[dict[str, float]] = []
    for decision, probabilities, said in (
        _remote(target, instances) if isinstance(target, Remote) else _local(target, instances)
    ):
        first = next(iter(probabilities.values()), None)
        for name, value in zip(COLUMNS, (decision, first, *said), strict=True):
            columns[name].append(value)
        shares.append(probabilities)
    if each:
        for label in sorted({label for one in shares for label in one}):
            columns[f"probability:{label}"] = [one.get(label) for one in shares]
    return columns


Answer = tuple[Any, dict[str, float], tuple[Any, ...]]


def _local(learner: Learner, instances: Iterator[dict[str, object]]) -> Iterator[Answer]:
    for instance in instances:
        one = learner.predict(instance)
        decision = one.decision if one.decision is not None or one.abstained else [n for n, _ in one.ranking]
        probabilities = one.probability_of() if one.probabilities else {}
        yield decision, probabilities, (one.margin, one.known, one.unknown, one.abstained)


def _remote(learner: Remote, instances: Iterator[dict[str, object]]) -> Iterator[Answer]:
    for one in learner.replies("predict", ({**instance, "remember": False} for instance in instances)):
        decision = one.label if one.labels is None else one.labels
        if decision is None and not one.abstained:
            decision = [entry.key for entry in one.ranking]
        probabilities = {e.key: e.probability for e in one.ranking if e.probability is not None}
        yield decision, probabilities, (one.margin, one.known, one.unknown, one.abstained)


def predict_frame(
    target: Target, frame: Any, text: Sequence[str] = (), truth: str | None = None, each: bool = False
) -> Any:
    """The predictions of the rows, in the same order, as a frame of the same kind (of pandas: with the same index)."""
    columns = columns_of(target, frame, text, truth, each)
    if hasattr(frame, "to_pylist"):
        import pyarrow as pa  # noqa: PLC0415  (who has such a table has it)

        return pa.table(columns)
    if hasattr(frame, "iter_rows"):
        import polars as pl  # noqa: PLC0415

        return pl.DataFrame(columns)
    import pandas as pd  # noqa: PLC0415

    return pd.DataFrame(columns, index=frame.index)
