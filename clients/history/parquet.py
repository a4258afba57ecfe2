"""pyarrow, which reads and writes Parquet, where it is installed."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from .tables import FormatError


class Arrow(NamedTuple):
    """`pyarrow` and `pyarrow.parquet`, an extra."""

    core: Any
    parquet: Any


def arrow() -> Arrow:
    """The two modules; FormatError, with what to install, if they are missing."""
    try:
        return Arrow(importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet"))
    except ModuleNotFoundError:
        raise FormatError("Parquet needs pyarrow; run: pip install 'feedrank[parquet]'") from None
