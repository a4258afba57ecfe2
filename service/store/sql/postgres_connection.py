"""The dialect of PostgreSQL: one connection of psycopg, with a limit to how long it waits for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar, cast

import psycopg
from psycopg import sql as composing
from psycopg.pq import TransactionStatus

from .postgres_text import adapt

T = TypeVar("T")
PATIENCE = 10.0  # seconds without an answer, after which a connection is given up
LOCKED = 8_000  # milliseconds that a write waits for those of other processes
FROZEN = (
    15_000  # milliseconds that a process which stops in the midst of a write keeps the others from theirs
)
LONG = 600.0  # seconds that a heavy write may take: one that drops a long log, or writes tables anew
MESSAGE = 7_900  # bytes; more than 8,000 are refused
NOTICE = "feedrank"  # the channel of a schema is this and the schema's name
DEMOTED = "25006"  # a server that reads only: it may have been the primary before


class Patient(psycopg.Connection[Any]):
    """A connection that waits so long for an answer and no longer, however dead the network is."""

    patience = PATIENCE
    flowing: psycopg.Pipeline | None = None

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **more: Any) -> T:
        return super().wait(bounded(gen, self.patience), *args, **more)


def bounded(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """What libpq waits for; it is asked every tenth of a second whether nothing has come for too long."""
    until = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready:
                until = now + seconds
            elif now > until:
                raise psycopg.OperationalError(f"no answer within {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        return cast(T, end.value)


class CountedRows(psycopg.Cursor[Any]):
    """A result whose count can be asked for while statements are still on their way."""

    @property
    def rowcount(self) -> int:
        flowing = cast(Patient, self.connection).flowing
        if flowing is not None:
            flowing.sync()
        return super().rowcount


@lru_cache(1024)
def spelled(sql: str) -> str:
    """A statement as psycopg takes it."""
    return sql.replace("%", "%%").replace("?", "%s")


class PostgresConnection:
    """See `Database`. Outside of `flow` and `moment`, each statement is a transaction of its own."""

    shared = True

    def __init__(self, parameters: dict[str, Any], schema: str) -> None:
        self.total_changes = 0
        self._schema = schema
        self._news: dict[tuple[str, str], int] = {}
        self.raw = Patient.connect(autocommit=True, cursor_factory=CountedRows, **parameters)
        adapt(self.raw)
        try:
            self.raw.execute(
                composing.SQL("SET search_path TO {}").format(composing.Identifier(schema)), prepare=False
            )
            self.raw.execute(f"SET lock_timeout = {LOCKED}")
            self.raw.execute(f"SET idle_in_transaction_session_timeout = {FROZEN}")
            if self.raw.execute("SHOW synchronous_commit").fetchone() == ("off",):
                self.raw.execute("SET synchronous_commit = on")
        except BaseException:
            self.raw.close()
            raise

    def execute(self, sql: str, values: Sequence[object] = (), /) -> psycopg.Cursor[Any]:
        self.total_changes += 1
        return self.raw.execute(spelled(sql), values, binary=True)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> psycopg.Cursor[Any]:
        self.total_changes += 1
        cursor = self.raw.cursor(binary=True)
        cursor.executemany(spelled(sql), rows)
        return cursor

    def among(self, column: str, values: Sequence[str]) -> tuple[str, object]:
        return f"{column} = ANY(?)", list(values)

    def contains(self, column: str) -> str:
        return f"position(? IN {column}) > 0"

    def unzeroed(self) -> AbstractContextManager[None]:
        return nullcontext()

    def tell(self, kind: str, name: str, version: int) -> None:
        self._news[kind, name] = version

    def announce(self) -> None:
        """Have what was told sent with the commit, the newest of each log."""
        if self._news:
            news = [f"{kind} {name} {version}" for (kind, name), version in self._news.items()]
            news = [one if len(one.encode()) < MESSAGE else "lost  0" for one in news]
            self._news = {}
            self.execute(
                "SELECT pg_notify(?, news) FROM unnest(?::text[]) AS news", (channel(self._schema), news)
            )

    @contextmanager
    def flow(self) -> Iterator[None]:
        """Statements go without a wait for those before; only what is asked of a result is waited for."""
        self._news = {}
        try:
            with self.raw.pipeline() as flowing:
                self.raw.flowing = flowing
                yield
        finally:
            self.raw.flowing = None

    @property
    def lost(self) -> bool:
        """Whether nothing more can be done with it."""
        return self.raw.closed

    def abandon(self, error: BaseException) -> bool:
        """End a transaction that failed, or the connection if that cannot be; whether it was the connection."""
        try:
            if not self.lost and getattr(error, "sqlstate", "") != DEMOTED:
                if self.raw.info.transaction_status is TransactionStatus.IDLE:
                    return False
                if self.raw.info.transaction_status is not TransactionStatus.ACTIVE:
                    self.raw.execute("ROLLBACK")
                    return False
        except psycopg.Error:
            pass
        self.close()
        return True

    def close(self) -> None:
        self.raw.close()


def channel(schema: str) -> str:
    """On which the processes of a store tell each other what they write."""
    return f"{NOTICE} {schema}"


def consistent(db: PostgresConnection, query: Callable[[PostgresConnection], T]) -> T:
    """A query of several statements that all see one moment."""
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    result = query(db)
    db.execute("ROLLBACK")
    return result
