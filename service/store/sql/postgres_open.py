"""Opening PostgreSQL: the URL, what the server must be, and what an operator should know about it."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from feedrank.service.contract.faults import StoreRefused, StoreUnavailable, newer_store, no_store
from feedrank.service.contract.store_url import HIDDEN, shown

from ..arithmetic import FIRST, notices
from .postgres import PostgresStore
from .postgres_connection import PATIENCE, PostgresConnection
from .postgres_listen import PostgresListener
from .postgres_schema import LAYOUT, STEPS
from .postgres_writer import Identity, compact, reason_of, tidy

OLDEST = 13
SCHEMA = "feedrank"


async def open_postgres(url: str, *, read_only: bool = False, arithmetic: int = 0) -> PostgresStore:
    """The store at a `postgresql` URL; StoreRefused in one line if it cannot be used."""
    name = shown(url)
    if name.endswith(HIDDEN):
        raise StoreRefused(f"cannot read {name}: write / ? # and @ in a password as %2F %3F %23 and %40")
    try:
        parameters, schema = settings(url)
        connect = partial(PostgresConnection, parameters, schema)
        identity, said = await asyncio.to_thread(prepare, connect, name, schema, read_only, arithmetic)
        return PostgresStore(
            connect, PostgresListener(parameters, schema), identity, said, read_only=read_only
        )
    except (psycopg.Error, StoreUnavailable) as error:
        reason = error.detail if isinstance(error, StoreUnavailable) else reason_of(error)
        raise StoreRefused(f"cannot use {name}: {reason}") from None


def settings(url: str) -> tuple[dict[str, Any], str]:
    """What a connection is made with, and the schema that has the tables (`?schema=NAME`)."""
    parts = urlsplit(url)
    own, others = SCHEMA, []
    for option in filter(None, parts.query.split("&")):
        if option.startswith("schema="):
            own = unquote(option.removeprefix("schema="))
        else:
            others.append(option)
    parameters: dict[str, Any] = conninfo_to_dict(parts._replace(query="&".join(others)).geturl())
    defaults = {
        "connect_timeout": 5,
        "application_name": "feedrank",
        # A machine that is gone is noticed, also by one that only waits for it.
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": int(1000 * PATIENCE),
    }
    if "," in str(parameters.get("host", "")):
        defaults["target_session_attrs"] = "read-write"
    return defaults | parameters, own


def prepare(
    connect: partial[PostgresConnection], name: str, schema: str, read_only: bool, arithmetic: int
) -> tuple[Identity, tuple[str, ...]]:
    """Make the tables, unless they are there; the store's identity, and notices. StoreRefused, with the reason, if not."""
    db = connect()
    try:
        warnings = examine(db, name, read_only)
        exists = db.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (schema,)).fetchone()
        there = exists and db.execute("SELECT to_regclass('store') IS NOT NULL").fetchone() == (True,)
        if read_only:
            if not there:
                raise no_store(name)
            return identity_of(db, name), warnings
        db.execute("BEGIN")
        # Of several that start at once, one makes the tables and the others find them.
        db.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (f"feedrank {schema}",))
        if not exists:
            quoted = schema.replace('"', '""')
            db.execute(f'CREATE SCHEMA IF NOT EXISTS "{quoted}"')
        if db.execute("SELECT to_regclass('store') IS NULL").fetchone() == (True,):
            for step in STEPS:
                db.raw.execute(step)
            db.execute("INSERT INTO store VALUES (?, ?, ?)", (secrets.token_hex(16), LAYOUT, arithmetic))
        (said, identity) = claim(db, name, arithmetic)
        db.execute("COMMIT")
        tidy(db)
        return identity, warnings + said + finish(db)
    finally:
        db.close()


def finish(db: PostgresConnection) -> tuple[str, ...]:
    """Write anew what a process that was killed had still to; what is in its way does not keep us from starting."""
    try:
        compact(db)
    except (psycopg.Error, StoreUnavailable) as error:
        reason = error.detail if isinstance(error, StoreUnavailable) else reason_of(error)
        return (f"bytes of what was erased are still in PostgreSQL, until the next erasure: {reason}",)
    return ()


def examine(db: PostgresConnection, name: str, read_only: bool) -> tuple[str, ...]:
    """Refuse a server that cannot be used; what else would lose data."""
    version = db.raw.info.server_version // 10_000
    if version < OLDEST:
        raise StoreRefused(f"{name} is PostgreSQL {version}; {OLDEST} or later is needed")
    if db.raw.info.parameter_status("server_encoding") != "UTF8":
        raise StoreRefused(f"{name} is not in UTF-8: make a database with ENCODING 'UTF8'")
    if not read_only and db.execute("SHOW transaction_read_only").fetchone() != ("off",):
        raise StoreRefused(f"{name} can only be read: name the primary, or all servers, separated by commas")
    if db.execute("SHOW fsync").fetchone() != ("on",):
        return (
            "PostgreSQL runs with fsync off: what it has acknowledged is lost if its machine stops; set it on",
        )
    return ()


def identity_of(db: PostgresConnection, name: str) -> Identity:
    (identity,) = db.execute("SELECT id, layout, arithmetic FROM store").fetchall()
    if identity[1] > LAYOUT:
        raise newer_store(name, identity[1])
    return cast(Identity, identity)


def claim(db: PostgresConnection, name: str, arithmetic: int) -> tuple[tuple[str, ...], Identity]:
    """Let no earlier arithmetic write any more, nor this one where a later one has; notices, and the identity then."""
    db.execute("SELECT 1 FROM store FOR UPDATE").fetchone()
    id, layout, before = identity_of(db, name)
    used = db.execute("SELECT EXISTS (SELECT 1 FROM logs)").fetchone() == (True,)
    said = notices(name, before or (FIRST if used else arithmetic), arithmetic)
    if arithmetic and before != arithmetic:
        db.execute("UPDATE store SET arithmetic = ?", (arithmetic,))
    return said, (id, layout, arithmetic or before)
