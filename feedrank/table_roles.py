"""The roles of a table's columns, by a look at some of its rows: what `input` of a learner says.

A column is taken for the first of these that all its cells are:

    vector      arrays of numbers, all of one length
    number      numbers
    time        times, as the learner reads them
    id          its name says so, or every cell is another one without a blank in it; not used
    text        several words a cell
    category    anything else

The truth is `--truth`, or the column whose name says so. What a cell can be read as is asked of the function that reads it
when it is learned, so that nothing that was recognized here is refused there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from feedrank.clients.history.tables import FormatError, find, no_column, vector_of
from feedrank.learners import table_rows
from feedrank.learners.errors import InstanceError

# Names of a truth, the surest first.
TRUTHS = (
    "label", "labels", "truth", "class", "target", "category", "queue", "folder", "topic", "intent", "tag", "tags", "type",
    "outcome", "sentiment", "department", "team", "y",
)  # fmt: skip
IDS = re.compile(r"(.*[ _-])?(id|uuid|guid|key|nr|no|number|index|#)|unnamed: 0|")
WORDS = 2.5  # mean number of words from which a column is text
DISTINCT = 0.9  # share of different cells from which a column says nothing of the others
ENOUGH = 20  # rows from which that is asked
NUMBER_CLASSES = 30  # different numbers from which a truth is a quantity, not a label


@dataclass(slots=True)
class Table:
    """What was recognized: the learner's `input`, its task, and sentences for the person who looks on."""

    input: dict[str, str]
    task: str
    truth: str
    notes: list[str] = field(default_factory=list)


def recognize(rows: Sequence[Mapping[str, object]], truth: str | None = None, several: str = "") -> Table:
    """The roles of the columns of some rows; FormatError if no column can be the truth."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    chosen = find(truth, names) if truth else _truth(names)
    if chosen is None:
        raise FormatError(
            no_column([truth], names, "--truth")
            if truth
            else f"which column is the truth? Name it with --truth; there are {', '.join(names) or 'none'}"
        )
    table = Table({}, "multiclass", chosen)
    for name in names:
        cells = [row[name] for row in rows if not _blank(row.get(name))]
        table.input[name] = "truth" if name == chosen else _role(name, cells, table)
    truths = [row[chosen] for row in rows if not _blank(row.get(chosen))]
    if several or any(isinstance(cell, list | tuple) for cell in truths):
        table.task = "multilabel"
    elif len(set(map(str, truths))) > NUMBER_CLASSES and _reads("number", truths):
        raise FormatError(f"{chosen!r} holds numbers, not labels: name the column of labels with --truth")
    vectors = [name for name, role in table.input.items() if role == "vector"]
    for name in vectors[1:]:
        table.input[name] = "ignore"
        table.notes.append(f"{name!r} is a second vector, and not used")
    if all(role in table_rows.UNUSED for role in table.input.values()):
        raise FormatError(f"beside {chosen!r} there is no column to learn from")
    return table


def _truth(names: Sequence[str]) -> str | None:
    return next((column for wanted in TRUTHS if (column := find(wanted, names)) is not None), None)


def _blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _role(name: str, cells: Sequence[object], table: Table) -> str:
    if not cells:
        table.notes.append(f"{name!r} is empty in the first rows, and not used")
        return "ignore"
    distinct = len(set(map(str, cells))) / len(cells)
    alone = len(cells) >= ENOUGH and distinct >= DISTINCT
    if any(isinstance(cell, list | tuple) or vector_of(cell) is not None for cell in cells):
        return _of_arrays(name, cells, table)
    if _is_id(name) and (alone or distinct == 1.0):
        return "id" if "id" not in table.input.values() else "ignore"
    if _reads("number", cells):
        return "number"
    if _reads("time", cells):
        return "time"
    words = sum(len(str(cell).split()) for cell in cells) / len(cells)
    if words >= WORDS or (alone and words > 1.5):
        return "text"
    if alone and words == 1.0 and "id" not in table.input.values():
        table.notes.append(f"{name!r} is different in every row: taken for an id, and not used")
        return "id"
    return "category"


def _of_arrays(name: str, cells: Sequence[object], table: Table) -> str:
    vectors = [vector_of(cell) for cell in cells]
    if all(vector is not None for vector in vectors) and len({len(vector or ()) for vector in vectors}) == 1:
        return "vector"
    if any(vector is not None for vector in vectors):
        table.notes.append(f"{name!r} holds arrays of several lengths, and is not used")
        return "ignore"
    return "category" if _reads("category", cells) else "ignore"


def _is_id(name: str) -> bool:
    return IDS.fullmatch(name.strip().casefold()) is not None


def _reads(role: str, cells: Sequence[object]) -> bool:
    """Whether the learner could read every cell so."""
    try:
        for cell in cells:
            table_rows.instance_of({"column": role}, {"column": cell})
    except InstanceError:
        return False
    return True
