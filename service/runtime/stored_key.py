"""A key that is made once, kept in the store, and so is the same for every replica."""

from __future__ import annotations

import secrets

from feedrank.service.store import Stale, Store

KIND, LENGTH = "secret", 32


class StoredKey:
    """The key of this name."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self.value: bytes | None = None  # where it was read before

    async def read(self) -> bytes | None:
        """The key, if there is one."""
        if self.value is None:
            document = await self._store.get(KIND, self._name)
            self.value = None if document is None else document.value
        return self.value

    async def make(self) -> bytes:
        """The key, made now if there is none; that of another replica if it was first."""
        while (key := await self.read()) is None:
            try:
                await self._store.put(KIND, self._name, secrets.token_bytes(LENGTH), 0)
            except Stale:
                continue
        return key
