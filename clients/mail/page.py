"""`feedrank mail watch --page`: the inbox on this machine, three folders a message, one click files and teaches.

It listens on loopback only. Its address holds a secret made at every start, so no other program's page knows where to
ask; and what another site makes a browser send is refused by its `Host`, its `Sec-Fetch-Site` and its type.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..exceptions import ClientError
from .account import AccountError
from .inbox import Inbox
from .mailboxes import ODD

__all__ = ["serving"]

HOST = "127.0.0.1"
LARGEST = 1 << 16
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC = Path(__file__).parent / "static"
FILES = {
    "": ("inbox.html", "text/html"),
    "inbox.js": ("inbox.js", "text/javascript"),
    "inbox.css": ("inbox.css", "text/css"),
}


class _RequestError(Exception):
    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class _Server(ThreadingHTTPServer):
    """`ask` runs work on the inbox in its own thread, one piece after the other."""

    daemon_threads = True

    def __init__(self, port: int, ask: Callable[[Callable[[Inbox], Any]], Any]) -> None:
        super().__init__((HOST, port), _Handler)
        self.ask, self.token = ask, secrets.token_urlsafe(24)
        self.url = f"http://{HOST}:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30
    server_version = "feedrank"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, work: Callable[[str], tuple[str, bytes]]) -> None:
        try:
            self._check()
            kind, data = work(self.path.removeprefix(f"/{self.server.token}/"))
            status = HTTPStatus.OK
        except _RequestError as error:
            status, kind, data = error.status, *_json({"detail": str(error)})
        except (*ODD, OSError, ClientError, AccountError, sqlite3.Error) as error:
            status, kind, data = (
                HTTPStatus.BAD_GATEWAY,
                *_json({"detail": str(error) or type(error).__name__}),
            )
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _check(self) -> None:
        """Only the page itself, at its secret address, under this machine's own name."""
        port = self.server.server_address[1]
        parts = self.path.split("/", 2)
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            raise _RequestError(HTTPStatus.FORBIDDEN, "this address is for this machine only")
        if len(parts) != 3 or not secrets.compare_digest(parts[1].encode(), self.server.token.encode()):
            raise _RequestError(
                HTTPStatus.NOT_FOUND, "open the address that `feedrank mail watch` has printed"
            )
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise _RequestError(HTTPStatus.FORBIDDEN, "only the page itself may ask")

    def _get(self, path: str) -> tuple[str, bytes]:
        if path == "inbox":
            return _json(self.server.ask(Inbox.messages))
        if path not in FILES:
            raise _RequestError(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        name, kind = FILES[path]
        return f"{kind}; charset=utf-8", (STATIC / name).read_bytes()

    def _post(self, path: str) -> tuple[str, bytes]:
        length = self.headers.get("Content-Length", "")
        if path != "file" or self.headers.get_content_type() != "application/json":
            raise _RequestError(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        if not length.isdecimal() or int(length) > LARGEST:
            raise _RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
        try:
            payload = json.loads(self.rfile.read(int(length)))
            uid, uidvalidity = int(payload["uid"]), int(payload["uidvalidity"])
            folder = str(payload["folder"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise _RequestError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "uid, uidvalidity and folder are needed"
            ) from None
        if not self.server.ask(lambda inbox: inbox.file(uid, uidvalidity, folder)):
            raise _RequestError(HTTPStatus.CONFLICT, "the message is no longer there, or the folder is not")
        return _json({"filed": folder})

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address is a secret."""


def _json(value: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


@contextmanager
def serving(make: Callable[[], Inbox], port: int = 0) -> Iterator[str]:
    """Serve the page in threads beside this one; gives its address. `make` is called in the inbox's own thread."""
    with ThreadPoolExecutor(1, "feedrank-inbox") as worker:
        inbox = worker.submit(make).result()
        server = _Server(port, lambda work: worker.submit(work, inbox).result())
        thread = threading.Thread(target=server.serve_forever, name="feedrank-page", daemon=True)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            worker.submit(inbox.close).result()
