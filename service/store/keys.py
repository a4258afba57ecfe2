"""Every key and channel in Redis.

The part in braces decides the slot in Redis Cluster: all keys of a log share one, so that one script may use them all.

The names of what is stored begin with the layout's version: a release that knows only an older one cannot write there. What
it knew by name holds a string instead (TOMB), which refuses its commands.

    feedrank:format                 the layout's version, in the database's own slot
    feedrank:store                  "ID LAYOUT": which store this is; every script of a single server compares it
    feedrank:upgrade                who brings an older layout up to date; with `feedrank:upgraded`, when it is done
    feedrank:check                  what a check writes
    feedrank4:due                    sorted set: logs with records that fall due, by a time no later than the earliest
    feedrank4:changes                channel: "document KIND/NAME 0"
    feedrank4:{LOG}:changes          channel: "log LOG VERSION", "snapshot LOG VERSION"

    feedrank4:{LOG}:meta             hash   version, chain; floor, root (the chain before it); at, retracted, forgotten,
    closed; revisions; salt (of erased ids), copying (who erases)
    feedrank4:{LOG}:log              stream entry VERSION-0: b body, a time, c chain, t record taken, r version retracted,
    e checksums of what was erased
    feedrank4:{LOG}:ids              hash   id -> "version check digest"
    feedrank4:{LOG}:order            stream entry VERSION-0: the ids of that version, for forgetting them
    feedrank4:{LOG}:copy, copied     streams: `log` and `order` while they are written anew to erase something
    feedrank4:{LOG}:retracted        hash   version -> version of the entry that retracted it
    feedrank4:{LOG}:outcomes         hash   version -> outcome, sealed
    feedrank4:{LOG}:snapshots        hash   version -> "digest chain without upload parts"
    feedrank4:{LOG}:part:UPLOAD:N    string part N of the data of a snapshot, sealed
    feedrank4:{LOG}:records          hash   key -> record (see redis_records.py)
    feedrank4:{LOG}:expiry           sorted set of the records' keys by expiry
    feedrank4:{LOG}:due              sorted set of the records' keys by due time
    feedrank4:{LOG}:ranks            sorted set of the keys of records that wait for an answer, by rank
    feedrank4:{LOG}:leases           sorted set of those that somebody is answering, by when the lease ends
    feedrank4:{LOG}:marks            sorted set of the keys of records that are counted, by mark

    feedrank4:{documents:KIND}:values     hash   name -> "revision value", the value sealed
    feedrank4:{documents:KIND}:names      sorted set, all scores 0, for paging by name
    feedrank4:{documents:KIND}:revision   counter
"""

from __future__ import annotations

LAYOUT = 4  # 1 had no chains and checksums, 2 snapshots that did not say what they leave out, 3 no identity
FORMAT = "feedrank:format"
STORE = "feedrank:store"
UPGRADE = "feedrank:upgrade"
UPGRADED = "feedrank:upgraded"
CHECK = "feedrank:check"
TOMB = "moved: this store belongs to a newer release of feedrank"

PREFIX = f"feedrank{LAYOUT}"
DUE = f"{PREFIX}:due"
CHANGES = f"{PREFIX}:changes"

WAITING = ("ranks", "leases", "marks")
PARTS = (
    *("meta", "log", "ids", "order", "retracted", "outcomes", "snapshots", "records", "expiry", "due"),
    *WAITING,
)
COPIES = ("copy", "copied")
DOCUMENTS = ("values", "names", "revision")


def log(name: str, part: str) -> str:
    """One of the keys of a log."""
    return f"{PREFIX}:{{{name}}}:{part}"


def changes(name: str) -> str:
    """The channel of a log."""
    return log(name, "changes")


def name_of(key: str) -> str:
    """The part in braces."""
    return key.partition("{")[2].rpartition("}")[0]


def part(name: str, upload: str, number: int) -> str:
    return log(name, f"part:{upload}:{number}")


def documents(kind: str, part: str) -> str:
    return f"{PREFIX}:{{documents:{kind}}}:{part}"


def older(name: str, part: str) -> str:
    """A key of a log, or of `documents:KIND`, as layouts before 4 had it."""
    return f"feedrank:{{{name}}}:{part}"
