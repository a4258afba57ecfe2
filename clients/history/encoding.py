"""In which encoding a file is written: by its byte order mark, by where its zeros are, or by what can be read.

begins with FE FF, FF FE or EF BB BF     UTF-16 or UTF-8 with a mark, which is no part of the text
every second byte of the start is 0      UTF-16 without a mark
all of it is valid UTF-8                 UTF-8
otherwise                                Windows' cp1252, as Excel saves "CSV" in western Europe and America
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
START = 4096
PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec of Python, the bytes of its mark, and what to say of it; nothing of plain UTF-8."""

    codec: str
    mark: int = 0
    note: str = ""


def encoding_of(file: BinaryIO) -> Encoding:
    """The encoding of a file that is read from its start; it is read to its end where there is no mark."""
    start = file.read(START)
    for mark, codec in MARKS:
        if start.startswith(mark):
            return Encoding(codec, len(mark), f"it begins with the byte order mark of {codec[:6].upper()}")
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) * 4 > len(start) > 3:
        codec = "utf-16-le" if odd > even else "utf-16-be"
        return Encoding(codec, note=f"it is in {codec.upper()}, without a byte order mark")
    if _is_utf8(start, file):
        return Encoding("utf-8")
    return Encoding("cp1252", note="it is not UTF-8: read as Windows' cp1252")


def lines(file: BinaryIO, encoding: Encoding) -> Iterator[str]:
    """The lines, without their ends. Only a line feed ends one: what else Unicode calls an end may stand in a cell."""
    file.read(encoding.mark)
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace")
    rest = ""
    while piece := file.read(PIECE):
        *whole, rest = (rest + decoder.decode(piece)).split("\n")
        yield from whole
    if rest := rest + decoder.decode(b"", final=True):
        yield rest


def _is_utf8(start: bytes, file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    piece = start
    try:
        while piece:
            decoder.decode(piece)
            piece = file.read(PIECE)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
