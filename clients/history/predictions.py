"""The rows of a file, predicted: the label, how sure it is, and how much of the row the learner has seen before."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from ..client import Client
from ..exceptions import Refused
from ..payloads import JSON
from ..replies import Prediction
from .formats import format_of
from .parquet import arrow
from .tables import FormatError, Line

COLUMNS = ("prediction", "probability", "margin", "known", "unknown", "abstained", "problem")


@dataclass(frozen=True, slots=True)
class PredictedLine:
    """The prediction for a line, or why there is none."""

    line: Line
    prediction: Prediction | None = None
    problem: str = ""

    @property
    def shown(self) -> str:
        """The decision as a person reads it."""
        if self.prediction is None:
            return self.problem
        if self.prediction.labels is not None:
            return ", ".join(self.prediction.labels)
        if self.prediction.label is None and self.prediction.ranking and not self.prediction.abstained:
            return " > ".join(entry.key for entry in self.prediction.ranking[:5])
        return self.prediction.label or ""

    @property
    def probability(self) -> float | None:
        """That of the best entry, where the learner estimates one."""
        ranking = [] if self.prediction is None else self.prediction.ranking
        return ranking[0].probability if ranking else None

    def cells(self) -> JSON:
        """As columns of a table."""
        one = self.prediction
        values = (
            (self.shown, self.probability, one.margin, one.known, one.unknown, one.abstained, self.problem)
            if one is not None
            else (None, None, None, None, None, None, self.problem)
        )
        return dict(zip(COLUMNS, values, strict=True))


def answers(
    client: Client, learner: str, lines: Iterable[Line], remember: bool = False, chunk: int = 256
) -> Iterator[PredictedLine]:
    """Predict every line, in order."""
    reading = iter(lines)
    while batch := list(islice(reading, chunk)):
        good = [line for line in batch if line.body is not None]
        asked = [{"predict": _question(line, remember)} for line in good]
        replies = dict(zip(map(id, good), client.stream(learner, asked), strict=True))
        for line in batch:
            reply = replies.get(id(line))
            if isinstance(reply, Prediction):
                yield PredictedLine(line, reply)
                continue
            if isinstance(reply, Refused) and reply.status in (401, 403, 404, 503):
                raise reply
            yield PredictedLine(line, problem=line.problem if reply is None else str(reply))


def _question(line: Line, remember: bool) -> JSON:
    instance = {
        name: value
        for name, value in (line.body or {}).items()
        if name in ("features", "text", "vector", "row", "items", "unknown_columns")
    }
    if not remember:
        return {**instance, "remember": False}
    return {**instance, "prediction_id": line.id} if line.id and len(line.id) <= LONGEST_ID else instance


LONGEST_ID = 200  # characters of a prediction id


def least_sure_first(predicted: Iterable[PredictedLine]) -> list[PredictedLine]:
    """Those of small margins, then the others; what was refused comes first of all."""
    return sorted(predicted, key=_certainty)


def _certainty(answer: PredictedLine) -> float:
    if answer.prediction is None:
        return -1.0
    certainty = answer.probability if answer.probability is not None else answer.prediction.margin
    return 0.0 if certainty is None else certainty


def write_answers(predicted: Iterable[PredictedLine], path: Path) -> int:
    """Each row with the columns of its prediction, in the format that the file's name tells; how many."""
    form = format_of(path)
    if form not in ("csv", "jsonl", "parquet"):
        raise FormatError("predictions are written as .csv, .tsv, .jsonl or .parquet")
    rows = ({**(answer.line.row or {"line": answer.line.number}), **answer.cells()} for answer in predicted)
    if form == "parquet":
        return _parquet(list(rows), path)
    first = list(islice(rows, 1))
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        names = list(first[0]) if first else list(COLUMNS)
        table = csv.DictWriter(
            file, names, extrasaction="ignore", delimiter="\t" if path.suffix == ".tsv" else ","
        )
        if form == "csv":
            table.writeheader()
        for row in chain(first, rows):
            if form == "csv":
                table.writerow(row)
            else:
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            count += 1
    return count


def _parquet(rows: list[JSON], path: Path) -> int:
    pa, parquet = arrow()
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return len(rows)
