"""Columns of numbers in the JSON of a snapshot: little-endian, as base64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np


def pack(values: np.ndarray[Any, Any]) -> str:
    """The bytes of an array, as text."""
    return b64encode(values.tobytes()).decode()


def unpack(text: str, kind: str) -> list[Any]:
    """The numbers again."""
    values: list[Any] = np.frombuffer(b64decode(text), dtype=kind).tolist()
    return values
