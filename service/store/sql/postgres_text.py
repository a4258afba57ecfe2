"""Text in PostgreSQL, which takes every character but NUL: it becomes 1 1, and 1 becomes 1 2, so that order stays."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.types.string import StrDumperUnknown, TextBinaryLoader

ESCAPE = "\x01"


class AnyText(StrDumperUnknown):
    """A text on its way to the server."""

    def dump(self, obj: str) -> Buffer | None:
        if "\x00" in obj or ESCAPE in obj:
            obj = obj.replace(ESCAPE, "\x01\x02").replace("\x00", "\x01\x01")
        return super().dump(obj)


class AnyTextLoader(TextBinaryLoader):
    """The same on its way back."""

    def load(self, data: Buffer) -> Any:
        text = super().load(data)
        if isinstance(text, str) and ESCAPE in text:
            text = text.replace("\x01\x01", "\x00").replace("\x01\x02", ESCAPE)
        return text


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Have a connection write and read any text."""
    connection.adapters.register_dumper(str, AnyText)
    connection.adapters.register_loader("text", AnyTextLoader)
