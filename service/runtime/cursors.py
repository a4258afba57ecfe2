"""Cursors of lists in order of name: encrypted, so that they reveal nothing, and readable by every replica.

The key is made once and kept in the store. With k = HMAC(key, list), a name padded to its greatest length is sealed as

    tag = HMAC(k, name) cut to 16 bytes,    cursor = tag | (name XOR SHAKE(k | tag)),

so equal names give equal cursors, a changed byte is noticed, and the length tells nothing.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256, shake_256

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.naming import LONGEST_NAME
from feedrank.service.store import Store

from .stored_key import StoredKey

TAG = 16


class Cursors:
    """The cursors of one store."""

    def __init__(self, store: Store) -> None:
        self._key = StoredKey(store, "cursors")

    async def seal(self, of: str, name: str | None) -> str | None:
        """The cursor of the page of the list `of` that comes after `name`; None if there is none."""
        if name is None:
            return None
        key = _derived(await self._key.make(), of)
        return urlsafe_b64encode(_sealed(key, name.encode())).decode()

    async def open(self, of: str, cursor: str | None) -> str:
        """The name after which a page of the list `of` begins; "" without a cursor."""
        if not cursor:
            return ""
        shared = await self._key.read()
        try:
            data = urlsafe_b64decode(cursor.encode())
        except ValueError:
            data = b""
        if shared is not None and len(data) == TAG + LONGEST_NAME:
            key = _derived(shared, of)
            name = _xor(key, data[:TAG], data[TAG:]).rstrip(b"\0")
            if hmac.compare_digest(_sealed(key, name), data):
                return name.decode()
        raise Unprocessable.at("/cursor", "is not a cursor of this list: take it from `next`")


def _derived(key: bytes, of: str) -> bytes:
    return hmac.digest(key, of.encode(), sha256)


def _sealed(key: bytes, name: bytes) -> bytes:
    tag = hmac.digest(key, name, sha256)[:TAG]
    return tag + _xor(key, tag, name.ljust(LONGEST_NAME, b"\0"))


def _xor(key: bytes, tag: bytes, data: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(data, shake_256(key + tag).digest(len(data)), strict=True))
