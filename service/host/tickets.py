"""Prediction ids: time, chance, and a proof that this learner gave them.

    id = hex( milliseconds, 6 bytes | random, 8 bytes | keyed hash of both, 6 bytes )

The key is the learner's log name, which never leaves the service: an id that was never given is told from one that has
expired without keeping either. Ids sort by time.
"""

from __future__ import annotations

import os
from hashlib import blake2s
from hmac import compare_digest

LENGTH = 40


def make(log: str, now: float) -> str:
    """A fresh id."""
    body = int(now * 1000).to_bytes(6, "big") + os.urandom(8)
    return (body + proof(log, body)).hex()


def given_at(log: str, id: str) -> float | None:
    """When this learner gave the id; None if it never did."""
    try:
        data = bytes.fromhex(id) if len(id) == LENGTH else b""
    except ValueError:
        return None
    if data.hex() != id:  # capitals and spaces would be read as well
        return None
    if not compare_digest(proof(log, data[:14]), data[14:]):
        return None
    return int.from_bytes(data[:6], "big") / 1000


def proof(log: str, body: bytes) -> bytes:
    return blake2s(body, digest_size=6, key=log.encode()[:32]).digest()
