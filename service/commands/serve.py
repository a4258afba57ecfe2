"""`feedrank serve` and `feedrank keys`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import BaseModel

from feedrank.service.contract.settings import Settings, SettingsError
from feedrank.service.contract.store_url import FORMS
from feedrank.service.http.keyring import SCOPES, KeysError, add_key, read_keys, revoke_key

serve = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
keys = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Add, list and revoke keys.",
)

StoreOption = Annotated[str | None, typer.Option("--store", help=FORMS)]
File = Annotated[str, typer.Option("--file", envvar="FEEDRANK_KEYS_FILE", help="file of hashed keys")]


def fail(error: Exception) -> typer.Exit:
    """Say why, in one line, and leave with status 1."""
    print(f"feedrank: {error}", file=sys.stderr)
    return typer.Exit(1)


@contextmanager
def deferred_models() -> Iterator[None]:
    """Models that are imported meanwhile are built when they are first used.

    FastAPI brings those of every part of OpenAPI, and building them takes a twelfth of a start.
    """
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


@serve.command()
def _serve(
    host: Annotated[str | None, typer.Option(help="address to listen on [127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on; 0: any free port [8000]")] = None,
    store: StoreOption = None,
) -> None:
    """Serve learners over HTTP. All other settings are environment variables FEEDRANK_..., see docs/operating.md."""
    try:
        settings = Settings.from_env(host=host, port=port, store=store)
    except SettingsError as error:
        raise fail(error) from None
    # What is imported stays: to look through it for garbage again and again takes a seventh of a start.
    gc.disable()
    with deferred_models():
        from feedrank.service.http.server import run  # noqa: PLC0415  (the keys commands need no NumPy)

    raise typer.Exit(run(settings))


@keys.command()
def add(
    file: File,
    scope: Annotated[list[str], typer.Option(help=f"one or more of {', '.join(SCOPES)}")],
    prefix: Annotated[
        list[str] | None, typer.Option(help="allow only names that start with this; may be repeated")
    ] = None,
    rate: Annotated[float, typer.Option(help="requests a second, lines of streams too; 0: any")] = 0,
    concurrency: Annotated[int, typer.Option(help="requests at a time; 0: any")] = 0,
    learners: Annotated[int, typer.Option(help="learners that it may have made; 0: any")] = 0,
    stored: Annotated[int, typer.Option("--bytes", help="bytes that it may have stored; 0: any")] = 0,
) -> None:
    """Create a key and print it. It is shown only once: the file stores a hash. Shares are counted by each process."""
    shares = {"rate": rate, "concurrency": concurrency, "learners": learners, "bytes": stored}
    try:
        print(add_key(file, scope, prefix or (), **shares))
    except KeysError as error:
        raise fail(error) from None
    if os.isatty(sys.stderr.fileno()):
        print("Keep it: it cannot be shown again.", file=sys.stderr)


@keys.command(name="list")
def list_keys(file: File) -> None:
    """List the keys of a file: id, scopes, prefixes, date, shares."""
    try:
        for key in read_keys(file):
            names = ",".join(key.prefixes) or "*"
            shares = "".join(f"  {name}={share:g}" for name, share in key.shares.items())
            print(f"{key.id}  {','.join(key.scopes)}  {names}  {key.created}{shares}")
    except KeysError as error:
        raise fail(error) from None


@keys.command()
def revoke(file: File, key: Annotated[str, typer.Argument(help="id of the key, from `keys list`")]) -> None:
    """Remove a key from a file; running servers refuse it at once."""
    try:
        revoke_key(file, key)
    except KeysError as error:
        raise fail(error) from None
