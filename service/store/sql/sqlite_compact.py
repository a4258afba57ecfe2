"""Writing a SQLite file anew, so that nothing of what was erased is left in it.

What is deleted stays in free pages, in gaps of pages that were split, and in the write-ahead log. Overwriting each of them
with zeros (`PRAGMA secure_delete`) does not reach the gaps; VACUUM copies what is there and nothing else.
"""

from __future__ import annotations

import time

from feedrank.service.contract.faults import StoreUnavailable

from .row_erasing import compacted, is_due
from .sqlite_connection import SqliteConnection

# To empty the write-ahead log, which waits for those who read it, and seconds between two.
ATTEMPTS, PAUSE = 100, 0.1


def compact(db: SqliteConnection) -> None:
    """Write the file anew, and empty the write-ahead log."""
    due = is_due(db)
    if not due:
        return
    db.execute("VACUUM")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            compacted(db, due)
            return
    raise StoreUnavailable("what was erased is still in the write-ahead log, which another process reads")
