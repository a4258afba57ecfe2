"""Settings of the service: one frozen value, read from the variables `FEEDRANK_...` and validated.

Every field is one variable, e.g. `max_body` is `FEEDRANK_MAX_BODY`; docs/operating.md lists them from here.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from feedrank.service.contract.store_url import FORMS, is_store, shown, with_password

from .json_types import JSON, View

PREFIX = "FEEDRANK_"
KIB, MIB, GIB = 2**10, 2**20, 2**30
SUFFIXES = {"k": KIB, "m": MIB, "g": GIB}
RESERVED = 128  # open files that are not for connections
LEVELS = ("debug", "info", "warning", "error")


class SettingsError(ValueError):
    """A setting that cannot be used; the message is one line that says what to do."""


def setting(default: Any, text: str, *, least: float | None = None, most: float | None = None) -> Any:
    """A field with its help text and, for numbers, its range."""
    return field(default=default, metadata={"help": text, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, checked on construction."""

    host: str = setting("127.0.0.1", "address to listen on; anything but loopback needs keys")
    port: int = setting(8000, "port to listen on; 0: any free port", least=0, most=65535)
    store: str = setting(
        "sqlite:feedrank.db",
        "`sqlite:PATH`, `postgresql://USER@HOST/DB`, `redis://HOST:PORT/DB`, `redis+cluster://HOST:PORT`, "
        "`redis+sentinel://HOST:PORT/SERVICE/DB`; with TLS `?sslmode=verify-full` or `rediss`",
    )
    redis_replicas: int = setting(
        0, "number of Redis replicas that must have a write before it is acknowledged", least=0
    )
    redis_wait: float = setting(1.0, "seconds to wait for these replicas before 503", least=0.01, most=4.0)
    store_password_file: str = setting(
        "", "file with the password of a `redis://` or `postgresql://` store; empty: none"
    )
    keys_file: str = setting("", "file of hashed keys; empty: no keys, loopback only")
    cors_origins: str = setting("", "comma-separated origins that browsers may call from; empty: none")
    allowed_hosts: str = setting(
        "", "comma-separated names that the `Host` of a request may have, if keys are used; empty: any"
    )
    personalizer: str = setting(
        "",
        "learner that answers the calls of Azure Personalizer at the root; any learner answers them at `/at/{learner}`",
    )
    log_level: str = setting("info", "`debug` (every request), `info` (refused requests), `warning`, `error`")

    max_body: int = setting(8 * MIB, "bytes of a request body, or of one line of a stream", least=1 * KIB)
    max_snapshot: int = setting(1 * GIB, "bytes of an uploaded snapshot", least=1 * KIB)
    max_features: int = setting(100_000, "features of one instance", least=1)
    max_items: int = setting(10_000, "items of one list", least=1)
    max_batch: int = setting(10_000, "instances or events of one batch", least=1)
    max_labels: int = setting(100_000, "labels of one learner", least=2)
    max_learner_bytes: int = setting(1 * GIB, "bytes of one learner in memory", least=1 * KIB)
    max_event_seconds: float = setting(
        10.0, "estimated seconds of one processor that an event or a prediction may take", least=0.001
    )
    max_event_bytes: int = setting(
        1 * GIB,
        "estimated bytes of working memory that an event or a prediction may take",
        least=1 * KIB,
    )
    max_learners: int = setting(100_000, "learners in the store", least=1)
    request_timeout: float = setting(30.0, "seconds a request may take before 503", least=0.05)
    head_timeout: float = setting(10.0, "seconds within which the head of a request must arrive", least=0.05)
    body_timeout: float = setting(30.0, "seconds that a body may pause while it arrives", least=0.05)
    idle_timeout: float = setting(
        75.0, "seconds after which a connection that is not in use, or not read from, is closed", least=0.05
    )
    max_connections: int = setting(
        0, "open connections; 0: as many as the limit of open files allows, at most 10,000", least=0
    )
    stop_timeout: float = setting(20.0, "seconds a clean stop may take", least=0.1)
    version_wait: float = setting(5.0, "seconds to wait for `min_version` before 409", least=0.0)

    memory: int = setting(
        0,
        "bytes of memory for all: three quarters for learners, the least recently used of which are unloaded, the rest for "
        "what is on its way, above which the reply is 503; 0: four fifths of the container's limit, else of the machine's "
        "memory",
        least=0,
    )
    snapshot_every: int = setting(1_000, "events between two snapshots of a learner", least=1)
    snapshots_kept: int = setting(
        2, "snapshots kept of a learner; older ones make retractions faster", least=1
    )
    log_retention: int = setting(
        0,
        "events kept in the log before the newest snapshot; older ones cannot be retracted; 0: all",
        least=0,
    )
    log_retention_age: float = setting(
        0.0, "seconds that events are kept in the log before the newest snapshot; 0: all", least=0
    )
    id_retention: int = setting(
        0,
        "latest events of a learner whose ids and first replies are kept, to recognise repeats; 0: all",
        least=0,
    )
    prediction_ttl: float = setting(
        7 * 86_400.0, "seconds that a remembered prediction is kept for its feedback", least=0.01
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value, least, most = getattr(self, item.name), item.metadata["least"], item.metadata["most"]
            if least is not None and not value >= least:
                raise SettingsError(f"{variable(item.name)} must be at least {least:g}, not {value}")
            if most is not None and not value <= most:
                raise SettingsError(f"{variable(item.name)} must be at most {most:g}, not {value}")
        self._check_store()
        if self.log_level not in LEVELS:
            raise SettingsError(
                f"{variable('log_level')} must be one of {', '.join(LEVELS)}, not {self.log_level!r}"
            )
        for origin in self.origins:
            if origin != "*" and urlsplit(origin).scheme not in {"http", "https"}:
                raise SettingsError(
                    f"{variable('cors_origins')}: {origin!r} is not an origin; write one such as https://app.example"
                )
        if self.keys_file and not Path(self.keys_file).is_file():
            raise SettingsError(
                f"{variable('keys_file')}: there is no file {self.keys_file!r}; "
                f"make it with `feedrank keys add --file {self.keys_file} --scope admin`"
            )
        if not self.keys_file and not is_loopback(self.host):
            raise SettingsError(
                f"without keys the service listens on loopback only, not on {self.host!r}: "
                f"set {variable('keys_file')} or use --host 127.0.0.1"
            )

    def _check_store(self) -> None:
        if not is_store(self.store):
            raise SettingsError(f"{variable('store')} must be {FORMS}, not {shown(self.store)!r}")

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(part.strip().lower() for part in self.allowed_hosts.split(",") if part.strip())

    @property
    def connections(self) -> int:
        """The bound on connections: files, stores and health checks need some of the open files too."""
        return self.max_connections or min(10_000, max(16, open_files() - RESERVED))

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.cors_origins.split(",") if part.strip())

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Read `FEEDRANK_...`; an override that is not None wins over the environment."""
        environ = os.environ if environ is None else environ
        values: JSON = {}
        for item in fields(cls):
            if overrides.get(item.name) is not None:
                values[item.name] = overrides[item.name]
            elif variable(item.name) in environ:
                text = environ[variable(item.name)].strip()
                values[item.name] = read(variable(item.name), text, type(item.default))
        try:
            if values.get("store_password_file"):
                values["store"] = _add_password(values.get("store", ""), values["store_password_file"])
            return cls(**values)
        except SettingsError as error:
            raise SettingsError(_blame_options(str(error), overrides)) from None


def _add_password(store: str, file: str) -> str:
    try:
        return with_password(store, Path(file).read_text(encoding="utf-8").strip())
    except PermissionError:
        user = os.getuid() if hasattr(os, "getuid") else "of this process"
        raise SettingsError(
            f"{variable('store_password_file')}: user {user} may not read {file!r}; let it: `chmod 644` in a "
            f"folder that only you may enter, or `chown {user}`"
        ) from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{variable('store_password_file')}: {error}") from None


def _blame_options(message: str, overrides: View) -> str:
    """The message about a value that came from an option names that option, not the variable it overrides."""
    for name, value in overrides.items():
        if value is not None and message.startswith(variable(name)):
            return message.replace(variable(name), f"--{name}", 1)
    return message


def variable(name: str) -> str:
    """The environment variable of a field."""
    return PREFIX + name.upper()


def read(name: str, text: str, kind: type) -> Any:
    """The value of one variable; whole numbers may end in k, m or g (powers of 1024)."""
    try:
        if kind is int:
            factor = SUFFIXES.get(text[-1:].lower(), 1)
            return int(text[:-1] if factor > 1 else text) * factor
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise SettingsError(f"{name} must be {wanted}, not {text!r}") from None


def open_files() -> int:
    """How many files this process may have open."""
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ModuleNotFoundError:
        return 2048
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**20 if soft == resource.RLIM_INFINITY else soft


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
