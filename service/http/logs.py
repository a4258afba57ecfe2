"""Structured logs: one JSON object per line on standard error, with the id of the request."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

from feedrank.service.contract.headroom import dumps_small

request_id: ContextVar[str] = ContextVar("request_id", default="")

PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonLines(logging.Formatter):
    """A record as one JSON object; what was passed as `extra` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if identity := request_id.get():
            entry["request_id"] = identity
        entry.update((key, value) for key, value in vars(record).items() if key not in PLAIN)
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return dumps_small(entry).decode()


def configure(level: str) -> None:
    """Send all logs of this process to standard error, from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("feedrank").setLevel(level.upper())
