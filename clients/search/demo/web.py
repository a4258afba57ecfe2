"""Serves the demo page on loopback: three files, four calls, a strict content security policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...exceptions import ClientError
from ...payloads import JSON
from .site import Site

__all__ = ["serve"]

FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
LONGEST_BODY, LONGEST_QUERY, MOST_VISITORS = 4096, 200, 100


class WebError(Exception):
    """A request that cannot be done: status and reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def serve(site: Site, port: int = 0) -> ThreadingHTTPServer:
    """A server of the site on 127.0.0.1; its caller runs `serve_forever` and closes it."""

    class Handler(_Handler):
        pass

    Handler.site = site
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path in FILES:
            name, kind = FILES[place.path]
            self._answer(lambda: (files(__package__).joinpath(name).read_bytes(), kind))
        elif place.path == "/search":
            query = parse_qs(place.query).get("q", [""])[0][:LONGEST_QUERY]
            self._json(lambda: self.site.search(query, self._unit()))
        elif place.path == "/status":
            self._json(self.site.status)
        else:
            self._json(_refuse(HTTPStatus.NOT_FOUND, "there is no such page"))

    def do_POST(self) -> None:
        if self.path == "/click":
            self._json(self._click)
        elif self.path == "/visitors":
            self._json(self._visitors)
        else:
            self._json(_refuse(HTTPStatus.NOT_FOUND, "there is no such page"))

    def _click(self) -> JSON:
        body = self._body()
        prediction_id, id = body.get("prediction_id"), body.get("id")
        if not isinstance(prediction_id, str) or not isinstance(id, str):
            raise WebError(HTTPStatus.BAD_REQUEST, "a click has a prediction_id and an id")
        return self.site.click(prediction_id, id)

    def _visitors(self) -> JSON:
        count = self._body().get("count")
        if type(count) is not int or not 0 < count <= MOST_VISITORS:
            raise WebError(HTTPStatus.BAD_REQUEST, f"the count of visitors is 1 to {MOST_VISITORS}")
        return self.site.visitors(count)

    def _body(self) -> JSON:
        # A form of another site cannot send this type without asking first, and nobody here says yes.
        if self.headers.get_content_type() != "application/json":
            raise WebError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
        length = self.headers.get("content-length", "")
        if not length.isascii() or not length.isdigit() or int(length) > LONGEST_BODY:
            raise WebError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send at most {LONGEST_BODY} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise WebError(HTTPStatus.BAD_REQUEST, "send a JSON object")
        return body

    def _unit(self) -> str:
        """Who is searching: a cookie of this session."""
        try:
            cookie = SimpleCookie(self.headers.get("cookie", "")).get("visitor")
        except CookieError:
            cookie = None
        self._visitor = cookie.value[:64] if cookie is not None and cookie.value else token_urlsafe(12)
        return self._visitor

    def _check_origin(self) -> None:
        """Refuse what another site may have made a browser send, and names that somebody pointed to this machine."""
        host = self.headers.get("host", "")
        if host.rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            raise WebError(HTTPStatus.FORBIDDEN, "this page is for this machine only")
        origin = self.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            raise WebError(HTTPStatus.FORBIDDEN, "a page of another origin sent this")
        if self.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise WebError(HTTPStatus.FORBIDDEN, "a page of another site sent this")

    def _json(self, make: Callable[[], JSON]) -> None:
        self._answer(lambda: (json.dumps(make()).encode(), "application/json"))

    def _answer(self, make: Callable[[], tuple[bytes, str]]) -> None:
        status = HTTPStatus.OK
        self._visitor = ""
        try:
            self._check_origin()
            content, kind = make()
        except WebError as wrong:
            status, content, kind = (
                wrong.status,
                json.dumps({"error": str(wrong)}).encode(),
                "application/json",
            )
        except ClientError as error:
            status, kind = HTTPStatus.BAD_GATEWAY, "application/json"
            content = json.dumps({"error": str(error)}).encode()
        self.send_response(status)
        self.send_header("content-type", f"{kind}; charset=utf-8")
        self.send_header("content-length", str(len(content)))
        self.send_header("content-security-policy", POLICY)
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("referrer-policy", "no-referrer")
        self.send_header("cache-control", "no-store")
        if self._visitor:
            self.send_header("set-cookie", f"visitor={self._visitor}; HttpOnly; SameSite=Strict; Path=/")
        if status != HTTPStatus.OK:
            self.close_connection = True  # what was not read of the body must not be taken for a request
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the page shows what happens."""


def _refuse(status: HTTPStatus, reason: str) -> Callable[[], JSON]:
    def refuse() -> JSON:
        raise WebError(status, reason)

    return refuse
