"""Sends the lines of a file to a learner, each exactly once, and writes a learner's log to a file.

A line's feedback id is made of the source's name and the line's own id or number: a file that is read again, after a kill
or by mistake, changes nothing, because the service knows the ids.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ..client import Client
from ..exceptions import Refused
from ..payloads import JSON
from ..replies import Outcome
from .log_rows import LOG, NUMBERS, TRAINING, by_new_names, lesson, to_cell
from .parquet import arrow
from .tables import Line

POINTS = 20  # half of what the curve may have: with its words it fits a line of 80
SHOWN = 20  # refusals that are kept with their reason


@dataclass(slots=True)
class Baselines:
    """What two guesses that look at no input would have got wrong: the commonest label so far, and the one before."""

    rounds: int = 0
    commonest_wrong: int = 0
    last_wrong: int = 0
    _counts: Counter[str] = field(default_factory=Counter)
    _commonest: str | None = None
    _last: str | None = None

    def add(self, label: object) -> None:
        """One more truth; a set of labels has no such guess."""
        if not isinstance(label, str):
            return
        self.rounds += 1
        self.commonest_wrong += label != self._commonest
        self.last_wrong += label != self._last
        self._last = label
        self._counts[label] += 1
        if self._commonest is None or self._counts[label] > self._counts[self._commonest]:
            self._commonest = label


@dataclass(slots=True)
class ImportReport:
    """What an import did. `curve` holds the mean loss of each stretch of lines that were new."""

    learned: int = 0
    duplicates: int = 0
    refused: int = 0
    unlabelled: int = 0
    baselines: Baselines = field(default_factory=Baselines)
    loss: float = 0.0
    refusals: list[tuple[int, str]] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    stretch: int = 1
    _sum: float = 0.0
    _count: int = 0

    def add(self, outcome: Outcome) -> None:
        """One more reply."""
        if outcome.duplicate:
            self.duplicates += 1
            return
        self.learned += 1
        self.loss += outcome.loss
        self._sum += outcome.loss
        self._count += 1
        if self._count == self.stretch:
            self.curve.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0
        if len(self.curve) == 2 * POINTS:  # bounded for any file: two stretches become one
            self.curve = [(a + b) / 2 for a, b in zip(self.curve[::2], self.curve[1::2], strict=True)]
            self.stretch *= 2

    def refuse(self, number: int, reason: str) -> None:
        """One line that was not taken."""
        self.refused += 1
        if len(self.refusals) < SHOWN:
            self.refusals.append((number, reason))


def load(
    client: Client, learner: str, lines: Iterable[Line], source: str, chunk: int = 256
) -> Iterator[ImportReport]:
    """Send the lines as feedback, and rename what they say was renamed; the report so far after each chunk."""
    report = ImportReport()
    reading, renames = iter(lines), list[tuple[int, Mapping[str, str]]]()
    while batch := list(islice(reading, chunk)):
        good = []
        for line in batch:
            if line.rename is not None:
                renames.append((line.number, line.rename))
            elif line.unlabelled:
                report.unlabelled += 1
            elif line.body is None:
                report.refuse(line.number, line.problem)
            else:
                good.append(line)
        entries = [
            {"feedback": {**(line.body or {}), "feedback_id": event_id(source, line)}} for line in good
        ]
        for line, reply in zip(good, client.stream(learner, entries), strict=True):
            if isinstance(reply, Refused):
                if reply.status in (401, 403, 404, 503):
                    raise reply
                report.refuse(line.number, str(reply))
            elif isinstance(reply, Outcome):
                report.add(reply)
                if not reply.duplicate:
                    report.baselines.add((line.body or {}).get("label"))
        yield report
    for number, rename in renames:  # wherever they stand: they hold for all lines
        for old, new in rename.items():
            try:
                client.rename_label(learner, old, new)
            except Refused as error:
                if error.status not in (409, 422):
                    raise
                report.refuse(number, str(error))
    yield report


def event_id(source: str, line: Line) -> str:
    """The same line of the same source has the same id, whenever it is sent."""
    return f"{source}:{line.number if line.id is None else line.id}"


def events(client: Client, learner: str) -> Iterable[JSON]:
    """The whole log that is kept, oldest first."""
    after: int | None = 0
    while after is not None:
        page = client.events(learner, after=after, limit=1000)
        yield from page.events
        after = page.next


def by_new_labels(log: Iterable[JSON], renames: Mapping[str, str] | None) -> Iterable[JSON]:
    """The log as its labels are called now."""
    return (by_new_names(event, renames) for event in log) if renames else log


def training_set(log: Iterable[JSON]) -> Iterator[JSON]:
    """The feedback bodies that give the same learner again: retracted events are left out."""
    return (body for event in log if (body := lesson(event)) is not None)


def predictions(log: Iterable[JSON]) -> Iterator[JSON]:
    """What was served and what turned out to be true."""
    for event in log:
        if event.get("served") is not None:
            yield {name: event.get(name) for name in ("prediction_id", "version", "at", "served", "truth")}


@dataclass(frozen=True, slots=True)
class View:
    """A way to see a log, and its columns where it becomes a table."""

    rows: Callable[[Iterable[JSON]], Iterable[JSON]]
    columns: tuple[str, ...]


VIEWS = {
    "events": View(lambda log: log, LOG),
    "training": View(training_set, TRAINING),
    "predictions": View(predictions, ("prediction_id", "version", "at", "served", "truth")),
}


def write(log: Iterable[JSON], view: View, path: Path, form: str) -> int:
    """The rows of a view as JSONL or Parquet; how many there were."""
    rows = view.rows(log)
    if form == "parquet":
        return _parquet(rows, view.columns, path)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def _parquet(rows: Iterable[JSON], columns: tuple[str, ...], path: Path) -> int:
    pa, parquet = arrow()
    schema = pa.schema([(name, pa.type_for_alias(NUMBERS.get(name, "string"))) for name in columns])
    reading, count = iter(rows), 0
    with parquet.ParquetWriter(path, schema) as writer:
        while batch := list(islice(reading, 4096)):
            count += len(batch)
            table = {name: [to_cell(name, row.get(name)) for row in batch] for name in columns}
            writer.write_table(pa.table(table, schema))
    return count
