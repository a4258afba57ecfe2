"""Every key and channel in Redis.

The part in braces decides the slot in Redis Cluster: all keys of a log share one, so that one script may use them all.

    feedrank:format                 the layout's version, in the database's own slot
    feedrank:{LOG}:meta             hash   version, floor, marked, closed
    feedrank:{LOG}:log              stream entry VERSION-0: b body, a time, t the record taken
    feedrank:{LOG}:ids              hash   id -> "version digest"
    feedrank:{LOG}:marks            hash   version -> version of the entry that withdrew it
    feedrank:{LOG}:outcomes         hash   version -> outcome
    feedrank:{LOG}:snapshots        hash   version -> digest
    feedrank:{LOG}:snapshot:V:D     string data of the snapshot at version V with digest D
    feedrank:{LOG}:records          hash   key -> expiry (8 bytes) and value
    feedrank:{LOG}:expiry           sorted set of the records' keys by expiry
    feedrank:{documents:KIND}:values     hash   name -> "revision value"
    feedrank:{documents:KIND}:names      sorted set, all scores 0, for paging by name
    feedrank:{documents:KIND}:revision   counter
    feedrank:changes                channel: "log LOG VERSION", "snapshot LOG VERSION", "document KIND/NAME 0"
"""

from __future__ import annotations

FORMAT = "feedrank:format"
CHECK = "feedrank:check"
CHANGES = "feedrank:changes"

PARTS = ("meta", "log", "ids", "marks", "outcomes", "snapshots", "records", "expiry")


def log(name: str, part: str) -> str:
    """One of the keys of a log."""
    return f"feedrank:{{{name}}}:{part}"


def snapshot(name: str, version: int, digest: str) -> str:
    return log(name, f"snapshot:{version}:{digest}")


def documents(kind: str, part: str) -> str:
    return f"feedrank:{{documents:{kind}}}:{part}"
