"""Records as they are: `{"row": {column: value}}`, read by the learner's `input` into one instance.

    role        value                                       what the learner sees
    text        text                                        its words, by the tokenizer: `column:word`
    category    text, a number, true, false, or a list      `column=value`, 1
    number      a number, or text that is one               `column`, the number
    time        ISO 8601, or seconds since 1970             `column:month=11`, `column:weekday=wed`, `column:hour=13`
    vector      numbers, their JSON, or base64 of float32   the vector of the instance
    id, truth, ignore                                       nothing

Import, serving and learning all read through `instance_of`, so that none can see another instance than the others. RoleOf
are compared without case and outer blanks. A cell that is missing, null or blank is a missing value: it gives nothing. Of a
time, only what the value says is used: a date has no hour.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from . import vectors
from .checks import Check
from .errors import InstanceError, SpecError, pointer

UNUSED = ("id", "truth", "ignore")
LONGEST_CATEGORY = 1000
ROLES = ("text", "category", "number", "time", "vector", *UNUSED)
LONGEST = 1_000  # characters of a column's name
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECONDS = 1e11  # a number of seconds from here on, the year 5138, is one of milliseconds

RoleOf = dict[str, tuple[str, str]]  # folded name -> its spelling in the spec, and its role


def fold(column: str) -> str:
    """What two spellings of one column have in common."""
    return column.strip().casefold()


def _roles(value: object, field: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not value:
        raise SpecError("must be an object of column: role", pointer(field))
    seen: dict[str, str] = {}
    for column, role in value.items():
        place = pointer(field, column)
        if not isinstance(column, str) or not column.strip() or len(column) > LONGEST:
            raise SpecError(f"the name of a column has 1 to {LONGEST:,} characters, not all blank", place)
        if not isinstance(role, str) or role not in ROLES:
            raise SpecError(f"must be one of {', '.join(ROLES)}", place)
        if fold(column) in seen:
            raise SpecError(f"is the same column as {seen[fold(column)]!r}", place)
        seen[fold(column)] = column
    for role in ("vector", "truth"):
        several = [column for column in value if value[column] == role]
        if len(several) > 1:
            raise SpecError(f"only one column can be the {role}", pointer(field, several[1]))
    if all(role in UNUSED for role in value.values()):
        raise SpecError(
            "at least one column must be a text, category, number, time or vector", pointer(field)
        )
    return dict(value)


roles: Check = Check(
    _roles,
    {
        "type": "object",
        "additionalProperties": {"type": "string", "enum": list(ROLES)},
        "minProperties": 1,
    },
)


@lru_cache(maxsize=1024)
def _columns(entries: tuple[tuple[str, str], ...]) -> RoleOf:
    return {fold(column): (column, role) for column, role in entries}


def instance_of(roles: Mapping[str, str], row: object, unknown_columns: object = None) -> dict[str, Any]:
    """The instance `{"features", "text"?, "vector"?}` of a row; InstanceError, with a pointer, where a cell is wrong."""
    if not isinstance(row, Mapping):
        raise InstanceError("must be an object of column: value", "/row")
    if unknown_columns not in (None, "ignore"):
        raise InstanceError('must be "ignore"', "/unknown_columns")
    columns = _columns(tuple(roles.items()))
    features: dict[str, float] = {}
    texts: dict[str, str] = {}
    instance: dict[str, Any] = {"features": features}
    seen: set[str] = set()
    for name, value in row.items():
        if not isinstance(name, str):
            raise InstanceError("the name of a column must be text", "/row")
        folded = fold(name)
        if folded not in columns:
            if unknown_columns is None:
                raise InstanceError(_unknown(name, columns), pointer("row", name))
            continue
        if folded in seen:
            raise InstanceError("the column is duplicated, in another spelling", pointer("row", name))
        seen.add(folded)
        column, role = columns[folded]
        if role in UNUSED or value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            match role:
                case "text":
                    texts[column] = _text(value)
                case "category":
                    for category in value if isinstance(value, list | tuple) else (value,):
                        features.update(_category(column, category))
                case "number":
                    features[column] = _number(value)
                case "time":
                    features.update({f"{column}:{part}": 1.0 for part in _parts(value)})
                case _:
                    instance["vector"] = vectors.read(_cell(value), pointer("row", name))
        except ValueError as error:
            raise InstanceError(str(error), pointer("row", name)) from None
    if texts:
        instance["text"] = texts
    return instance


def _unknown(name: str, columns: RoleOf) -> str:
    near = get_close_matches(fold(name), columns, 1, 0.5)
    hint = f"did you mean {columns[near[0]][0]!r}?" if near else f"the columns are {_listed(columns)}"
    return f'this learner has no column {name!r}: {hint} ("unknown_columns": "ignore" passes it over)'


def _listed(columns: RoleOf, most: int = 20) -> str:
    names = [repr(column) for column, _ in columns.values()]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be text")
    return _plain(value)


def _category(column: str, value: object) -> dict[str, float]:
    """A whole number is the same category however it is written: 3, 3.0."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if isinstance(value, bool):
        shown = "true" if value else "false"
    elif isinstance(value, int | float):
        shown = _plain(value)
    elif isinstance(value, str):
        shown = value.strip()
        if len(shown) > LONGEST_CATEGORY:
            raise ValueError(
                f"a category has at most {LONGEST_CATEGORY} characters: give the column the role text"
            )
    else:
        raise ValueError("a category must be text, a number, true or false, or a list of these")
    return {f"{column}={shown}": 1.0}


def _plain(value: int | float) -> str:
    return (
        str(int(value))
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        else str(value)
    )


def _number(value: object) -> float:
    if isinstance(value, str | bool | int | float):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    shown = f": {value[:40]!r} is none" if isinstance(value, str) else ""
    raise ValueError(f"must be a finite number{shown}")


def packed(roles: Mapping[str, str], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with its vector as base64, as a log keeps it."""
    columns = {fold(column) for column, role in roles.items() if role == "vector"}
    own = next((name for name in row if isinstance(name, str) and fold(name) in columns), None)
    if own is None:
        return row
    try:
        return {**row, own: vectors.packed(_cell(row[own]))}
    except ValueError:  # which reading it will refuse
        return row


def _cell(value: object) -> object:
    """A cell of a spreadsheet holds the numbers as text."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError("must be numbers, their JSON, or base64 of little-endian float32") from None


_SLASHES = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?=\D|$)")
_DOTS = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?=\D|$)")
_TWO_WAYS = re.compile(r"\d{1,2}[/-]\d{1,2}[/-]\d{2,4}")


def _parts(value: object) -> list[str]:
    """What a time says: month and weekday where it has a date, the hour where it has one."""
    day, hour = _moment(value)
    parts = [] if day is None else [f"month={day.month}", f"weekday={WEEKDAYS[day.weekday()]}"]
    return parts if hour is None else [*parts, f"hour={hour}"]


def _moment(value: object) -> tuple[date | None, int | None]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if abs(value) >= MILLISECONDS else value
        try:
            moment = EPOCH + timedelta(seconds=seconds)
        except (OverflowError, ValueError):
            raise ValueError("is too far from 1970 to be seconds or milliseconds") from None
        return moment.date(), moment.hour
    if not isinstance(value, str):
        raise ValueError("must be a time: ISO 8601 as 2026-11-18T13:45, or seconds since 1970")
    said = value.strip()
    if _TWO_WAYS.match(said):
        raise ValueError(f"{said[:40]!r} can be read in two ways: write it as year-month-day")
    said = _SLASHES.sub(_iso, said, 1) if _SLASHES.match(said) else said
    said = _DOTS.sub(lambda match: _iso(match, 3, 2, 1), said, 1) if _DOTS.match(said) else said
    for read in (_date, _date_and_time, _time):
        try:
            return read(said)
        except ValueError:
            continue
    raise ValueError(f"{said[:40]!r} is no time: write it as 2026-11-18 or 2026-11-18T13:45")


def _iso(match: re.Match[str], year: int = 1, month: int = 2, day: int = 3) -> str:
    return f"{match[year]}-{int(match[month]):02}-{int(match[day]):02}"


def _date(said: str) -> tuple[date, None]:
    return date.fromisoformat(said), None


def _date_and_time(said: str) -> tuple[date, int]:
    moment = datetime.fromisoformat(said)
    return moment.date(), moment.hour


def _time(said: str) -> tuple[None, int]:
    return None, time.fromisoformat(said).hour
