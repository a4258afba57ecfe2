"""The URL of a store: its schemes, ours and those that other packages bring, and how to print it without its password."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
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
FORMS = "sqlite:PATH, redis://HOST:PORT/DB or postgresql://USER@HOST/DB"
GROUP = "feedrank.stores"  # of entry points: a scheme, and the function that opens a store at such a URL
HIDDEN = "..."


def brought(scheme: str) -> EntryPoint | None:
    """The entry point by which another package brings this scheme."""
    return next(iter(entry_points(group=GROUP, name=scheme)), None)


def is_store(url: str) -> bool:
    """Whether some store may be at this URL."""
    scheme, _, rest = url.partition(":")
    return bool(rest) and (scheme in SCHEMES or brought(scheme) is not None)


def with_password(url: str, password: str) -> str:
    """The address of a server with a password that it does not hold itself."""
    scheme, _, rest = url.partition("://")
    user, sign, place = rest.rpartition("@")
    if not scheme.startswith(("redis", "postgres")) or ":" in user or (sign and scheme.startswith("redis")):
        raise ValueError(
            "only a redis:// or postgresql:// store without a password in its address takes one from a file"
        )
    return f"{scheme}://{user}:{quote(password, safe='')}@{place}"


def shown(url: str) -> str:
    """`url` as it may be printed: without user, password and options."""
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite":
        return url
    who, _, where = rest.removeprefix("//").rpartition("@")
    # With one of these before the last @, where a password ends and the place begins cannot be told.
    place = HIDDEN if set(who) & set("/?#") else where.partition("?")[0]
    return scheme + colon + ("//" if rest.startswith("//") else "") + place
