"""Prediction ids: time, chance, and a proof that this learner gave them.

    id = hex( milliseconds, 6 bytes | random, 8 bytes | keyed hash of both, 6 bytes )

The key is the learner's log name, which never leaves the service: an id that was never given is told from one that has
expired without keeping either. Ids sort by time.
"""

from __future__ import annotations

import os
from hashlib import blake2b, blake2s
from hmac import compare_digest

ID_BYTES = 20


def new_prediction_id(log: str, now: float) -> str:
    """A fresh id."""
    body = int(now * 1000).to_bytes(6, "big") + os.urandom(8)
    return (body + _proof(log, body)).hex()


def predicted_at(log: str, id: str) -> float | None:
    """When this learner gave the id; None if it never did."""
    try:
        data = bytes.fromhex(id) if len(id) == 2 * ID_BYTES else b""
    except ValueError:
        return None
    if data.hex() != id:  # capitals and spaces would be read as well
        return None
    if not compare_digest(_proof(log, data[:14]), data[14:]):
        return None
    return int.from_bytes(data[:6], "big") / 1000


def chance_of(log: str, id: str) -> float:
    """A number in [0, 1) that belongs to a prediction: it settles what is drawn, and nobody outside can foresee it."""
    digest = blake2b(id.encode(), digest_size=7, key=log.encode()[:64]).digest()
    return int.from_bytes(digest, "big") / 2.0**56


def _proof(log: str, body: bytes) -> bytes:
    return blake2s(body, digest_size=6, key=log.encode()[:32]).digest()
