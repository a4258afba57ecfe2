"""What the columns of a table mean, and the event that a row is.

A table is read by a learner's `input` (the row goes as it is, and the service reads it), or the options of the command name
columns. Blanks around names and labels are no part of them, unless `exact` is said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ..payloads import JSON, Payload

UNUSED = ("id", "truth", "ignore")


class FormatError(ValueError):
    """A file or an option that cannot be used at all; a single bad line is a `Line` with its `problem`."""


@dataclass(slots=True)
class Line:
    """One event: `body` is what `/feedback` takes, or None where `problem` says why there is none.

    A row without a truth is one to predict: `body` is then its instance, and `unlabelled`.
    """

    number: int
    body: JSON | None = None
    problem: str = ""
    id: str | None = None
    unlabelled: bool = False
    rename: Mapping[str, str] | None = (
        None  # labels that were called otherwise from then on, and so in all lines
    )
    row: Payload | None = None  # of a table, as it was read


def fold(name: str) -> str:
    """What two spellings of one column have in common."""
    return name.strip().casefold()


def find(name: str, names: Iterable[str]) -> str | None:
    """The column of that name, without case and outer blanks; a spelling that is the same comes first."""
    names = list(names)
    return name if name in names else next((one for one in names if fold(one) == fold(name)), None)


def no_column(wanted: Sequence[str], names: Sequence[str], option: str = "") -> str:
    """All columns that are missing, in one sentence, with those that may be meant."""
    folded = {fold(name): name for name in names}
    said = []
    for name in wanted:
        near = get_close_matches(fold(name), folded, 1, 0.6)
        said.append(repr(name) + (f" (did you mean {folded[near[0]]!r}?)" if near else ""))
    advice = f": name another with {option}" if option else ""
    return f"there is no column {', '.join(said)}; there are {', '.join(names) or 'none'}{advice}"


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table mean. Without `features`, all that is neither truth, text nor id is one."""

    truth: str = "label"
    features: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    id: str | None = None
    several: str = ""  # what separates the labels of a set; without it the truth is one label
    exact: bool = False
    needs_truth: bool = True  # a file that is only predicted has none
    roles: Mapping[str, str] = field(default_factory=dict)  # the `input` of the learner
    # spellings of labels and of columns whose outer blanks were dropped
    blanks: dict[str, set[str]] = field(default_factory=lambda: {"labels": set(), "columns": set()})

    def check(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks columns, all at once."""
        used = [column for column, role in self.roles.items() if role not in UNUSED]
        wanted = used or [*self.features, *self.text, *([self.id] if self.id else [])]
        if self.needs_truth:
            wanted.append(self._truth_column())
        missing = [name for name in wanted if find(name, names) is None]
        if missing and (not used or len(missing) == len(wanted) or self._truth_column() in missing):
            option = "--truth" if self._truth_column() in missing else ""
            raise FormatError(no_column(missing, names, option))

    def line(self, number: int, row: Payload) -> Line:
        """The event of a row."""
        if not self.exact:
            row = {self.bare(name, "columns"): value for name, value in row.items()}
        try:
            column = find(self._truth_column(), row)
            truth = None if column is None else row[column]
            id = None if self._id_column() is None else self._cell(row, self._id_column())
            known = None if id is None or str(id) == "" else str(id)
            instance = self._record(row) if self.roles else self._instance(row)
            if truth is None or (
                isinstance(truth, str) and (truth == "" if self.exact else not truth.strip())
            ):
                return Line(number, instance, id=known, unlabelled=True, row=row)
            return Line(number, {**instance, **self._truth(truth)}, id=known, row=row)
        except ValueError as error:
            return Line(number, problem=str(error), row=row)

    def bare(self, text: str, kind: str) -> str:
        """Without outer blanks, which are noted, unless they are to be kept."""
        if self.exact:
            return text
        bare = text.strip()
        if bare != text and bare:
            self.blanks[kind].add(text)
        return bare

    def note(self) -> str:
        """What was folded, in a sentence."""
        said = [f"{kind} ({len(spellings)})" for kind, spellings in self.blanks.items() if spellings]
        return f"blanks around {' and '.join(said)} are dropped; --exact keeps them" if said else ""

    def _truth_column(self) -> str:
        return next((column for column, role in self.roles.items() if role == "truth"), self.truth)

    def _id_column(self) -> str | None:
        return next((column for column, role in self.roles.items() if role == "id"), self.id)

    def _cell(self, row: Payload, name: str | None) -> Any:
        column = None if name is None else find(name, row)
        value = None if column is None else row[column]
        return value.strip() if isinstance(value, str) and not self.exact else value

    def _record(self, row: Payload) -> JSON:
        """The cells that the learner reads; a column that its input does not name is left out of what is stored."""
        used = {fold(column) for column, role in self.roles.items() if role not in UNUSED}
        return {"row": {name: _plain(value) for name, value in row.items() if fold(name) in used}}

    def _instance(self, row: Payload) -> JSON:
        wanted = (*self.features, *self.text)
        missing = [name for name in wanted if find(name, row) is None]
        if missing:
            raise ValueError(no_column(missing, list(row)))
        instance: JSON = {}
        texts = {name: self._cell(row, name) for name in self.text}
        if texts:
            instance["text"] = {name: str(value) for name, value in texts.items() if value is not None}
        if texts and not self.features:
            return instance
        used = {fold(name) for name in (self.truth, self.id or self.truth, *self.text)}
        names = self.features or [name for name in row if fold(name) not in used]
        features: dict[str, float] = {}
        for name in names:
            value = self._cell(row, name)
            numbers = vector_of(value)
            if numbers is None:
                features.update(feature(name, value))
            elif "vector" in instance:
                raise ValueError(f"the column {name!r} holds a second vector: leave one out with --features")
            else:
                instance["vector"] = numbers
        if features or "vector" not in instance:
            instance["features"] = features
        return instance

    def _truth(self, value: Any) -> JSON:
        if isinstance(value, list | tuple):
            return {"labels": [self._label(label) for label in value]}
        if isinstance(value, dict):
            return {"relevance": value}
        if self.several:
            return {"labels": [part.strip() for part in str(value).split(self.several) if part.strip()]}
        return {"label": self._label(value)}

    def _label(self, value: Any) -> str:
        return self.bare(str(value), "labels")


def vector_of(value: Any) -> list[float] | None:
    """The numbers of an array, also one written as JSON in a cell; None of anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, list | tuple) or not value:
        return None
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in value):
        return None
    return [float(number) for number in value]


def feature(name: str, value: Any) -> dict[str, float]:
    """A cell as a feature: a number by the column's name, anything else as `column=value`, nothing if it is empty."""
    if value is None or value == "":
        return {}
    if isinstance(value, bool):
        return {name: float(value)}
    if isinstance(value, list | tuple):
        return {f"{name}={one}": 1.0 for one in value if one is not None}
    try:
        number = float(value)
    except (TypeError, ValueError):
        return {f"{name}={value}": 1.0}
    if math.isnan(number):
        return {}
    if math.isinf(number):
        raise ValueError(f"the column {name!r} holds {value}, which is not a finite number")
    return {name: number}


def _plain(value: Any) -> Any:
    """A cell as JSON has it: what Parquet gives as a time or a decimal number is written as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, str | bool | int | float | list | dict):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
