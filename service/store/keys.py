"""Every key and channel in Redis.

The part in braces decides the slot in Redis Cluster: all keys of a log share one, so that one script may use them all.

    feedrank:format                 the layout's version, in the database's own slot
    feedrank:check                  what a check writes
    feedrank:due                    sorted set: logs with records that fall due, by a time no later than the earliest
    feedrank:changes                channel: "document KIND/NAME 0"
    feedrank:{LOG}:changes          channel: "log LOG VERSION", "snapshot LOG VERSION"

    feedrank:{LOG}:meta             hash   version, chain; floor, root (the chain before it); at, retracted, forgotten,
    closed
    feedrank:{LOG}:log              stream entry VERSION-0: b body, a time, c chain, t record taken, r version retracted
    feedrank:{LOG}:ids              hash   id -> "version check digest"
    feedrank:{LOG}:order            stream entry VERSION-0: the ids of that version, for forgetting them
    feedrank:{LOG}:retracted        hash   version -> version of the entry that retracted it
    feedrank:{LOG}:outcomes         hash   version -> outcome, sealed
    feedrank:{LOG}:snapshots        hash   version -> "digest chain without upload parts"
    feedrank:{LOG}:part:UPLOAD:N    string part N of the data of a snapshot, sealed
    feedrank:{LOG}:records          hash   key -> record (see redis_records.py)
    feedrank:{LOG}:expiry           sorted set of the records' keys by expiry
    feedrank:{LOG}:due              sorted set of the records' keys by due time

    feedrank:{documents:KIND}:values     hash   name -> "revision value", the value sealed
    feedrank:{documents:KIND}:names      sorted set, all scores 0, for paging by name
    feedrank:{documents:KIND}:revision   counter
"""

from __future__ import annotations

LAYOUT = 3  # 1 had no chains and checksums, in 2 a snapshot did not say what it leaves out
FORMAT = "feedrank:format"
UPGRADE = "feedrank:upgrade"  # who brings an older layout up to date
CHECK = "feedrank:check"
DUE = "feedrank:due"
CHANGES = "feedrank:changes"

PARTS = ("meta", "log", "ids", "order", "retracted", "outcomes", "snapshots", "records", "expiry", "due")
METAS = "feedrank:{*}:meta"
KINDS = "feedrank:{documents:*}:values"


def log(name: str, part: str) -> str:
    """One of the keys of a log."""
    return f"feedrank:{{{name}}}:{part}"


def changes(name: str) -> str:
    """The channel of a log."""
    return log(name, "changes")


def name_of(key: str) -> str:
    """The part in braces."""
    return key.partition("{")[2].rpartition("}")[0]


def part(name: str, upload: str, number: int) -> str:
    return log(name, f"part:{upload}:{number}")


def documents(kind: str, part: str) -> str:
    return f"feedrank:{{documents:{kind}}}:{part}"
