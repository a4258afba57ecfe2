"""Several accounts in one TOML file: what `feedrank mail run accounts.toml` watches.

store = "sqlite:mail.db"                # or: server = "http://127.0.0.1:8000"

[[account]]
url = "imaps://me@example.org"
password_command = "pass show mail"     # or password_file; oauth = true for a token
learner = "mail"                        # one learner an account, unless they are to share what they learn
mode = "file"                           # or "suggest"
precision = 0.95
page = 8025

[[account.always]]
from = "*@bank.example"
folder = "Bills"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..payloads import Payload
from .account import Account, AccountError, Secret, Trust
from .filing import WatchSettings
from .rules import Rule, RuleError, Rules

__all__ = ["AccountsFile", "Watched", "read_accounts"]

_TOP = {"store": str, "server": str, "state": str, "account": list}
_ACCOUNT = {
    "url": str, "password_command": str, "password_file": str, "oauth": bool, "ca_file": str, "fingerprint": str,
    "learner": str, "mode": str, "precision": float, "exclude": list, "shared": list, "archive": bool, "inbox": str,
    "poll": float, "page": int, "keep_days": float, "always": list, "never": list,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Watched:
    """One account of the file, and how to watch it."""

    account: Account
    learner: str
    settings: WatchSettings
    poll: float
    page: int | None


@dataclass(frozen=True, slots=True)
class AccountsFile:
    """What the file says."""

    store: str | None
    server: str | None
    state: Path | None
    accounts: list[Watched]


def read_accounts(path: Path) -> AccountsFile:
    """The file at `path`; AccountError, with the place, if it cannot be used. Paths in it are relative to it."""
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AccountError(f"{path}: {error}") from error
    _check(table, _TOP, str(path))
    if bool(table.get("store")) == bool(table.get("server")):
        raise AccountError(f"{path}: give `store` or `server`")
    watched = []
    for number, one in enumerate(table.get("account", []), 1):
        place = f"{path}: account {number}"
        _check(one, _ACCOUNT, place)
        try:
            watched.append(_watched(one, path.parent))
        except (AccountError, RuleError) as error:
            raise AccountError(f"{place}: {error}") from error
    if not watched:
        raise AccountError(f"{path}: there is no [[account]]")
    names = [(one.account.name, one.learner) for one in watched]
    if len(set(names)) < len(names):
        raise AccountError(f"{path}: an account is listed twice")
    state = table.get("state")
    return AccountsFile(
        _store(table.get("store"), path), table.get("server"), state and path.parent / state, watched
    )


def _store(store: str | None, path: Path) -> str | None:
    scheme, _, place = (store or "").partition(":")
    return f"sqlite:{path.parent.absolute() / place}" if scheme == "sqlite" else store


def _check(table: Any, fields: Mapping[str, type], place: str) -> None:
    if not isinstance(table, Mapping):
        raise AccountError(f"{place}: must be a table")
    for name, value in table.items():
        if name not in fields:
            raise AccountError(f"{place}: there is no setting {name!r}")
        kind = fields[name]
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise AccountError(f"{place}: {name} must be {kind.__name__}")


def _watched(table: Payload, folder: Path) -> Watched:
    def path(name: str) -> Path | None:
        return folder / table[name] if name in table else None

    if "url" not in table:
        raise AccountError("url is missing")
    secret = Secret(table.get("password_command"), path("password_file"), table.get("oauth", False))
    trust = Trust(path("ca_file"), table.get("fingerprint"))
    mode, precision = table.get("mode", "suggest"), float(table.get("precision", 0.95))
    if mode not in ("suggest", "file"):
        raise AccountError("mode is suggest or file")
    if not 0.5 <= precision <= 0.999:
        raise AccountError("precision is between 0.5 and 0.999")
    settings = WatchSettings(
        mode=mode,
        precision=precision,
        exclude=[str(one) for one in table.get("exclude", [])],
        shared=[str(one) for one in table.get("shared", [])],
        archive=table.get("archive", False),
        inbox=table.get("inbox", "INBOX"),
        keep=86_400.0 * table.get("keep_days", 3),
        rules=Rules(
            [Rule.of(one, always=True) for one in table.get("always", [])],
            [Rule.of(one, always=False) for one in table.get("never", [])],
        ),
    )
    poll = max(1.0, float(table.get("poll", 60)))
    account = Account.of(table["url"], secret, trust)
    return Watched(account, table.get("learner", "mail"), settings, poll, table.get("page"))
