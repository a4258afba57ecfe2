"""Checksums: any changed byte in what was stored is noticed when it is read.

    checksum(v)  BLAKE2b-128 of a value, in hex
    seal(v)      checksum(v) v: how records, outcomes, documents and parts of snapshots are kept
    chain_n      SHA-1("chain_(n-1) n at checksum(body) checksum(taken) retracts"), of entry n and of all before it
    chain_0      SHA-1("log version digest"): of the log's name and, for a restored log, of the snapshot that it starts with

Two logs with equal chains at a version have the same entries up to it. Redis computes the chain in its append script, where
SHA-1 is what there is; it guards against accidents and mix-ups, not against someone who writes to the store on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, sha1

from .base import Damaged, Entry

LENGTH = 32  # of a checksum in hex


def checksum(value: bytes | memoryview) -> str:
    """Of one value."""
    return blake2b(value, digest_size=LENGTH // 2).hexdigest()


def seal(value: bytes | memoryview) -> bytes:
    """A value with its checksum before it."""
    return b"".join((checksum(value).encode(), value))


def unseal(sealed: bytes, what: str, version: int = 0) -> bytes:
    """The value, or Damaged if it is not what was sealed; `what` says what it is."""
    value = sealed[LENGTH:]
    if checksum(value).encode() != sealed[:LENGTH]:
        raise Damaged(version, f"{what} has changed since it was written")
    return value


def genesis(log: str, version: int = 0, digest: str = "") -> str:
    """The chain before the first entry of a log that starts after `version`."""
    return sha1(f"{log} {version} {digest}".encode(), usedforsecurity=False).hexdigest()


def link(previous: str, version: int, at: float, body: str, taken: str | None, retracts: int) -> str:
    """The chain at an entry, from the one before it; `body` and `taken` are checksums."""
    text = f"{previous} {version} {at!r} {body} {taken or '-'} {retracts}"
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


def id_check(id: str, version: int, digest: str) -> str:
    """What an id's row carries against changes in it."""
    return sha1(f"{id} {version} {digest}".encode(), usedforsecurity=False).hexdigest()[:8]


def check_entries(rows: Sequence[Entry], after: int, previous: str | None) -> list[Entry]:
    """The entries, each with the chain before it, if they follow one another and nothing in them has changed."""
    entries: list[Entry] = []
    for row in rows:
        if row.version != after + 1:
            raise Damaged(after + 1, f"entry {after + 1} is missing from the log")
        taken = None if row.taken is None else checksum(row.taken)
        if previous is None or row.chain != link(
            previous, row.version, row.at, checksum(row.body), taken, row.retracts
        ):
            raise Damaged(row.version, f"entry {row.version} has changed since it was written")
        entries.append(
            Entry(row.version, row.at, row.body, row.taken, row.retracted, row.retracts, row.chain, previous)
        )
        after, previous = row.version, row.chain
    return entries
