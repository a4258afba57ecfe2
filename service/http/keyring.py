"""API keys: random secrets with scopes and name prefixes; the file stores only their hashes.

A key reads `fr_ID_SECRET`. ID finds the line of the file, SECRET has 256 random bits, so one SHA-256 is as
strong as a slow password hash would be, and cheap enough for every request. The file holds one JSON object a
line; it is looked at on every request and read again when it changed, so a revoked key stops at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedrank.files import create_private

SCOPES = ("predict", "feedback", "admin")
SHARES = ("rate", "concurrency", "learners", "bytes")
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
SHAPE = re.compile(r"fr_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")

log = logging.getLogger("feedrank.keys")


class KeysError(ValueError):
    """A keys file that cannot be used, or a key that is not in it."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may do; `admin` includes the other scopes, no prefixes means every name, a share of 0 has no end."""

    id: str
    hash: str
    scopes: tuple[str, ...]
    prefixes: tuple[str, ...]
    created: str
    rate: float = 0
    concurrency: int = 0
    learners: int = 0
    bytes: int = 0

    @property
    def shares(self) -> dict[str, float]:
        """Those that it has, by name."""
        return {name: share for name in SHARES if (share := getattr(self, name))}

    @property
    def limited(self) -> bool:
        """Whether it has any share."""
        return bool(self.rate or self.concurrency or self.learners or self.bytes)

    def may(self, scope: str) -> bool:
        """Whether the key has `scope`; `any` asks for no particular one."""
        return scope == "any" or scope in self.scopes or "admin" in self.scopes

    def reaches(self, name: str) -> bool:
        """Whether `name` lies under one of the key's prefixes."""
        return not self.prefixes or name.startswith(self.prefixes)


class Keyring:
    """The keys of a file, as the file stands now."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._mark: tuple[int, int, int, int] | None = None
        self._keys: dict[str, Key] = {}

    def find(self, secret: str) -> Key | None:
        """The key that `secret` is, or None; compares in constant time."""
        self.refresh()
        shape = SHAPE.fullmatch(secret)
        key = self._keys.get(shape[1]) if shape else None
        if key is None or not hmac.compare_digest(key.hash, digest(secret)):
            return None
        return key

    def holds(self, key: Key) -> bool:
        """Whether a key that was found before is still in the file."""
        self.refresh()
        return self._keys.get(key.id) == key

    def refresh(self) -> None:
        """Read the file again if it changed; while it is gone or damaged, no key is valid."""
        try:
            file = self.path.stat()
            mark = (file.st_ino, file.st_mtime_ns, file.st_ctime_ns, file.st_size)
        except OSError:
            mark = (0, 0, 0, 0)
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._keys = {key.id: key for key in read_keys(self.path)}
        except KeysError as error:
            self._keys = {}
            log.error("no key is valid until the keys file is repaired: %s", error)


def digest(secret: str) -> str:
    """SHA-256 of the whole key, in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def read_keys(path: str | Path) -> list[Key]:
    """The keys in a file, in the order they were added."""
    keys = []
    try:
        if os.name == "posix" and Path(path).stat().st_mode & OTHERS_WRITE:
            raise KeysError(
                f"others may write to the keys file {str(path)!r}, so they could add keys: run chmod go-w on it"
            )
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KeysError(f"cannot read the keys file {str(path)!r}: {error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            scopes, prefixes = tuple(entry["scopes"]), tuple(entry["prefixes"])
            if not all(isinstance(text, str) for text in (entry["id"], entry["hash"], *scopes, *prefixes)):
                raise TypeError
            shares = {name: share(name, entry.get(name, 0)) for name in SHARES}
            keys.append(Key(entry["id"], entry["hash"], scopes, prefixes, str(entry["created"]), **shares))
        except (ValueError, KeyError, TypeError):  # and KeysError, which is a ValueError
            raise KeysError(f"line {number} of the keys file {str(path)!r} is not a key") from None
    return keys


def share(name: str, value: Any) -> Any:
    """A share of a key: a number of at least 0, whole but for `rate`."""
    wanted = (int, float) if name == "rate" else (int,)
    if isinstance(value, bool) or not isinstance(value, wanted) or not 0 <= value < 2**63:
        raise KeysError(f"{name} must be a {'' if name == 'rate' else 'whole '}number of at least 0")
    return value


def add_key(path: str | Path, scopes: Iterable[str], prefixes: Iterable[str] = (), **shares: float) -> str:
    """Append a new key to the file (made if missing, readable by its owner only) and return the key.

    `shares` are of `SHARES`; what is left out, or 0, has no end.
    """
    limits: dict[str, Any] = {name: share(name, value) for name, value in shares.items()}
    chosen = tuple(dict.fromkeys(scopes))
    if not chosen or not set(chosen) <= set(SCOPES):
        raise KeysError(f"a key needs one or more of the scopes {', '.join(SCOPES)}")
    if Path(path).exists():
        read_keys(path)
    name = secrets.token_hex(6)
    secret = f"fr_{name}_{secrets.token_urlsafe(32)}"
    created = datetime.now(UTC).isoformat(timespec="seconds")
    line = line_of(Key(name, digest(secret), chosen, tuple(prefixes), created, **limits))
    try:
        append(path, line.encode())
    except OSError as error:
        raise KeysError(f"cannot write the keys file {str(path)!r}: {error}") from None
    return secret


def line_of(key: Key) -> str:
    """A key's line of the file, without the shares that it does not have."""
    unlimited = set(SHARES) - key.shares.keys()
    return json.dumps({name: value for name, value in asdict(key).items() if name not in unlimited}) + "\n"


def append(path: str | Path, line: bytes) -> None:
    """All of a line or nothing of it: with half a line at its end, as a full disk leaves it, no key would be valid."""
    create_private(path)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    with open(handle, "ab", buffering=0) as file:
        end = os.fstat(handle).st_size
        try:
            while line:
                line = line[file.write(line) :]
        except OSError:
            file.truncate(end)
            raise


def revoke_key(path: str | Path, name: str) -> None:
    """Take the key with this ID out of the file; the file is replaced in one step."""
    keys = read_keys(path)
    rest = [key for key in keys if key.id != name]
    if len(rest) == len(keys):
        raise KeysError(f"no key {name!r} in {str(path)!r}; `feedrank keys list` shows them")
    folder = Path(path).resolve().parent
    handle, fresh = tempfile.mkstemp(dir=folder, prefix=".keys-")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.writelines(map(line_of, rest))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, Path(path).resolve())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise KeysError(f"cannot write the keys file {str(path)!r}: {error}") from None
