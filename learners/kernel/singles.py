"""Numbers as the base64 of little-endian float32: a third of the bytes of their JSON, and read in one pass."""

import binascii

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
