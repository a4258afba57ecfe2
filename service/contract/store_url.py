"""The URL of a store: its schemes, and how to print it without its password."""

from __future__ import annotations

from urllib.parse import quote

SCHEMES = (
    "sqlite",
    "redis",
    "rediss",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "rediss+sentinel",
    "postgresql",
    "postgres",
)
HIDDEN = "..."


def with_password(url: str, password: str) -> str:
    """The address of a Redis store with a password that it does not hold itself."""
    scheme, _, rest = url.partition("://")
    if not scheme.startswith("redis") or "@" in rest:
        raise ValueError("only a redis:// store without a password in its address takes one from a file")
    return f"{scheme}://:{quote(password, safe='')}@{rest}"


def shown(url: str) -> str:
    """`url` as it may be printed: without user, password and options."""
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite":
        return url
    who, _, where = rest.removeprefix("//").rpartition("@")
    # With one of these before the last @, where a password ends and the place begins cannot be told.
    place = HIDDEN if set(who) & set("/?#") else where.partition("?")[0]
    return scheme + colon + ("//" if rest.startswith("//") else "") + place
