"""What comes with lists: grades by name, and numbers as base64 of little-endian float32, a third of the bytes of JSON."""

import binascii
from typing import Any

import numpy as np

from .elementary import Floats


def read_singles(text: str, count: int) -> Floats | None:
    """Exactly so many numbers, not all of them finite perhaps; None where the text is not their base64 with its padding."""
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True) if text else b""
    except ValueError:
        return None
    if len(data) != 4 * count or binascii.b2a_base64(data, newline=False).decode() != text:
        return None
    with np.errstate(invalid="ignore"):
        return np.frombuffer(data, dtype="<f4").astype(np.float64)


def listed_grades(grades: Any, places: dict[str, int], largest: float) -> Floats | None:
    """y of plain grades by name, 0 where none is given; None where one is not plain, or not in [0, largest]."""
    if type(grades) is not dict:
        return None
    y = np.zeros(len(places))
    for name, grade in grades.items():
        place = places.get(name) if type(name) is str else None
        if place is None or type(grade) not in (int, float) or not 0 <= grade <= largest:
            return None
        y[place] = grade
    return y
