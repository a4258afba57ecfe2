"""Whose data a prediction or an event is: kept as a keyed hash, by which all of it is found to be erased.

hash(subject) = BLAKE2b-128(subject) under a key that is kept in the store
an entry of a log has the id  s:HASH:CHANCE  beside its own, a remembered prediction the hash in its record
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

from feedrank.service.contract.json_types import Body
from feedrank.service.contract.messages import text_of
from feedrank.service.store import Store

from .at_once import waits
from .stored_key import StoredKey

LONGEST = 200


class SubjectHash(str):
    """What was hashed before: an experiment has its arms learn under it."""

    __slots__ = ()


class Subjects:
    """The subjects of one store."""

    def __init__(self, store: Store) -> None:
        self._key = StoredKey(store, "subjects")

    async def of(self, request: Body) -> str:
        """The hash of a request's `subject`; "" if it has none."""
        subject = text_of(request, "subject", LONGEST)
        if subject is None or isinstance(subject, SubjectHash):
            return subject or ""
        if (key := self._key.value) is None:
            await waits("subject")
            key = await self._key.make()
        return blake2b(subject.encode(), key=key, digest_size=16).hexdigest()


def prefix(subject: str) -> str:
    """What the ids of the entries of a hashed subject begin with."""
    return f"s:{subject}:"


def ids_of(*subjects: str) -> tuple[str, ...]:
    """Ids of one entry, by which each of these hashed subjects finds it."""
    return tuple(f"{prefix(subject)}{secrets.token_hex(8)}" for subject in dict.fromkeys(subjects) if subject)
