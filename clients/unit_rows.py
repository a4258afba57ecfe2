"""Units of an experiment as rows of a table: for a data frame, a CSV file or a Parquet file.

    pandas.DataFrame(rows(client.units("checkout")))
    write(client.units("checkout"), "units.parquet")

Columns are `unit`, `arm`, `first_exposure`, `exposures`, `counted`, `before`, then `segment:NAME` and `value:MEASURE`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from .replies import Unit

__all__ = ["rows", "write"]

Cell = str | float | bool | None
_FIELDS = ("unit", "arm", "first_exposure", "exposures", "counted", "before")


def rows(units: Iterable[Unit]) -> Iterator[dict[str, Cell]]:
    """One flat row for each unit."""
    for unit in units:
        row: dict[str, Cell] = {name: getattr(unit, name) for name in _FIELDS}
        row |= {f"segment:{name}": value for name, value in unit.segments.items()}
        row |= {f"value:{name}": value for name, value in unit.values.items()}
        yield row


def write(units: Iterable[Unit], path: str | Path) -> int:
    """Write all units to a file, Parquet (by pyarrow) if it ends in `.parquet`, else CSV; how many."""
    table = list(rows(units))
    # A unit has only its own segments: the columns are those of all.
    columns = list(dict.fromkeys([*_FIELDS, *(name for row in table for name in row)]))
    if str(path).endswith(".parquet"):
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        from pyarrow import parquet  # noqa: PLC0415

        parquet.write_table(pa.table({name: [row.get(name) for row in table] for name in columns}), path)
        return len(table)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(table)
    return len(table)
