"""Who may speak to the service at all, before any key is looked at.

Without keys, whatever runs on this machine may, but no web page: a page of another origin can make the user's browser send
requests to loopback, and a name that an attacker owns can be made to resolve to 127.0.0.1 (DNS rebinding).

    Host                      a loopback name or address
    Origin                    our own, or one of `cors_origins`
    Sec-Fetch-Site            not `cross-site` and not `same-site`, unless the origin is one of `cors_origins`

With keys, a page has no key to send, so that only `allowed_hosts` is compared, where it is set.
"""

from __future__ import annotations

from collections.abc import Iterable

from feedrank.service.contract.faults import Forbidden
from feedrank.service.contract.settings import Settings, is_loopback

NAMES = frozenset({b"host", b"origin", b"sec-fetch-site"})


class ForeignRequest(Forbidden):
    """A request that another site may have made a browser send."""

    title = "Not from here"


class Door:
    """Refuses by the headers of a request."""

    def __init__(self, settings: Settings) -> None:
        self._keys = bool(settings.keys_file)
        self._hosts = frozenset(settings.hosts)
        self._origins = frozenset(settings.origins)
        self._seen: dict[bytes, bool] = {}

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """ForeignRequest, with what to do, if the request may not come in."""
        host = origin = site = b""
        for name, value in headers:
            if name in NAMES:
                if name == b"host":
                    host = value
                elif name == b"origin":
                    origin = value
                else:
                    site = value
        if not self._known(host):
            raise ForeignRequest(
                f"the host {host.decode('latin-1')[:200]!r} is not one of this service: "
                + (
                    "see FEEDRANK_ALLOWED_HOSTS"
                    if self._keys
                    else "without keys it answers to loopback names only"
                )
            )
        if self._keys or (not origin and not site):
            return
        allowed = bool(origin) and ("*" in self._origins or origin.decode("latin-1") in self._origins)
        if not allowed and (_foreign(origin, host) or site in (b"cross-site", b"same-site")):
            raise ForeignRequest(
                "a browser sent this from another site; name its origin in FEEDRANK_CORS_ORIGINS, or use keys"
            )

    def _known(self, host: bytes) -> bool:
        known = self._seen.get(host)
        if known is None:
            name = host_name(host.decode("latin-1"))
            known = (not self._hosts or name in self._hosts) if self._keys else is_loopback(name)
            if len(self._seen) < 1024:
                self._seen[host] = known
        return known


def host_name(host: str) -> str:
    """The name in a Host header, without the port; an address in brackets keeps none of them."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _foreign(origin: bytes, host: bytes) -> bool:
    """Whether an Origin names another host or port than the request was sent to; `null` is foreign."""
    return bool(origin) and origin.partition(b"://")[2].lower() != host.lower()
