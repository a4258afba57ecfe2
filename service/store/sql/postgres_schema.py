"""The tables in PostgreSQL; each later step will bring an older store up to date in one transaction.

Text is compared by its bytes (COLLATE "C"), as in SQLite and Redis. Columns mean what they mean in sqlite_schema.py. What
came from outside has no statistics: they are samples of it, in a table that nobody writes anew after erasing.
"""

from __future__ import annotations

STEPS = (
    """
    CREATE TABLE store (id TEXT NOT NULL, layout INTEGER NOT NULL, arithmetic INTEGER NOT NULL);
    CREATE TABLE documents (
        kind TEXT COLLATE "C", name TEXT COLLATE "C", revision BIGINT NOT NULL, value BYTEA NOT NULL,
        PRIMARY KEY (kind, name)
    );
    CREATE TABLE logs (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT COLLATE "C" NOT NULL UNIQUE,
        version BIGINT NOT NULL DEFAULT 0, floor BIGINT NOT NULL DEFAULT 1, retracted BIGINT NOT NULL DEFAULT 0,
        closed INTEGER NOT NULL DEFAULT 0, chain TEXT NOT NULL DEFAULT '', root TEXT NOT NULL DEFAULT '',
        at DOUBLE PRECISION NOT NULL DEFAULT 0, forgotten BIGINT NOT NULL DEFAULT 0, salt TEXT NOT NULL DEFAULT '',
        revisions TEXT NOT NULL DEFAULT ''
    ) WITH (fillfactor = 50);
    CREATE TABLE entries (
        key BIGINT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, retracted BIGINT NOT NULL DEFAULT 0, body BYTEA NOT NULL,
        taken BYTEA, retracts BIGINT NOT NULL DEFAULT 0, chain TEXT NOT NULL, erased TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE ids (
        log BIGINT, id TEXT COLLATE "C", version BIGINT NOT NULL, digest TEXT NOT NULL, guard TEXT NOT NULL,
        PRIMARY KEY (log, id)
    );
    CREATE INDEX ids_by_version ON ids (log, version);
    CREATE TABLE outcomes (key BIGINT PRIMARY KEY, value BYTEA NOT NULL);
    CREATE TABLE snapshots (
        key BIGINT PRIMARY KEY, digest TEXT NOT NULL, chain TEXT NOT NULL, upload BIGINT NOT NULL, parts BIGINT NOT NULL,
        without BIGINT NOT NULL
    );
    CREATE TABLE parts (
        key BIGINT PRIMARY KEY, data BYTEA NOT NULL, writer INTEGER NOT NULL DEFAULT pg_backend_pid()
    );
    CREATE TABLE records (
        log TEXT COLLATE "C", key TEXT COLLATE "C", expires DOUBLE PRECISION NOT NULL, value BYTEA NOT NULL,
        digest TEXT NOT NULL, taken BIGINT NOT NULL DEFAULT 0, due DOUBLE PRECISION, rank DOUBLE PRECISION,
        leased DOUBLE PRECISION NOT NULL DEFAULT 0, mark DOUBLE PRECISION, PRIMARY KEY (log, key)
    );
    CREATE INDEX records_by_expiry ON records (expires);
    CREATE INDEX records_by_due ON records (due) WHERE due IS NOT NULL;
    CREATE INDEX records_by_rank ON records (log, rank) WHERE rank IS NOT NULL;
    CREATE INDEX records_by_mark ON records (log, mark) WHERE mark IS NOT NULL;
    CREATE TABLE counters (name TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL);
    INSERT INTO counters VALUES ('revision', 0), ('check', 0), ('upload', 0), ('erased', 0);
    CREATE TABLE trial (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data BYTEA NOT NULL);
    ALTER TABLE parts ALTER data SET STORAGE EXTERNAL, ALTER data SET STATISTICS 0;
    ALTER TABLE documents ALTER value SET STATISTICS 0;
    ALTER TABLE entries ALTER body SET STATISTICS 0, ALTER taken SET STATISTICS 0;
    ALTER TABLE ids ALTER id SET STATISTICS 0;
    ALTER TABLE outcomes ALTER value SET STATISTICS 0;
    ALTER TABLE records ALTER key SET STATISTICS 0, ALTER value SET STATISTICS 0;
    ALTER TABLE trial ALTER data SET STORAGE EXTERNAL
    """,
)
LAYOUT = len(STEPS)
BODIES = (
    "entries",
    "outcomes",
    "ids",
    "records",
    "snapshots",
    "parts",
    "documents",
)  # what an event brought is in these
