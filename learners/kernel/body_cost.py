"""What reading a body of JSON takes: known before the first object is made, so that no small body takes much memory.

    cost = 144 objects + 84 members + 96 lists + 80 empty ones + 28 commas + sum over texts (56 + bytes) + 32 numbers

Counted in bytes, from what CPython's objects and the reader's own table take; texts of one character, numbers of two
and the words of JSON are shared objects. Where any byte is beyond ASCII, a character may take four. A body is read if
that is at most 64 KB + 32 times its bytes: every useful body is far below, as every value of it has a name, or digits.
"""

import re

from ..errors import InputError

OBJECT, MEMBER, ARRAY, EMPTY, NEXT, TEXT, NUMBER = 144, 84, 96, 80, 28, 56, 32
BASE, TIMES, SMALL = 64 * 1024, 32, 1024
DEEPEST = 1024  # no reader goes deeper: it refuses, and has made nothing
_PARTS = re.compile(
    rb'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))|(?P<empty>\{[ \n\r\t]*(?=\})|\[[ \n\r\t]*(?=\]))'
    rb"|(?P<mark>[{\[:,])|(?P<close>[}\]])|(?P<scalar>[0-9a-zE+.-]+)",
    re.DOTALL,
)
_MARKS = {b"{": OBJECT, b"[": ARRAY, b":": MEMBER, b",": NEXT}


def body_bytes(data: bytes) -> int:
    """Bytes of memory that the values of `data` take, whether it is JSON or not."""
    width = 1 if data.isascii() else 4
    cost = depth = 0
    for part in _PARTS.finditer(data):
        kind, length = part.lastgroup, part.end() - part.start()
        if part[0][:1] in b"{[":
            depth += 1
            if depth > DEEPEST:
                return cost
        if kind == "mark":
            cost += _MARKS[part[0]]
        elif kind == "empty":
            cost += EMPTY
        elif kind == "close":
            depth -= 1
        elif kind == "text":
            cost += TEXT + width * (length - 2) if length > 3 else 0
        else:
            cost += NUMBER if length > 2 else 0
    return cost


def check_body(data: bytes) -> None:
    """Refuse a body whose values would take more memory than a body of its length may."""
    most = BASE + TIMES * len(data)
    if len(data) > SMALL and most_bytes(data) > most and body_bytes(data) > most:
        refuse_body()


def most_bytes(data: bytes) -> int:
    """At least `body_bytes`, in a fraction of its time: every value but the first stands behind a mark."""
    braces, brackets, colons, commas, quotes = map(data.count, (b"{", b"[", b":", b",", b'"'))
    values = braces + brackets + colons + commas + 1
    above = braces * OBJECT + brackets * ARRAY + colons * MEMBER + commas * NEXT
    return above + quotes // 2 * TEXT + values * NUMBER + 4 * len(data)


def refuse_body() -> None:
    """Say so."""
    raise InputError(
        f"its values would take more memory than {TIMES} times its bytes: send fewer, or larger, values"
    )
