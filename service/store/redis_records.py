"""Records in Redis, as bytes:

    expiry f64 | version of the entry that took it u32, or 0 | length u8 | digest of the request | sealed value

little-endian. Of a record that was taken and has a digest the head is kept, without a value, until it expires.
"""

from __future__ import annotations

import struct
import time

from .interface import Record
from .shared import LENGTH, seal, unseal

HEAD = struct.Struct("<dIB")


def pack(record: bytes | Record, expires: float) -> bytes:
    record = record if isinstance(record, Record) else Record(record)
    digest = record.digest.encode()
    return HEAD.pack(expires, 0, len(digest)) + digest + seal(record.value)


def unpack(row: bytes, name: str) -> bytes:
    """The value; of a record that was taken, what the entry has."""
    _, taken, size = HEAD.unpack_from(row)
    sealed = row[HEAD.size + size :]
    return sealed[LENGTH:] if taken else unseal(sealed, f"the record {name!r}")


def is_live(row: bytes) -> bool:
    """Whether it can be taken."""
    expires, taken, _ = HEAD.unpack_from(row)
    return bool(expires > time.time() and not taken)
